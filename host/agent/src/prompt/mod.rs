//! What the model is told before the conversation: the system prompt's sections
//! and the facts of the runtime-context snapshot (spec/loop.md §9).
//!
//! Sections come from layers: the host's own, then the rows'. A nearer layer
//! shadows a farther one by name; a name twice in one layer is a fault and not a
//! choice, which the later row pays for. Texts stand as they are: whoever makes one
//! fills its own variables in.
//!
//! Installed plugins are *guests*: they add to the prompt and take nothing from
//! it. One that fails, or whose section has a name that is taken, is left out for
//! the step and told of once, as a stranger must not be able to end every turn.

mod component;
mod facts;
mod snapshot;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use dsh_plugin::api::{Place, PluginError, PromptSection};
use dsh_session::{Json, Value};

pub use component::ComponentPrompt;
pub use facts::HostFacts;
pub(crate) use snapshot::candidate as snapshot_candidate;

use crate::cancel::Signal;
use crate::dispatch::{Dispatch, EventContext};
use crate::error::AgentError;
use crate::tools::CallScope;

/// Gives sections.
#[async_trait]
pub trait PromptSource: Send + Sync {
    /// The row, as errors name it.
    fn name(&self) -> &str;

    /// Its sections, for `{provider, model, cwd, …}`; asked before each step.
    ///
    /// # Errors
    /// Ends the turn: a prompt with a hole in it would mislead the model silently.
    async fn sections(
        &self,
        variables: &Json,
        scope: &CallScope,
    ) -> Result<Vec<PromptSection>, PluginError>;
}

/// Told of a guest's row, and why it is left out of the prompt.
type Tell = dyn Fn(&str, &str) + Send + Sync;

/// All sources of an agent, a list for each layer, farthest first; then guests.
#[derive(Default)]
pub struct Prompts {
    layers: Vec<Vec<Arc<dyn PromptSource>>>,
    guests: Vec<Arc<dyn PromptSource>>,
    tell: Option<Box<Tell>>,
    told: Mutex<HashSet<String>>,
    system_only: bool,
}

/// A section, and the row that gave it.
struct Given<'a> {
    section: PromptSection,
    row: &'a str,
}

impl Given<'_> {
    fn is_named_like(&self, other: &PromptSection) -> bool {
        self.section.place == other.place && self.section.name == other.name
    }
}

/// The prompt of one step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assembly {
    system: Vec<PromptSection>,
    context: Vec<PromptSection>,
}

impl Prompts {
    /// Takes the layers, farthest first.
    #[must_use]
    pub fn new(layers: Vec<Vec<Arc<dyn PromptSource>>>) -> Self {
        Self {
            layers,
            ..Self::default()
        }
    }

    /// Adds installed plugins, in order. `tell` hears once of each row that is left
    /// out: its name, and why.
    #[must_use]
    pub fn with_guests(
        mut self,
        guests: Vec<Arc<dyn PromptSource>>,
        tell: impl Fn(&str, &str) + Send + Sync + 'static,
    ) -> Self {
        self.guests = guests;
        self.tell = Some(Box::new(tell));
        self
    }

    /// Leaves the runtime context out, whoever gives it: `includeRuntimeContext: false`
    /// of the row `system-prompt` (spec/loop.md §9.2).
    #[must_use]
    pub fn without_context(mut self) -> Self {
        self.system_only = true;
        self
    }

    /// [`Self::gather`], without the contexts where those are to be left out.
    ///
    /// # Errors
    /// A source of a layer that fails, `complete` sections of two layers.
    pub(crate) async fn assemble(
        &self,
        variables: &Json,
        scope: &CallScope,
        dispatch: &Dispatch,
        signal: &Signal,
    ) -> Result<Assembly, AgentError> {
        let mut assembly = self.gather(variables, scope, dispatch, signal).await?;
        if self.system_only {
            assembly.context.clear();
        }
        Ok(assembly)
    }

    /// Asks every source and puts the sections in order; then the waterfall
    /// `system-prompt/assemble` may edit them.
    async fn gather(
        &self,
        variables: &Json,
        scope: &CallScope,
        dispatch: &Dispatch,
        signal: &Signal,
    ) -> Result<Assembly, AgentError> {
        let mut sections: Vec<Given<'_>> = Vec::new();
        for layer in &self.layers {
            let mut of_layer: Vec<Given<'_>> = Vec::new();
            for source in layer {
                let failed = |error: PluginError| {
                    AgentError::Prompt(format!("{}: {}", source.name(), error.message))
                };
                let offered = source.sections(variables, scope).await.map_err(failed)?;
                match welcome(&of_layer, &offered) {
                    Ok(()) => of_layer.extend(offered.into_iter().map(|section| Given {
                        section,
                        row: source.name(),
                    })),
                    Err(why) => self.leave_out(source.name(), &why),
                }
            }
            sections.retain(|far| !of_layer.iter().any(|near| near.is_named_like(&far.section)));
            sections.append(&mut of_layer);
        }
        for guest in &self.guests {
            match guest.sections(variables, scope).await {
                Ok(offered) => match welcome(&sections, &offered) {
                    Ok(()) => sections.extend(offered.into_iter().map(|section| Given {
                        section,
                        row: guest.name(),
                    })),
                    Err(why) => self.leave_out(guest.name(), &why),
                },
                // The turn is over, which is no fault of the guest's.
                Err(error) if signal.aborted() => {
                    let name = guest.name();
                    return Err(AgentError::Prompt(format!("{name}: {}", error.message)));
                }
                Err(error) => self.leave_out(guest.name(), &error.message),
            }
        }
        let sections = sections.into_iter().map(|given| given.section).collect();
        let assembled = Assembly::of(sections)?;
        if !dispatch.listens("system-prompt/assemble", None) {
            return Ok(assembled);
        }
        let context = EventContext {
            signal: signal.clone(),
        };
        let edited = dispatch
            .waterfall(
                "system-prompt/assemble",
                None,
                assembled.view(),
                &context,
                |assembly| async { Ok::<_, AgentError>(assembly) },
            )
            .await
            .map_err(|error| AgentError::Prompt(error.to_string()))?;
        assembled.edited(&edited)
    }
}

