use std::sync::Arc;

use async_trait::async_trait;
use dsh_plugin::api::{Place, PluginError, PromptSection};
use dsh_session::Json;

use super::{Assembly, PromptSource, Prompts};
use crate::cancel::Signal;
use crate::dispatch::Dispatch;
use crate::tools::CallScope;

struct Fixed(&'static str, Vec<PromptSection>);

#[async_trait]
impl PromptSource for Fixed {
    fn name(&self) -> &str {
        self.0
    }

    async fn sections(&self, _: &Json, _: &CallScope) -> Result<Vec<PromptSection>, PluginError> {
        Ok(self.1.clone())
    }
}

fn section(name: &str, order: f64, text: &str) -> PromptSection {
    PromptSection {
        place: Place::System,
        name: name.into(),
        order,
        text: text.into(),
        complete: false,
    }
}

fn complete(name: &str) -> PromptSection {
    PromptSection {
        complete: true,
        ..section(name, 0.0, "only this")
    }
}

async fn assembled(layers: Vec<Vec<Vec<PromptSection>>>) -> Result<Assembly, String> {
    let layers = layers.into_iter().map(|layer| {
        layer
            .into_iter()
            .map(|sections| Arc::new(Fixed("row", sections)) as Arc<dyn PromptSource>)
            .collect()
    });
    let dispatch = Dispatch::new(Vec::new()).unwrap();
    let prompts = Prompts::new(layers.collect());
    let assembly = prompts
        .assemble(
            &Json::empty_object(),
            &CallScope::default(),
            &dispatch,
            &Signal::new(),
        )
        .await;
    assembly.map_err(|error| error.to_string())
}

#[tokio::test]
async fn sections_stand_in_order_joined_by_one_blank_line_and_empty_ones_are_dropped() {
    let first = vec![section("b", 100.0, " b "), section("empty", 50.0, "")];
    let second = vec![
        section("a", -100.0, "a\n"),
        section("c", 100.0, "c"),
        section("half", 116.5, "h"),
    ];
    assert_eq!(
        assembled(vec![vec![first, second]]).await.unwrap().system(),
        "a\n\n\n b \n\nc\n\nh"
    );
}

#[tokio::test]
async fn a_nearer_layer_shadows_a_farther_one() {
    let far = vec![vec![section("x", 0.0, "far")]];
    let near = vec![vec![section("x", 0.0, "near")]];
    assert_eq!(assembled(vec![far, near]).await.unwrap().system(), "near");
}

#[tokio::test]
async fn a_section_twice_in_one_layer_costs_the_later_row_and_not_the_turn() {
    let cases = [
        (
            section("x", 0.0, "first"),
            vec![section("z", 1.0, "beside"), section("x", 0.0, "later")],
            "first",
            "later: row first has a section \"x\" already",
        ),
        (
            complete("x"),
            vec![complete("y")],
            "only this",
            "later: its section \"y\" wants to be the only one, and so does row first's",
        ),
    ];
    for (first, later, system, told) in cases {
        let layer: Vec<Arc<dyn PromptSource>> = vec![
            Arc::new(Fixed("first", vec![first])),
            Arc::new(Fixed("later", later)),
        ];
        let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
        let into = Arc::clone(&heard);
        let prompts = Prompts::new(vec![layer]).with_guests(Vec::new(), move |row, why| {
            into.lock().unwrap().push(format!("{row}: {why}"));
        });
        let (dispatch, signal) = (Dispatch::new(Vec::new()).unwrap(), Signal::new());
        let scope = CallScope::default();
        let assembly = prompts
            .assemble(&Json::empty_object(), &scope, &dispatch, &signal)
            .await
            .unwrap();
        assert_eq!(assembly.system(), system);
        assert_eq!(*heard.lock().unwrap(), [told]);
    }
}

#[tokio::test]
async fn a_complete_section_is_the_only_one() {
    let one = assembled(vec![vec![vec![section("x", 0.0, "x"), complete("y")]]])
        .await
        .unwrap();
    assert_eq!(one.system(), "only this");
}

#[tokio::test]
async fn contexts_are_a_list_of_their_own() {
    let context = PromptSection {
        place: Place::Context,
        ..section("x", 0.0, "fact")
    };
    let assembly = assembled(vec![vec![vec![section("x", 0.0, "x"), context]]])
        .await
        .unwrap();
    assert_eq!(assembly.system(), "x");
    assert_eq!(
        assembly
            .context()
            .map(|section| section.text.as_str())
            .collect::<Vec<_>>(),
        ["fact"]
    );
}

#[tokio::test]
async fn without_the_runtime_context_no_context_is_left_whoever_gives_it() {
    let context = PromptSection {
        place: Place::Context,
        ..section("x", 0.0, "fact")
    };
    let source = Fixed("row", vec![section("x", 0.0, "x"), context]);
    let prompts = Prompts::new(vec![vec![Arc::new(source)]]).without_context();
    let assembly = prompts
        .assemble(
            &Json::empty_object(),
            &CallScope::default(),
            &Dispatch::new(Vec::new()).unwrap(),
            &Signal::new(),
        )
        .await
        .unwrap();
    assert_eq!(
        (assembly.system().as_str(), assembly.context().count()),
        ("x", 0)
    );
}

/// Fails, as a plugin that traps.
struct Failing;

#[async_trait]
impl PromptSource for Failing {
    fn name(&self) -> &str {
        "failing"
    }

    async fn sections(&self, _: &Json, _: &CallScope) -> Result<Vec<PromptSection>, PluginError> {
        Err(PluginError::new("TRAP", "it crashed"))
    }
}

#[tokio::test]
async fn a_guest_adds_to_the_prompt_and_takes_nothing_from_it() {
    let own = |name| section(name, 200.0, "more");
    let contexts = PromptSection {
        place: Place::Context,
        ..section("x", 0.0, "fact")
    };
    let cases: Vec<(Arc<dyn PromptSource>, &str, &str)> = vec![
        (Arc::new(Fixed("guest", vec![own("y")])), "base\n\nmore", ""),
        // The name is taken in the other place only.
        (Arc::new(Fixed("guest", vec![contexts])), "base", ""),
        (
            Arc::new(Fixed("guest", vec![own("y"), own("x")])),
            "base",
            "guest: row base has a section \"x\" already",
        ),
        (
            Arc::new(Fixed("guest", vec![own("y"), own("y")])),
            "base",
            "guest: it gives the section \"y\" twice, or two that want to be the only one",
        ),
        (
            Arc::new(Fixed("guest", vec![complete("y"), complete("z")])),
            "base",
            "guest: it gives the section \"z\" twice, or two that want to be the only one",
        ),
        (
            Arc::new(Fixed("guest", vec![complete("y")])),
            "only this",
            "",
        ),
        (Arc::new(Failing), "base", "failing: it crashed"),
    ];
    for (guest, system, told) in cases {
        let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
        let into = Arc::clone(&heard);
        let base = Fixed("base", vec![section("x", 0.0, "base")]);
        let prompts =
            Prompts::new(vec![vec![Arc::new(base)]]).with_guests(vec![guest], move |row, why| {
                into.lock().unwrap().push(format!("{row}: {why}"));
            });
        // It is told of once, however many steps there are.
        for _ in 0..2 {
            let (dispatch, signal) = (Dispatch::new(Vec::new()).unwrap(), Signal::new());
            let scope = CallScope::default();
            let assembly = prompts
                .assemble(&Json::empty_object(), &scope, &dispatch, &signal)
                .await
                .unwrap();
            assert_eq!(assembly.system(), system);
        }
        let wanted: Vec<&str> = Some(told)
            .into_iter()
            .filter(|told| !told.is_empty())
            .collect();
        assert_eq!(*heard.lock().unwrap(), wanted);
    }
}

#[tokio::test]
async fn two_guests_of_one_name_are_told_apart_by_their_order() {
    let guest = |row, text| {
        let source = Fixed(row, vec![complete("z"), section("y", 0.0, text)]);
        Arc::new(source) as Arc<dyn PromptSource>
    };
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let into = Arc::clone(&heard);
    let prompts = Prompts::new(Vec::new()).with_guests(
        vec![guest("one", "1"), guest("two", "2")],
        move |row, why| into.lock().unwrap().push(format!("{row}: {why}")),
    );
    let (dispatch, signal) = (Dispatch::new(Vec::new()).unwrap(), Signal::new());
    let scope = CallScope::default();
    let assembly = prompts
        .assemble(&Json::empty_object(), &scope, &dispatch, &signal)
        .await
        .unwrap();
    assert_eq!(assembly.system(), "only this");
    assert_eq!(
        *heard.lock().unwrap(),
        ["two: row one has a section \"z\" already"]
    );
}

#[tokio::test]
async fn a_guest_that_fails_as_the_turn_is_given_up_is_not_blamed() {
    let prompts = Prompts::new(Vec::new())
        .with_guests(vec![Arc::new(Failing)], |row, why| panic!("{row}: {why}"));
    let (dispatch, signal) = (Dispatch::new(Vec::new()).unwrap(), Signal::new());
    signal.abort(crate::cancel::CancelCause::User);
    let scope = CallScope::default();
    let assembly = prompts
        .assemble(&Json::empty_object(), &scope, &dispatch, &signal)
        .await;
    assert!(assembly.is_err());
}
