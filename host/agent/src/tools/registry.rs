//! The tools of an agent. A name belongs to one tool: a second one is refused,
//! whichever row it comes from.

use std::cmp::Ordering;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use dsh_session::Json;

use super::tool::Tool;
use crate::error::AgentError;

/// Stands in `toolOrder` for every tool that it does not name.
const UNLISTED: &str = "<unlisted-tools>";

type Tell = Box<dyn Fn(&[String]) + Send + Sync>;

/// The registered tools and their order on the wire.
#[derive(Default)]
pub struct ToolRegistry {
    tools: RwLock<Vec<Arc<dyn Tool>>>,
    tell: OnceLock<Tell>,
    order: Option<Vec<String>>,
}

impl ToolRegistry {
    /// An empty registry. Without an order, tools go out by name, compared by
    /// UTF-16 code unit (spec/loop.md §8, §9.2).
    ///
    /// # Errors
    /// [`AgentError::ToolOrder`] unless the order names `<unlisted-tools>` exactly once.
    pub fn new(order: Option<Vec<String>>) -> Result<Self, AgentError> {
        if let Some(names) = &order
            && names.iter().filter(|name| *name == UNLISTED).count() != 1
        {
            return Err(AgentError::ToolOrder {
                what: format!("must name {UNLISTED} exactly once"),
            });
        }
        Ok(Self {
            tools: RwLock::default(),
            tell: OnceLock::new(),
            order,
        })
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// [`AgentError::DuplicateTool`].
    pub fn register(&self, tool: Arc<dyn Tool>) -> Result<(), AgentError> {
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        let name = &tool.spec().name;
        if tools.iter().any(|other| other.spec().name == *name) {
            return Err(AgentError::DuplicateTool { name: name.clone() });
        }
        tools.push(tool);
        drop(tools);
        self.changed();
        Ok(())
    }

    /// Tells all names, now and whenever a tool comes or goes. The first stays.
    pub(crate) fn tell(&self, tell: impl Fn(&[String]) + Send + Sync + 'static) {
        if self.tell.set(Box::new(tell)).is_ok() {
            self.changed();
        }
    }

    fn changed(&self) {
        if let Some(tell) = self.tell.get() {
            let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
            let names: Vec<_> = tools.iter().map(|tool| tool.spec().name.clone()).collect();
            drop(tools);
            tell(&names);
        }
    }

    /// Takes a tool away; calls of it that run go on.
    pub fn unregister(&self, name: &str) {
        self.tools
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|tool| tool.spec().name != name);
        self.changed();
    }

    /// The tool of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        tools.iter().find(|tool| tool.spec().name == name).cloned()
    }

    /// The schemas as they go on the wire, in order.
    ///
    /// # Errors
    /// [`AgentError::ToolOrder`] where the order names a tool that is not there.
    pub fn wire(&self) -> Result<Vec<Json>, AgentError> {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        let mut sorted: Vec<_> = tools.iter().map(|tool| tool.spec()).collect();
        sorted.sort_by(|left, right| by_code_unit(&left.name, &right.name));
        let Some(order) = &self.order else {
            return Ok(sorted.iter().map(|spec| spec.wire.clone()).collect());
        };
        let mut wire = Vec::with_capacity(sorted.len());
        for name in order {
            if name == UNLISTED {
                let unlisted = sorted.iter().filter(|spec| !order.contains(&spec.name));
                wire.extend(unlisted.map(|spec| spec.wire.clone()));
            } else {
                let spec = sorted
                    .iter()
                    .find(|spec| spec.name == *name)
                    .ok_or_else(|| AgentError::ToolOrder {
                        what: format!("names \"{name}\", which no mounted row provides"),
                    })?;
                wire.push(spec.wire.clone());
            }
        }
        Ok(wire)
    }
}

fn by_code_unit(left: &str, right: &str) -> Ordering {
    left.encode_utf16().cmp(right.encode_utf16())
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
