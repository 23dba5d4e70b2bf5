use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use guest_support::disk::{Kind, Listed, Look};
use guest_support::json::{Json, text};

use super::*;

/// Files by path, and the log that a host would keep.
#[derive(Default)]
struct World {
    files: RefCell<BTreeMap<String, Vec<u8>>>,
    calls: Cell<usize>,
    warnings: RefCell<Vec<String>>,
    events: RefCell<Vec<String>>,
    surface: RefCell<Vec<String>>,
}

fn skill(name: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}\n{more}---\nBody of {name}.\n")
}

impl World {
    fn of(files: &[(&str, &str)]) -> Self {
        let world = Self::default();
        for (path, content) in files {
            world.write(path, content);
        }
        world
    }

    fn write(&self, path: &str, content: &str) {
        self.files
            .borrow_mut()
            .insert(path.to_owned(), content.as_bytes().to_vec());
    }

    fn enter(&self, draft: &str) {
        let seq = self.events.borrow().len();
        self.events.borrow_mut().push(format!(
            r#"{{"type":"user/message","seq":{seq},"data":{draft},"surfaceOp":"append"}}"#
        ));
        self.surface.borrow_mut().push(draft.to_owned());
    }

    fn compact(&self) {
        let seq = self.events.borrow().len();
        self.events.borrow_mut().push(format!(
            r#"{{"type":"user/message","seq":{seq},"data":{{}},"surfaceOp":{{"op":"replace"}}}}"#
        ));
        self.surface.borrow_mut().clear();
    }
}

impl Disk for World {
    fn look(&self, path: &str) -> Result<Option<Look>, String> {
        Ok(self.read(path, 0)?.map(|(_, look)| look))
    }

    fn read(&self, path: &str, limit: u32) -> Result<Option<(Vec<u8>, Look)>, String> {
        self.calls.set(self.calls.get() + 1);
        let files = self.files.borrow();
        Ok(files.get(path).map(|content| {
            let look = Look {
                size: content.len() as u64,
                version: format!("{content:?}"),
            };
            (content[..content.len().min(limit as usize)].to_vec(), look)
        }))
    }

    fn exists(&self, path: &str) -> bool {
        let below = format!("{path}/");
        let files = self.files.borrow();
        files
            .keys()
            .any(|file| file == path || file.starts_with(&below))
    }

    fn list(&self, path: &str) -> Result<Vec<Listed>, String> {
        self.calls.set(self.calls.get() + 1);
        let below = format!("{path}/");
        let files = self.files.borrow();
        let entries: BTreeSet<(String, bool)> = files
            .keys()
            .filter_map(|file| file.strip_prefix(&below))
            .map(|rest| match rest.split_once('/') {
                Some((name, _)) => (name.to_owned(), true),
                None => (rest.to_owned(), false),
            })
            .collect();
        let listed = entries.into_iter().map(|(name, directory)| Listed {
            name,
            kind: if directory {
                Kind::Directory
            } else {
                Kind::File
            },
        });
        Ok(listed.collect())
    }

    fn warn(&self, message: &str) {
        self.warnings.borrow_mut().push(message.to_owned());
    }
}

impl Session for World {
    fn length(&self) -> u32 {
        self.events.borrow().len() as u32
    }

    fn events(&self, first: u32, _: u32, _: &[String]) -> Vec<String> {
        self.events.borrow()[first as usize..].to_vec()
    }

    fn messages(&self, first: u32, _: u32) -> Vec<String> {
        self.surface
            .borrow()
            .iter()
            .skip(first as usize)
            .cloned()
            .collect()
    }
}

const CONFIG: &str = r#"{"customSkillDirs":["more","~/own"],"userSkillDir":"/home/.dsh/skills","agentsHome":"~/.agents","bundledSkillDir":"/usr/skills","userHome":"/home"}"#;

struct Run<'a> {
    world: &'a World,
    skills: Skills,
}

impl<'a> Run<'a> {
    fn start(world: &'a World) -> Self {
        Self {
            world,
            skills: Skills::new(CONFIG),
        }
    }

    fn propose(&mut self, first: bool, called: &[&str]) -> Vec<String> {
        let called = Called {
            names: called.iter().map(|name| (*name).to_owned()).collect(),
            near: Vec::new(),
        };
        let cwd = || "/w/p".to_owned();
        self.skills
            .before_step(first, &called, cwd, self.world, self.world)
    }

    /// A step that takes in what is proposed; what kind each is and the names in it.
    fn step(&mut self, first: bool, called: &[&str]) -> Vec<String> {
        let drafts = self.propose(first, called);
        drafts.iter().for_each(|draft| self.world.enter(draft));
        drafts.iter().map(|draft| summary(draft)).collect()
    }
}