impl Prompts {
    fn leave_out(&self, row: &str, why: &str) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tell) = &self.tell
            && told.insert(row.to_owned())
        {
            tell(row, why);
        }
    }
}

/// Whether a row's sections may stand beside what is there.
fn welcome(there: &[Given<'_>], offered: &[PromptSection]) -> Result<(), String> {
    for (index, section) in offered.iter().enumerate() {
        let name = &section.name;
        if let Some(twin) = there.iter().find(|other| other.is_named_like(section)) {
            return Err(format!("row {} has a section {name:?} already", twin.row));
        }
        let same = |other: &PromptSection| {
            other.place == section.place
                && (other.name == *name || other.complete && section.complete)
        };
        if offered[..index].iter().any(same) {
            return Err(format!(
                "it gives the section {name:?} twice, or two that want to be the only one"
            ));
        }
        let only = |other: &&Given<'_>| {
            other.section.place == section.place && other.section.complete && section.complete
        };
        if let Some(other) = there.iter().find(only) {
            return Err(format!(
                "its section {name:?} wants to be the only one, and so does row {}'s",
                other.row
            ));
        }
    }
    Ok(())
}

impl Assembly {
    fn of(sections: Vec<PromptSection>) -> Result<Self, AgentError> {
        let (system, context): (Vec<_>, Vec<_>) = sections
            .into_iter()
            .partition(|section| section.place == Place::System);
        Ok(Self {
            system: in_order(system)?,
            context: in_order(context)?,
        })
    }

    /// The system prompt; empty when no section says anything.
    #[must_use]
    pub fn system(&self) -> String {
        joined(&self.system)
    }

    /// The facts of the snapshot that say something, in order.
    pub(crate) fn context(&self) -> impl Iterator<Item = &PromptSection> {
        self.context
            .iter()
            .filter(|section| !section.text.is_empty())
    }

    fn view(&self) -> Json {
        Json::object(|assembly| {
            for (member, sections) in [("sections", &self.system), ("contexts", &self.context)] {
                assembly.array(member, |list| {
                    for section in sections {
                        list.object(|object| {
                            object
                                .str("name", &section.name)
                                .f64("order", section.order)
                                .str("text", &section.text);
                        });
                    }
                });
            }
        })
    }

    /// What the waterfall made of it. A `complete` section stays what it was.
    fn edited(self, by: &Json) -> Result<Self, AgentError> {
        let read = |member: &str, place: Place, before: Vec<PromptSection>| {
            if before.iter().any(|section| section.complete) {
                return Ok(before);
            }
            let Some(list) = by.get(member) else {
                return Ok(before);
            };
            let sections = list.items().map(|item| {
                let text = |key: &str| {
                    item.get(key)
                        .and_then(Value::text)
                        .map(std::borrow::Cow::into_owned)
                };
                Some(PromptSection {
                    place,
                    name: text("name")?,
                    order: item.get("order").and_then(Value::f64)?,
                    text: text("text")?,
                    complete: false,
                })
            });
            let sections = sections.collect::<Option<Vec<_>>>().ok_or_else(|| {
                AgentError::Prompt("a listener of system-prompt/assemble gave a section without name, order or text".into())
            })?;
            in_order(sections)
        };
        Ok(Self {
            system: read("sections", Place::System, self.system)?,
            context: read("contexts", Place::Context, self.context)?,
        })
    }
}

fn in_order(mut sections: Vec<PromptSection>) -> Result<Vec<PromptSection>, AgentError> {
    let complete = sections.iter().filter(|section| section.complete).count();
    if complete > 1 {
        return Err(AgentError::Prompt(
            "two rows give a section that wants to be the only one".into(),
        ));
    }
    if complete == 1 {
        sections.retain(|section| section.complete);
    }
    sections.sort_by(|left, right| left.order.total_cmp(&right.order));
    Ok(sections)
}

fn joined(sections: &[PromptSection]) -> String {
    let texts: Vec<&str> = sections
        .iter()
        .map(|section| section.text.as_str())
        .filter(|text| !text.is_empty())
        .collect();
    texts.join("\n\n")
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
