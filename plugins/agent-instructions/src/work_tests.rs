use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use guest_support::disk::{Listed, Look};
use guest_support::json::{Json, text};

use super::*;

/// Files by path, and the log that a host would keep.
#[derive(Default)]
struct World {
    files: RefCell<BTreeMap<String, Vec<u8>>>,
    broken: RefCell<BTreeSet<String>>,
    calls: Cell<usize>,
    reads: Cell<usize>,
    warnings: RefCell<Vec<String>>,
    events: RefCell<Vec<String>>,
    surface: RefCell<Vec<String>>,
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

    fn remove(&self, path: &str) {
        self.files.borrow_mut().remove(path);
    }

    /// What the host does with a draft that a step takes in.
    fn enter(&self, draft: &str) {
        let seq = self.events.borrow().len();
        self.events.borrow_mut().push(format!(
            r#"{{"type":"user/message","seq":{seq},"data":{draft},"surfaceOp":"append"}}"#
        ));
        self.surface.borrow_mut().push(draft.to_owned());
    }

    /// A summary in place of all that the model sees.
    fn compact(&self) {
        let seq = self.events.borrow().len();
        self.events.borrow_mut().push(format!(
            r#"{{"type":"user/message","seq":{seq},"data":{{}},"surfaceOp":{{"op":"replace","start":0,"end":{seq}}}}}"#
        ));
        *self.surface.borrow_mut() = vec!["{}".to_owned()];
    }
}

impl Disk for World {
    fn look(&self, path: &str) -> Result<Option<Look>, String> {
        let look = self.read(path, 0)?.map(|(_, look)| look);
        self.reads.set(self.reads.get() - 1);
        Ok(look)
    }

    fn read(&self, path: &str, limit: u32) -> Result<Option<(Vec<u8>, Look)>, String> {
        self.calls.set(self.calls.get() + 1);
        self.reads.set(self.reads.get() + 1);
        if self.broken.borrow().contains(path) {
            return Err("permission denied".to_owned());
        }
        let files = self.files.borrow();
        let Some(content) = files.get(path) else {
            return Ok(None);
        };
        let look = Look {
            size: content.len() as u64,
            version: crate::sha1::hex(content),
        };
        Ok(Some((
            content[..content.len().min(limit as usize)].to_vec(),
            look,
        )))
    }

    fn exists(&self, path: &str) -> bool {
        let below = format!("{path}/");
        let files = self.files.borrow();
        files
            .keys()
            .any(|file| file == path || file.starts_with(&below))
    }

    fn list(&self, _: &str) -> Result<Vec<Listed>, String> {
        Ok(Vec::new())
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

const CONFIG: &str = r#"{"userFile":"/home/AGENTS.md"}"#;

/// The component in a session whose working directory is `/w/p`.
struct Run<'a> {
    world: &'a World,
    instructions: Instructions,
}

impl<'a> Run<'a> {
    fn start(world: &'a World) -> Self {
        Self::configured(world, CONFIG)
    }

    fn configured(world: &'a World, config: &str) -> Self {
        Self {
            world,
            instructions: Instructions::new(config),
        }
    }

    fn propose(&mut self, first: bool) -> Option<String> {
        let cwd = || "/w/p".to_owned();
        self.instructions
            .before_step(first, cwd, self.world, self.world)
    }