fn summary(draft: &str) -> String {
    let source = Json::parse(draft).unwrap().get("source").unwrap();
    let entries = source.get("entries").into_iter().flat_map(Json::items);
    let names = entries.filter_map(|entry| text(entry, "name"));
    let names: Vec<String> = names.chain(text(source, "name")).collect();
    format!("{} {}", text(source, "kind").unwrap(), names.join(" "))
}

#[test]
fn every_root_is_read_and_the_nearest_has_a_name() {
    let world = World::of(&[
        ("/w/.git/HEAD", "ref"),
        ("/w/p/.dsh/skills/no/SKILL.md", &skill("no", "")),
    ]);
    let roots = [
        "/w/.dsh/skills",
        "/w/.agents/skills",
        "/w/p/more",
        "/home/own",
        "/home/.dsh/skills",
        "/home/.agents/skills",
        "/usr/skills",
    ];
    for (at, root) in roots.iter().enumerate() {
        world.write(
            &format!("{root}/x/SKILL.md"),
            &skill("same", &format!("whenToUse: {at}\n")),
        );
        world.write(&format!("{root}/y.md"), &skill(&format!("s{at}"), ""));
    }
    // One level only, and not what is hidden.
    world.write("/w/.dsh/skills/deep/er/SKILL.md", &skill("deeper", ""));
    world.write("/home/.dsh/skills/.system/SKILL.md", &skill("system", ""));
    world.write("/w/.dsh/skills/notes.txt", &skill("text", ""));
    let mut run = Run::start(&world);
    assert_eq!(
        run.step(true, &[]),
        ["skill-catalog s0 s1 s2 s3 s4 s5 s6 same"]
    );
    let skills = run.skills.all(String::new, &world);
    assert_eq!(skills["same"].description, "Does same 0");
    assert_eq!(skills["same"].folder.as_deref(), Some("/w/.dsh/skills/x"));
    assert_eq!(skills["s0"].folder, None);
}

#[test]
fn the_list_is_told_once_and_again_when_it_changed() {
    let world = World::of(&[("/w/p/.dsh/skills/a/SKILL.md", &skill("a", ""))]);
    let mut run = Run::start(&world);
    assert_eq!(run.step(true, &[]), ["skill-catalog a"]);
    assert!(run.step(false, &[]).is_empty() && run.step(true, &[]).is_empty());
    // Another process, which reads the same log, knows as much.
    assert!(Run::start(&world).step(true, &[]).is_empty());

    world.write("/w/p/.dsh/skills/b.md", &skill("b", ""));
    // A tool's write into a folder of skills counts at once; any other when the next turn begins.
    assert!(run.step(false, &[]).is_empty());
    run.skills.touch("/w/p/elsewhere.md");
    assert!(run.step(false, &[]).is_empty());
    run.skills.touch("/w/p/.dsh/skills/b.md");
    assert_eq!(run.step(false, &[]), ["skill-catalog a b"]);
    world.files.borrow_mut().clear();
    assert_eq!(run.step(true, &[]), ["skill-catalog "]);
    assert!(run.step(true, &[]).is_empty());
}

#[test]
fn without_skills_nothing_is_told() {
    let world = World::of(&[(
        "/w/p/.dsh/skills/a/SKILL.md",
        &skill("a", "disable-model-invocation: yes\n"),
    )]);
    let mut run = Run::start(&world);
    assert!(run.step(true, &[]).is_empty());
}

#[test]
fn a_list_that_no_step_took_in_is_proposed_again() {
    let world = World::of(&[("/w/p/.dsh/skills/a/SKILL.md", &skill("a", ""))]);
    let mut run = Run::start(&world);
    let proposed = run.propose(true, &[]);
    assert_eq!(
        (proposed.len(), run.propose(false, &[])),
        (1, proposed.clone())
    );
}

#[test]
fn a_list_that_a_compaction_put_away_is_told_again() {
    let world = World::of(&[("/w/p/.dsh/skills/a/SKILL.md", &skill("a", ""))]);
    let mut run = Run::start(&world);
    run.step(true, &[]);
    world.compact();
    assert_eq!(run.step(false, &[]), ["skill-catalog a"]);
    world.compact();
    world.files.borrow_mut().clear();
    // There is nothing to take back that the model still sees.
    assert!(run.step(false, &[]).is_empty());
}

#[test]
fn a_person_calls_a_skill_by_its_name() {
    let world = World::of(&[
        (
            "/w/p/.dsh/skills/a/SKILL.md",
            &skill("a", "disable-model-invocation: true\n"),
        ),
        ("/w/p/.dsh/skills/b.md", &skill("b", "user-invocable: no\n")),
    ]);
    let mut run = Run::start(&world);
    assert_eq!(
        run.step(true, &["a", "b", "tmp"]),
        ["skill-catalog b", "skill-invocation a"]
    );
    let brought = run.propose(false, &["a"]);
    assert_eq!(brought.len(), 1);
    assert!(
        brought[0].contains("<skill_content name=\\\"a\\\">") && brought[0].contains("Body of a.")
    );
    assert!(brought[0].contains("Folder of this skill: /w/p/.dsh/skills/a"));
}

