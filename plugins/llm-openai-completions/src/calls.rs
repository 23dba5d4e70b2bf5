//! Which tool call a delta belongs to. Servers are asked for an `index` and for an
//! `id` in the first delta; many send neither, or the same for all:
//!
//! - By `index`, where it is known; but another id *and* a name under the same
//!   index begin another call (several calls in one piece, all numbered 0).
//! - Else by `id`.
//! - With neither, a name begins a call, and what has no name goes on with the
//!   last one.
//!
//! A call that gets no id at all is given one, as its result has to name it.

use adapter_support::Emitter;
use guest_support::json::{Json, escape};

/// The calls of one answer.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    known: Vec<Known>,
    /// How many calls the history has: ids that are made up are counted on.
    before: usize,
}

#[derive(Debug)]
struct Known {
    /// The block's.
    at: usize,
    /// The provider's, as it wrote it; empty where it wrote none.
    index: String,
    /// The provider's, escaped; empty where it wrote none.
    id: String,
    named: bool,
}

impl Calls {
    pub(crate) fn after(before: usize) -> Self {
        Self {
            known: Vec::new(),
            before,
        }
    }

    /// Takes in one entry of `tool_calls`.
    pub(crate) fn push(&mut self, delta: Json<'_>, out: &mut Emitter) {
        let function = delta.some("function");
        let index = delta
            .some("index")
            .filter(|index| index.number().is_some())
            .map_or("", Json::raw);
        let id = text(Some(delta), "id");
        let name = text(function, "name");
        let arguments = function.and_then(|function| function.some("arguments"));
        self.take(index, id, name, arguments, out);
    }

    /// Takes in `function_call`, as servers had it before `tool_calls`.
    pub(crate) fn push_function(&mut self, function: Json<'_>, out: &mut Emitter) {
        let name = text(Some(function), "name");
        self.take("function", "", name, function.some("arguments"), out);
    }

    fn take(
        &mut self,
        index: &str,
        id: &str,
        name: &str,
        arguments: Option<Json<'_>>,
        out: &mut Emitter,
    ) {
        let at = match self.find(index, id, name) {
            Some(known) => known,
            None => self.start(index, id, name, out),
        };
        let known = &mut self.known[at];
        if known.index.is_empty() {
            index.clone_into(&mut known.index);
        }
        if known.id.is_empty() && !id.is_empty() {
            id.clone_into(&mut known.id);
            out.set_call(known.at, Some(id), None);
        }
        if !known.named && !name.is_empty() {
            known.named = true;
            out.set_call(known.at, None, Some(name));
        }
        let at = known.at;
        match arguments {
            None => out.append(at, ""),
            Some(json) => match json.escaped() {
                Some(text) => out.append(at, text),
                // An object, where a text with JSON was asked for.
                None => {
                    let mut escaped = String::new();
                    escape(json.raw(), &mut escaped);
                    out.append(at, &escaped);
                }
            },
        }
    }

    fn find(&self, index: &str, id: &str, name: &str) -> Option<usize> {
        let last = |matches: &dyn Fn(&Known) -> bool| self.known.iter().rposition(matches);
        if !index.is_empty()
            && let Some(at) = last(&|known| known.index == index)
        {
            let known = &self.known[at];
            let another = !id.is_empty() && !known.id.is_empty() && known.id != id;
            if !another {
                return Some(at);
            }
            // A server that makes up an id for each delta repeats no name.
            return last(&|known| known.id == id).or((name.is_empty()).then_some(at));
        }
        if !id.is_empty() {
            return last(&|known| known.id == id);
        }
        if index.is_empty() && name.is_empty() {
            return self.known.len().checked_sub(1);
        }
        None
    }

    fn start(&mut self, index: &str, id: &str, name: &str, out: &mut Emitter) -> usize {
        let made_up;
        let shown = if id.is_empty() {
            made_up = format!("call_{}", self.before + self.known.len() + 1);
            &made_up
        } else {
            id
        };
        self.known.push(Known {
            at: out.start_call(shown, name),
            index: index.to_owned(),
            id: id.to_owned(),
            named: !name.is_empty(),
        });
        self.known.len() - 1
    }

    /// The block of the call with this id.
    pub(crate) fn with_id(&self, id: &str) -> Option<usize> {
        let known = self.known.iter().find(|known| known.id == id)?;
        Some(known.at)
    }
}

fn text<'a>(of: Option<Json<'a>>, name: &str) -> &'a str {
    of.and_then(|of| of.get(name)?.escaped()).unwrap_or("")
}
