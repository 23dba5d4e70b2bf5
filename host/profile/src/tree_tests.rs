use super::*;
use std::path::Path;

const BASE: &str = "\
- insert:
    - id: a
      name: pkg-a
      config: {x: 1, y: 2}
    - id: b
      disabled: !!js process.env.X ?? 'no'
    - id: g
      group: true
      config:
        - id: child
          name: pkg-c
          config: {k: 1}
";

fn compose(layers: &[(&str, &str)]) -> Result<Tree, Error> {
    let layers = layers
        .iter()
        .map(|(label, text)| Layer::parse(Path::new(label), None, text).unwrap());
    Tree::compose(layers.collect(), Vec::new())
}

fn over(patch: &str) -> Tree {
    compose(&[("base", BASE), ("over", patch)]).unwrap()
}

fn warned(patch: &str) -> Vec<String> {
    over(patch)
        .warnings()
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// The dump without its headings.
fn body(tree: &Tree) -> String {
    tree.dump()
        .lines()
        .filter(|l| !l.starts_with('#') && !l.is_empty())
        .map(|l| l.to_owned() + "\n")
        .collect()
}

#[test]
fn config_is_replaced_whole_and_other_keys_stay() {
    let dump = body(&over("- id: a\n  config: {z: 3}\n  inject: [s]\n"));
    assert!(
        dump.starts_with("- id: a\n  name: pkg-a\n  config:\n    z: 3\n  inject:\n    - s\n"),
        "{dump}"
    );
}

#[test]
fn the_last_write_wins_by_key_and_row() {
    let tree = compose(&[
        ("base", BASE),
        ("one", "- {id: a, disabled: true, config: {x: 5}}"),
        ("two", "- {id: a, disabled: false}"),
    ]);
    let dump = body(&tree.unwrap());
    assert!(dump.contains("x: 5\n  disabled: false"), "{dump}");
}

#[test]
fn what_does_not_apply_is_a_warning_and_skipped() {
    let cases = [
        (
            "- id: X\n  disabled: true\n",
            "[over] patch: entry \"X\" not found",
        ),
        (
            "- disabled: true\n",
            "[over] patch: id is required for non-insert patches (item 1, line 1)",
        ),
        (
            "- id: X\n  insert: [{id: n}]\n",
            "[over] patch insert: entry \"X\" not found",
        ),
        (
            "- id: a\n  insert: [{id: n}]\n",
            "[over] patch insert: entry \"a\" is not a group",
        ),
        (
            "- id: a\n  name: other\n  disabled: true\n",
            "[over] patch: entry \"a\" has the name \"pkg-a\", the patch is for \"other\"; skipped",
        ),
        (
            "- id: b\n  name: other\n  disabled: true\n",
            "[over] patch: entry \"b\" has the name \"(none)\", the patch is for \"other\"; skipped",
        ),
    ];
    let untouched = body(&compose(&[("base", BASE)]).unwrap());
    for (patch, warning) in cases {
        assert_eq!(warned(patch), [warning]);
        assert_eq!(body(&over(patch)), untouched, "{patch}");
    }
}

#[test]
fn a_name_that_matches_guards_the_patch_and_renames_nothing() {
    let tree = over("- id: a\n  name: pkg-a\n  disabled: true\n");
    assert!(tree.warnings().is_empty());
    assert!(
        body(&tree)
            .contains("- id: a\n  name: pkg-a\n  config:\n    x: 1\n    y: 2\n  disabled: true\n")
    );
}

#[test]
fn rows_of_a_group_are_addressed_by_id_and_can_be_added_to() {
    let tree = over(
        "- id: child\n  config: {k: 2}\n- id: g\n  insert:\n    - id: new\n- id: new\n  disabled: true\n",
    );
    assert!(tree.warnings().is_empty());
    let dump = body(&tree);
    assert!(
        dump.ends_with(
            "- id: g\n  group: true\n  config:\n    - id: child\n      name: pkg-c\n      config:\n        k: 2\n    - id: new\n      disabled: true\n"
        ),
        "{dump}"
    );
}

#[test]
fn inserting_into_a_group_makes_a_config_that_is_no_list_one() {
    for config in ["", ", config: {x: 1}", ", config: ~", ", config: []"] {
        let base = format!("- insert: [{{id: g, group: true{config}}}]");
        let tree = compose(&[("base", &base), ("over", "- id: g\n  insert: [{id: n}]\n")]).unwrap();
        assert!(tree.warnings().is_empty());
        assert_eq!(
            body(&tree),
            "- id: g\n  group: true\n  config:\n    - id: n\n"
        );
    }
}

#[test]
fn an_inserted_row_is_addressable_by_the_next_item_and_the_next_layer() {
    let tree = compose(&[
        ("base", "- insert: [{id: n, x: 1}]\n- {id: n, x: 2}\n"),
        ("over", "- {id: n, y: 3}"),
    ]);
    assert_eq!(body(&tree.unwrap()), "- id: n\n  x: 2\n  y: 3\n");
}

/// Upstream does not index rows that came by replacing a group's config, and
/// loses the patch (spec/cli.md §10, 15).
#[test]
fn differs_rows_that_replaced_a_groups_config_are_addressable() {
    let tree = over(
        "- id: g\n  config: [{id: other}]\n- id: other\n  disabled: true\n- id: child\n  disabled: true\n",
    );
    let warnings: Vec<String> = tree.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["[over] patch: entry \"child\" not found"]);
    assert!(body(&tree).ends_with("    - id: other\n      disabled: true\n"));
}