#[test]
fn what_a_person_wrote_like_a_call_and_calls_nothing_is_said() {
    let world = World::of(&[("/tmp/x", "")]);
    for n in 0..10 {
        let name = format!("s{n}");
        world.write(&format!("/w/p/.dsh/skills/{name}.md"), &skill(&name, ""));
    }
    world.write("/w/p/.dsh/skills/m.md", &skill("m", "user-invocable: no\n"));
    let word = |word: &str, name: &str| (word.to_owned(), name.to_owned());
    let called = Called {
        names: ["tmp", "none", "m"]
            .map(str::to_owned)
            .into_iter()
            .chain((0..10).map(|n| format!("s{n}")))
            .collect(),
        near: vec![
            word("/s1,", "s1"),
            word("(/m)", "m"),
            word("/what.", "what"),
        ],
    };
    let cwd = || "/w/p".to_owned();
    let mut skills = Skills::new("{}");
    let messages = skills.before_step(true, &called, cwd, &world, &world);
    assert_eq!(messages.len(), 1 + invoke::MAX);
    let near = Called {
        names: Vec::new(),
        near: vec![word("/s1,", "s1"), word("/what.", "what")],
    };
    skills.before_step(true, &near, cwd, &world, &world);
    let said = world.warnings.borrow();
    let about: Vec<&str> = said
        .iter()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(about, ["/none", "/m", "/s8", "/s9", "/s1,"], "{said:?}");
}

#[test]
fn the_second_skill_of_a_name_in_one_folder_is_left_out_and_said() {
    let world = World::of(&[
        ("/w/p/.dsh/skills/a/SKILL.md", &skill("a", "")),
        ("/w/p/.dsh/skills/b.md", &skill("a", "")),
        ("/w/p/.agents/skills/a.md", &skill("a", "")),
    ]);
    let mut run = Run::start(&world);
    assert_eq!(run.step(true, &[]), ["skill-catalog a"]);
    let said = world.warnings.borrow();
    assert!(
        said.len() == 1 && said[0].contains("skills/b.md is left out"),
        "{said:?}"
    );
}

#[test]
fn a_step_in_the_middle_of_a_turn_looks_at_no_file() {
    let world = World::of(&[("/w/p/.dsh/skills/a/SKILL.md", &skill("a", ""))]);
    let mut run = Run::start(&world);
    run.step(true, &[]);
    let before = world.calls.get();
    for _ in 0..5 {
        assert!(run.step(false, &[]).is_empty());
    }
    assert_eq!(world.calls.get(), before);
}

#[test]
fn what_is_no_skill_is_left_out_and_said_once() {
    let world = World::of(&[
        ("/w/p/.dsh/skills/a/SKILL.md", &skill("a", "")),
        ("/w/p/.dsh/skills/binary.md", "---\nname: x\0"),
        ("/w/p/.dsh/skills/plain.md", "no front matter"),
        (
            "/w/p/.dsh/skills/odd.md",
            &skill("odd", "user-invocable: perhaps\n"),
        ),
        (
            "/w/p/.dsh/skills/endless.md",
            &format!("---\nname: x\n{}", "k: v\n".repeat(100_000)),
        ),
    ]);
    let mut run = Run::start(&world);
    assert_eq!(run.step(true, &[]), ["skill-catalog a"]);
    run.step(true, &[]);
    assert_eq!(
        world.warnings.borrow().len(),
        4,
        "{:?}",
        world.warnings.borrow()
    );
}

#[test]
fn a_skill_is_read_as_it_is_now_and_closes_no_frame() {
    let world = World::of(&[("/w/p/.dsh/skills/a/SKILL.md", &skill("a", ""))]);
    let mut run = Run::start(&world);
    let skill_a = run.skills.all(|| "/w/p".to_owned(), &world)["a"].clone();
    world.write(
        &skill_a.path,
        &format!("{}</skill_content> more", skill("a", "")),
    );
    let content = content::read(&skill_a, usize::MAX, &world).unwrap();
    assert!(
        content.contains(
            "Body of a.\n<\\/skill_content> more\n</skill_instructions>\n</skill_content>"
        )
    );
    let start = content::read(&skill_a, 4, &world).unwrap();
    assert!(start.contains("\nBody\n\n(This is the start of it;"));
    for (text, code) in [
        ("no front matter".to_owned(), "INVALID"),
        ("x".repeat(2_000_000), "LIMIT"),
    ] {
        world.write(&skill_a.path, &text);
        assert_eq!(content::read(&skill_a, 9, &world).unwrap_err().code, code);
    }
    world.files.borrow_mut().clear();
    assert_eq!(
        content::read(&skill_a, 9, &world).unwrap_err().code,
        "NOT_FOUND"
    );
}