    /// A step that takes in what is proposed; actions and paths, and whether it is a baseline.
    fn step(&mut self, first: bool) -> Option<Told> {
        let draft = self.propose(first)?;
        self.world.enter(&draft);
        Some(Told::read(&draft))
    }
}

#[derive(Debug, PartialEq)]
struct Told {
    baseline: bool,
    changes: Vec<String>,
    texts: Vec<String>,
}

impl Told {
    fn read(draft: &str) -> Self {
        let draft = Json::parse(draft).unwrap();
        let source = draft.get("source").unwrap();
        let changes = source.get("changes").unwrap().items();
        let changes = changes.map(|change| {
            let scope = text(change, "scope").unwrap().replace('\0', "|");
            format!(
                "{} {scope} {}",
                text(change, "action").unwrap(),
                text(change, "path").unwrap()
            )
        });
        let texts = draft.get("content").unwrap().items();
        Self {
            baseline: source.get("baseline").is_some(),
            changes: changes.collect(),
            texts: texts.map(|block| text(block, "text").unwrap()).collect(),
        }
    }
}

fn project() -> World {
    World::of(&[
        ("/w/.git/HEAD", "ref"),
        ("/w/AGENTS.md", "the project\n"),
        ("/w/p/AGENTS.md", "the package\n"),
        ("/w/p/CLAUDE.md", "  the package\n\n"),
        ("/w/p/CLAUDE.local.md", "mine\n"),
        ("/home/AGENTS.md", "me\n"),
        ("/AGENTS.md", "nobody's"),
        ("/w/p/deep/er/AGENTS.md", "deep\n"),
    ])
}

#[test]
fn the_baseline_goes_from_the_person_through_the_project_down_to_the_directory() {
    let world = project();
    let mut run = Run::start(&world);
    let told = run.step(true).unwrap();
    assert!(told.baseline);
    // `CLAUDE.md` says what `AGENTS.md` says, so it is not told twice.
    assert_eq!(
        told.changes,
        [
            "set /home|AGENTS.md /home/AGENTS.md",
            "set ..|AGENTS.md ../AGENTS.md",
            "set .|AGENTS.md AGENTS.md",
            "set .|CLAUDE.local.md CLAUDE.local.md",
        ]
    );
    assert_eq!(told.texts.len(), 1);
    let at = |text: &str| told.texts[0].find(text).unwrap();
    assert!(at("me\n") < at("the project") && at("the project") < at("the package"));
    assert!(at("the package") < at("mine"));
}

#[test]
fn what_was_told_is_not_repeated_in_this_run_or_the_next() {
    let world = project();
    let mut run = Run::start(&world);
    assert!(run.step(true).is_some());
    assert_eq!(run.step(false), None);
    assert_eq!(run.step(true), None);
    assert_eq!(Run::start(&world).step(true), None);
}

#[test]
fn what_no_step_took_in_is_proposed_again() {
    let world = project();
    let mut run = Run::start(&world);
    let proposed = run.propose(true).unwrap();
    assert_eq!(run.propose(false).as_deref(), Some(proposed.as_str()));
    run.instructions.touch("/w/p/deep/er/x");
    let more = run.propose(false).unwrap();
    assert_eq!(run.propose(false).as_deref(), Some(more.as_str()));
    assert_eq!(Told::read(&more).changes.len(), 5);
}

#[test]
fn nothing_is_told_where_there_is_nothing() {
    let world = World::of(&[
        ("/w/p/AGENTS.md", " \n"),
        ("/AGENTS.md", "outside of every project"),
    ]);
    let mut run = Run::start(&world);
    assert_eq!(run.step(true), None);
    assert_eq!(run.step(false), None);
    world.write("/w/p/AGENTS.md", "now");
    let told = run.step(true).unwrap();
    assert_eq!(
        (told.baseline, told.changes),
        (true, vec!["set .|AGENTS.md AGENTS.md".to_owned()])
    );
}

#[test]
fn a_change_between_two_runs_is_told_as_one() {
    let world = project();
    Run::start(&world).step(true).unwrap();
    world.write("/w/AGENTS.md", "the project, changed\n");
    world.remove("/w/p/CLAUDE.local.md");
    world.write("/w/p/AGENTS.local.md", "new");
    let told = Run::start(&world).step(true).unwrap();
    assert!(!told.baseline);
    assert_eq!(
        told.changes,
        [
            "replace ..|AGENTS.md ../AGENTS.md",
            "set .|AGENTS.local.md AGENTS.local.md",
            "remove .|CLAUDE.local.md CLAUDE.local.md",
        ]
    );
    assert!(told.texts[0].contains("Updated instructions from: ../AGENTS.md"));
    assert!(told.texts[1].contains("Additional instructions from: AGENTS.local.md"));
    assert!(told.texts[2].contains("Instructions removed: CLAUDE.local.md"));
    assert_eq!(Run::start(&world).step(true), None);
}

#[test]
fn another_configuration_makes_another_baseline() {
    let world = project();
    let mut run = Run::start(&world);
    run.step(true);
    run.instructions.touch("/w/p/deep/er/x");
    run.step(false);
    let other = r#"{"instructionFileCandidates":["CLAUDE.md","AGENTS.md"]}"#;
    let told = Run::configured(&world, other).step(true).unwrap();
    assert!(told.baseline);
    assert_eq!(
        told.changes,
        [
            "set ..|AGENTS.md ../AGENTS.md",
            "set .|CLAUDE.md CLAUDE.md",
            "set .|CLAUDE.local.md CLAUDE.local.md",
            "set deep/er|AGENTS.md deep/er/AGENTS.md",
        ]
    );
    assert_eq!(Run::configured(&world, other).step(true), None);
}

#[test]
fn what_lies_deeper_is_told_once_a_tool_touched_it() {
    let world = project();
    let mut run = Run::start(&world);
    run.step(true);
    run.instructions.touch("/w/p/deep/er/est/file.rs");
    let told = run.step(false).unwrap();
    assert_eq!(told.changes, ["set deep/er|AGENTS.md deep/er/AGENTS.md"]);
    assert!(!told.baseline && told.texts[0].contains("below `deep/er`"));
    run.instructions.touch("/w/p/deep/er/other.rs");
    assert_eq!(run.step(false), None);
    // A change of the file itself, by a tool, is told at once; any other when the next turn begins.
    world.write("/w/p/deep/er/AGENTS.md", "deeper\n");
    assert_eq!(run.step(false), None);
    run.instructions.touch("/w/p/deep/er/AGENTS.md");
    assert_eq!(
        run.step(false).unwrap().changes,
        ["replace deep/er|AGENTS.md deep/er/AGENTS.md"]
    );
    world.remove("/w/p/deep/er/AGENTS.md");
    assert_eq!(run.step(false), None);
    assert_eq!(
        run.step(true).unwrap().changes,
        ["remove deep/er|AGENTS.md deep/er/AGENTS.md"]
    );
    // A resumed session knows of it too.
    assert_eq!(Run::start(&world).step(true), None);
}

#[test]
fn a_touch_outside_of_the_project_is_none() {
    let world = project();
    world.write("/x/AGENTS.md", "of another");
    let mut run = Run::start(&world);
    run.step(true);
    let before = world.calls.get();
    for path in [
        "/x/file",
        "/w2/file",
        "/w/p/file",
        "/w/file",
        "/file",
        "relative",
    ] {
        run.instructions.touch(path);
    }
    assert_eq!(run.step(false), None);
    assert_eq!(world.calls.get(), before);
}

#[test]
fn what_a_compaction_put_away_is_told_again_in_the_same_turn() {
    let world = project();
    let mut run = Run::start(&world);
    run.step(true);
    world.compact();
    run.instructions.touch("/w/p/deep/er/x");
    let told = run.step(false).unwrap();
    assert!(told.baseline);
    assert_eq!(told.changes.len(), 5);
    assert_eq!((told.texts.len(), run.step(false)), (2, None));
    // What was told of deeper directories comes back when they are touched again.
    world.compact();
    assert_eq!(run.step(false).unwrap().changes.len(), 4);
    run.instructions.touch("/w/p/deep/er/x");
    assert_eq!(run.step(false).unwrap().changes.len(), 1);
}

#[test]
fn a_step_in_the_middle_of_a_turn_looks_at_no_file() {
    let world = project();
    let mut run = Run::start(&world);
    run.step(true);
    let before = world.calls.get();
    for _ in 0..5 {
        assert_eq!(run.step(false), None);
    }
    assert_eq!(world.calls.get(), before);
}

#[test]
fn a_file_is_read_again_only_when_it_changed() {
    let world = project();
    let mut run = Run::start(&world);
    run.step(true);
    world.write("/w/p/AGENTS.md", "other");
    let before = world.reads.get();
    run.step(true);
    // That one, and the places where nothing was, which cost one call either way.
    let absent = 9 - 5;
    assert_eq!(world.reads.get() - before, 1 + absent);
}

#[test]
fn what_cannot_be_shown_is_left_out_and_said_once() {
    let world = World::of(&[
        ("/w/p/AGENTS.md", "fine"),
        ("/w/p/CLAUDE.md", "binary \0"),
        ("/w/p/AGENTS.local.md", &"x".repeat(2_000_000)),
        ("/w/p/CLAUDE.local.md", "closed"),
    ]);
    world
        .broken
        .borrow_mut()
        .insert("/w/p/CLAUDE.local.md".to_owned());
    let mut run = Run::start(&world);
    assert_eq!(
        run.step(true).unwrap().changes,
        ["set .|AGENTS.md AGENTS.md"]
    );
    assert_eq!(run.step(true), None);
    assert_eq!(
        world.warnings.borrow().len(),
        3,
        "{:?}",
        world.warnings.borrow()
    );
    // A file that was told and cannot be read now says nothing new.
    world
        .broken
        .borrow_mut()
        .insert("/w/p/AGENTS.md".to_owned());
    assert_eq!(run.step(true), None);
}

#[test]
fn more_text_than_memory_has_place_for_costs_files_and_not_the_turn() {
    let world = World::of(&[("/w/p/.git/HEAD", "")]);
    let names = [
        "AGENTS.md",
        "CLAUDE.md",
        "AGENTS.local.md",
        "CLAUDE.local.md",
    ];
    let mut cwd = "/w/p".to_owned();
    for depth in 0..25 {
        for name in names {
            world.write(
                &format!("{cwd}/{name}"),
                &format!("{depth} {name} ").repeat(9_000),
            );
        }
        cwd.push_str("/d");
    }
    world.write(&format!("{cwd}/AGENTS.md"), "The last.");
    let mut instructions = Instructions::new("{}");
    let draft = instructions.before_step(true, || cwd.clone(), &world, &world);
    let draft = draft.unwrap();
    assert!(draft.len() < 200_000 && draft.contains("The last."));
    assert!(instructions.files.held() <= 5 << 20);
    assert!(
        world
            .warnings
            .borrow()
            .iter()
            .all(|line| line.contains("fill the 4194304 bytes"))
    );
    assert_eq!(world.warnings.borrow().len(), 37);
}