#[test]
fn a_row_that_stops_being_a_group_keeps_its_list() {
    let dump = body(&over(
        "- id: g\n  group: false\n- id: child\n  disabled: true\n",
    ));
    assert!(
        dump.contains("- id: g\n  group: false\n  config:\n    - id: child\n"),
        "{dump}"
    );
    assert!(!dump.contains("disabled: true"));
}

#[test]
fn an_empty_file_is_an_empty_list() {
    for text in ["", "# note\n", "[]\n", "~\n"] {
        assert!(
            Layer::parse(Path::new("p.yml"), None, text)
                .unwrap()
                .items
                .is_empty(),
            "{text:?}"
        );
    }
}

#[test]
fn a_file_of_the_wrong_shape_names_file_item_and_line() {
    let cases = [
        (
            "id: a\n",
            "p.yml:1: a patch file is a list of items (`- id: …`), this is a mapping",
        ),
        (
            "- id: a\n- b\n",
            "p.yml:2: item 2: an item is a mapping, this is a string",
        ),
        (
            "- id: a\n- id: 7\n",
            "p.yml:2: item 2: `id` is a string, this is a number",
        ),
        (
            "- insert: {id: a}\n",
            "p.yml:1: item 1: `insert` is a list of rows, this is a mapping",
        ),
        (
            "- insert:\n    - id: a\n    - x\n",
            "p.yml:3: item 1: a row of `insert` is a mapping, this is a string",
        ),
    ];
    for (text, message) in cases {
        let error = Layer::parse(Path::new("p.yml"), None, text).err().unwrap();
        assert_eq!(error.to_string(), message);
    }
    let error = compose(&[(
        "p.yml",
        "- insert:\n    - id: g\n      group: true\n      config: [1]\n",
    )])
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "p.yml:4: item 1: a row of a group is a mapping, this is a number"
    );
}

#[test]
fn items_below_an_empty_list_are_refused_with_the_way_out() {
    let error = Layer::parse(Path::new("p.yml"), None, "# mine\n[]\n- id: a\n")
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.starts_with("p.yml:3: ") && error.contains("remove the line `[]`"),
        "{error}"
    );
}

#[test]
fn the_dump_tells_who_made_each_run_of_rows() {
    let tree = compose(&[
        ("base", BASE),
        (
            "one.yml",
            "- {id: a, disabled: true}\n- insert: [{id: n}, {id: m}]\n",
        ),
        (
            "two.yml",
            "- {id: a, config: !!js \"dshHomePath('x')\"}\n- {id: child, disabled: true}\n",
        ),
    ]);
    assert_eq!(
        tree.unwrap().dump(),
        "\
# == base, patched by one.yml, two.yml
- id: a
  name: pkg-a
  config: !!js dshHomePath('x')
  disabled: true

# == base
- id: b
  disabled: !!js process.env.X ?? 'no'

# == base, patched by two.yml
- id: g
  group: true
  config:
    - id: child
      name: pkg-c
      config:
        k: 1
      disabled: true

# == one.yml
- id: n
- id: m
"
    );
    assert_eq!(compose(&[]).unwrap().dump(), "[]\n");
}

#[test]
fn a_dump_is_a_layer_that_composes_to_itself() {
    let bundles = ["base", "headless"].map(|name| crate::bundle::layer(name).unwrap().unwrap());
    let tree = Tree::compose(bundles.into(), Vec::new()).unwrap();
    assert!(tree.warnings().is_empty());
    let indented: String = tree.dump().lines().map(|l| format!("    {l}\n")).collect();
    let again = compose(&[("again", &format!("- insert:\n{indented}"))]).unwrap();
    assert_eq!(body(&again), body(&tree));
}

#[test]
fn a_components_path_is_relative_to_the_file_that_names_it() {
    let dir = Path::new("/profiles/x");
    let text = "- insert:\n    - {id: a, component: ./a.wasm}\n    - {id: b, component: dsh:b}\n    - {id: c, component: /c.wasm, config: {component: ./kept}}\n";
    let layer = Layer::parse(Path::new("p.yml"), Some(dir), text).unwrap();
    let tree = Tree::compose(vec![layer], Vec::new()).unwrap();
    let paths: Vec<_> = tree
        .entries
        .iter()
        .map(|e| e.str("component").unwrap())
        .collect();
    assert_eq!(paths, ["/profiles/x/a.wasm", "dsh:b", "/c.wasm"]);
    assert!(tree.dump().contains("./kept"));
}
