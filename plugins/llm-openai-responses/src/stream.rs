//! A responses stream into chunks (spec/llm.md §7.7).
//!
//! Every event names the item that it belongs to, by its place in the answer
//! (`output_index`) and by its id. Servers that speak this protocol get either
//! wrong: one leaves the places out, one gives every item place 0, one writes
//! another id on each event. So an event is taken to an item that both fit, else
//! to one that the id names, else to the one at its place; what nobody announced
//! opens a block of its own, as text that is lost is worse than one block more.

use std::collections::HashMap;

use adapter_support::failure::Failure;
use adapter_support::{Emitter, Kind, Stop, Usage};
use guest_support::json::{Json, escape, unescape};

use crate::event::{Fields, Item, ItemKind};
use crate::sign::{call_id, seal, sign};
use crate::told;

/// Characters shown of an event that is no JSON.
const SHOWN: usize = 120;

/// What a part of a summary ends with, escaped, as in the final text.
const BETWEEN: &str = "\\n\\n";

/// The items of an answer so far.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    slots: Vec<Slot>,
    /// The newest slot at a place, as the provider wrote its number.
    by_place: HashMap<String, usize>,
    /// The newest slot of an id or call id, escaped.
    by_id: HashMap<String, usize>,
    /// The newest of each kind, for events that name no item.
    newest: [Option<usize>; 3],
    /// Blocks of reasoning items that came without their encrypted content.
    unsealed: HashMap<String, usize>,
}

#[derive(Debug)]
struct Slot {
    kind: ItemKind,
    /// The emitter's; of no meaning where the kind has no block.
    block: usize,
    /// Escaped.
    id: Option<String>,
    call_id: Option<String>,
    open: bool,
    /// Text of the part under way has come.
    told: bool,
    /// A call's, escaped, where an event told them whole.
    arguments: Option<String>,
}

impl Slot {
    fn is_named(&self, id: &str) -> bool {
        self.id.as_deref() == Some(id) || self.call_id.as_deref() == Some(id)
    }
}

/// Where an event belongs.
enum Place {
    At(usize),
    /// To something that is over, or that shows nothing.
    Nowhere,
    /// To an item that nobody announced.
    Unknown,
}

impl Stream {
    /// Takes in one event; false: nothing after it counts.
    pub(crate) fn take(&mut self, name: Option<&str>, data: &str, out: &mut Emitter) -> bool {
        // Some servers end this protocol as they end chat completions.
        if data.trim_start().starts_with("[DONE]") {
            return false;
        }
        let Some(json) = Json::parse(data) else {
            let start: String = data.chars().take(SHOWN).collect();
            let text = format!("the stream has an event that is not JSON: {start}");
            out.fail_as(&Failure::new("PI_AI_ERROR", text));
            return false;
        };
        let fields = Fields::of(json);
        let kind = fields.kind.or(name).unwrap_or_default();
        if matches!(kind, "error" | "response.error") || fields.error.is_some_and(told::is_some) {
            out.fail_as(&told::failure(fields.error.unwrap_or(json), "error"));
            return false;
        }
        match kind {
            "response.created" | "response.queued" | "response.in_progress" => {
                if let Some(id) = fields.response.and_then(|of| of.get("id")?.escaped()) {
                    out.response_id(id);
                }
            }
            "response.output_item.added" => {
                if let Some(item) = fields.item {
                    self.added(&Item::of(item), fields.output_index, out);
                }
            }
            "response.output_item.done" => {
                if let Some(item) = fields.item {
                    self.done(&Item::of(item), fields.output_index, out);
                }
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                self.delta(ItemKind::Message, &fields, fields.delta, out);
            }
            "response.reasoning_summary_text.delta"
            | "response.reasoning_text.delta"
            | "response.reasoning.delta" => {
                self.delta(ItemKind::Reasoning, &fields, fields.delta, out);
            }
            "response.function_call_arguments.delta" => {
                self.delta(ItemKind::Call, &fields, fields.delta, out);
            }
            "response.output_text.done" | "response.refusal.done" => {
                let whole = fields.text.or(fields.refusal);
                self.whole(ItemKind::Message, &fields, whole, out);
            }
            "response.reasoning_summary_text.done"
            | "response.reasoning_text.done"
            | "response.reasoning.done" => {
                self.whole(ItemKind::Reasoning, &fields, fields.text, out);
            }
            "response.reasoning_summary_part.done" => self.part_done(&fields, out),
            "response.function_call_arguments.done" => self.arguments(&fields, out),
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled"
            | "response.done" => {
                self.terminal(kind, fields.response.unwrap_or(json), out);
                return false;
            }
            // Annotations, searches, progress, and what is to come.
            _ => {}
        }
        !out.is_over()
    }

    fn added(&mut self, item: &Item<'_>, place: Option<&str>, out: &mut Emitter) {
        let here = place.and_then(|place| self.by_place.get(place));
        let again = here.is_some_and(|at| {
            let slot = &self.slots[*at];
            slot.open && slot.kind == item.kind && slot.id.as_deref() == item.id
        });
        if !again {
            self.open(item, place, out);
        }
    }

    /// Opens a slot, and a block where the item shows.
    fn open(&mut self, item: &Item<'_>, place: Option<&str>, out: &mut Emitter) -> usize {
        let block = match item.kind {
            ItemKind::Reasoning => out.start(Kind::Reasoning),
            ItemKind::Message => out.start(Kind::Text),
            ItemKind::Call => out.start_call(&call_id(item), item.name.unwrap_or_default()),
            ItemKind::Other => 0,
        };
        let at = self.slots.len();
        self.slots.push(Slot {
            kind: item.kind,
            block,
            id: item.id.map(str::to_owned),
            call_id: item.call_id.map(str::to_owned),
            open: true,
            told: false,
            arguments: None,
        });
        if let Some(place) = place {
            self.by_place.insert(place.to_owned(), at);
        }
        for id in [item.id, item.call_id].into_iter().flatten() {
            self.by_id.insert(id.to_owned(), at);
        }
        if let Some(newest) = self.newest.get_mut(item.kind as usize) {
            *newest = Some(at);
        }
        at
    }

    /// The slot that an event of this kind belongs to.
    fn find(&self, kind: ItemKind, place: Option<&str>, ids: [Option<&str>; 2]) -> Place {
        let here = place.and_then(|place| self.by_place.get(place)).copied();
        let named = ids
            .into_iter()
            .flatten()
            .find_map(|id| self.by_id.get(id))
            .copied();
        let fits = |at: &usize| self.slots[*at].kind == kind;
        let agrees = |at: &usize| {
            let mut ids = ids.into_iter().flatten().peekable();
            ids.peek().is_none() || ids.any(|id| self.slots[*at].is_named(id))
        };
        let at = here
            .filter(|at| fits(at) && agrees(at))
            .or(named.filter(fits))
            .or(here.filter(|at| fits(at) && self.slots[*at].open));
        if let Some(at) = at {
            return if self.slots[at].open {
                Place::At(at)
            } else {
                Place::Nowhere
            };
        }
        let hidden = |at: &usize| self.slots[*at].kind == ItemKind::Other && self.slots[*at].open;
        if here.is_some_and(|at| hidden(&at)) || named.is_some_and(|at| hidden(&at)) {
            return Place::Nowhere;
        }
        // Without a place it can only mean the one under way.
        let newest = self.newest.get(kind as usize).copied().flatten();
        match newest.filter(|at| self.slots[*at].open) {
            Some(at) if place.is_none() => Place::At(at),
            _ => Place::Unknown,
        }
    }

    /// The slot that text of this kind goes to, opened where nobody announced it.
    fn slot_of(&mut self, kind: ItemKind, of: &Fields<'_>, out: &mut Emitter) -> Option<usize> {
        match self.find(kind, of.output_index, [of.item_id, None]) {
            Place::At(at) => Some(at),
            Place::Nowhere => None,
            // Of which tool, only the item tells.
            Place::Unknown if kind == ItemKind::Call => None,
            Place::Unknown => {
                let item = Item::unannounced(kind, of.item_id);
                Some(self.open(&item, of.output_index, out))
            }
        }
    }

    fn delta(&mut self, kind: ItemKind, of: &Fields<'_>, delta: Option<&str>, out: &mut Emitter) {
        let Some(delta) = delta else { return };
        if let Some(at) = self.slot_of(kind, of, out) {
            self.slots[at].told = true;
            out.append(self.slots[at].block, delta);
        }
    }

    /// The whole text of a part, of which deltas brought nothing.
    fn whole(&mut self, kind: ItemKind, of: &Fields<'_>, whole: Option<&str>, out: &mut Emitter) {
        let Some(whole) = whole else { return };
        if let Some(at) = self.slot_of(kind, of, out)
            && !self.slots[at].told
        {
            self.slots[at].told = true;
            out.append(self.slots[at].block, whole);
        }
    }

    fn part_done(&mut self, of: &Fields<'_>, out: &mut Emitter) {
        let found = self.find(ItemKind::Reasoning, of.output_index, [of.item_id, None]);
        if let Place::At(at) = found {
            self.slots[at].told = false;
            out.append(self.slots[at].block, BETWEEN);
        }
    }

    /// A call's arguments, whole: what the deltas left out follows as one. Where
    /// they are something else than the deltas, as with a provider that hides those,
    /// they count and the deltas do not.
    fn arguments(&mut self, of: &Fields<'_>, out: &mut Emitter) {
        let Some(whole) = of.arguments else { return };
        let found = self.find(ItemKind::Call, of.output_index, [of.item_id, None]);
        let Place::At(at) = found else { return };
        let slot = &mut self.slots[at];
        // Only the first is compared: comparing takes as long as they are.
        if slot.arguments.is_none() {
            let rest = missing(out.streamed(slot.block), whole);
            if !rest.is_empty() {
                out.append(slot.block, &rest);
            }
            slot.arguments = Some(whole.to_owned());
        }
    }

    fn done(&mut self, item: &Item<'_>, place: Option<&str>, out: &mut Emitter) {
        let at = match self.find(item.kind, place, [item.id, item.call_id]) {
            Place::At(at) => at,
            Place::Nowhere => return,
            Place::Unknown => {
                // Gateways end messages that were never begun and hold nothing.
                let holds = match item.kind {
                    ItemKind::Message => !item.text().is_empty(),
                    ItemKind::Call => item.name.is_some(),
                    ItemKind::Reasoning => item.encrypted || !item.text().is_empty(),
                    ItemKind::Other => false,
                };
                // The place may be that of an item which is still open.
                let free = |place: &&str| {
                    let there = self.by_place.get(*place);
                    there.is_none_or(|at| !self.slots[*at].open)
                };
                let place = place.filter(free);
                if !holds {
                    return;
                }
                self.open(item, place, out)
            }
        };
        self.close(at, Some(item), out);
    }

    /// Closes a slot with what its item says, else with what came of it.
    fn close(&mut self, at: usize, item: Option<&Item<'_>>, out: &mut Emitter) {
        let slot = &mut self.slots[at];
        slot.open = false;
        if slot.kind == ItemKind::Other {
            return;
        }
        let block = slot.block;
        if let Some(item) = item {
            sign(block, item, out);
            if item.kind == ItemKind::Reasoning
                && !item.encrypted
                && let Some(id) = item.id
            {
                self.unsealed.insert(id.to_owned(), block);
            }
            if item.kind == ItemKind::Call {
                let (id, name) = out.call(block);
                let id = id.is_empty().then(|| call_id(item));
                let name = item.name.filter(|_| name.is_empty());
                out.set_call(block, id.as_deref(), name);
            }
        }
        let last = item.map(Item::text).filter(|text| !text.is_empty());
        match last.or_else(|| slot.arguments.take()) {
            Some(text) => {
                if out.streamed(block).is_empty() {
                    out.append(block, &text);
                }
                out.end_with(block, &text);
            }
            None if slot.kind == ItemKind::Reasoning => {
                let text = out.streamed(block);
                let text = text.strip_suffix(BETWEEN).unwrap_or(text).to_owned();
                out.end_with(block, &text);
            }
            None => out.end(block),
        }
    }

    /// The answer's end: how it ended, what it cost, and what was not told before.
    fn terminal(&mut self, kind: &str, response: Json<'_>, out: &mut Emitter) {
        let member = |name| response.some(name);
        if let Some(id) = member("id").and_then(Json::escaped) {
            out.response_id(id);
        }
        if let Some(usage) = member("usage") {
            out.usage(counts(usage));
        }
        let reason = member("incomplete_details").and_then(|details| details.get("reason"));
        let reason = reason.and_then(Json::escaped);
        let status = match (kind, member("status").and_then(Json::escaped)) {
            ("response.failed", _) => "failed",
            ("response.cancelled", _) => "cancelled",
            ("response.incomplete", _) | (_, Some("incomplete")) => "incomplete",
            (_, Some(status @ ("failed" | "cancelled"))) => status,
            _ => "completed",
        };
        let failure = match status {
            "failed" => match (member("error"), reason) {
                (Some(error), _) => told::failure(error, "failed"),
                (None, Some(reason)) => told::plain(&format!(
                    "the provider failed to answer: {}",
                    unescape(reason)
                )),
                (None, None) => told::plain("the provider failed to answer and gave no reason"),
            },
            "cancelled" => told::plain("the provider cancelled its answer"),
            // A filter is no cap: what it left is no answer to go on with.
            "incomplete" if reason == Some("content_filter") => {
                told::plain("the provider's content filter stopped the answer (content_filter)")
            }
            _ => {
                if let Some(output) = member("output") {
                    self.catch_up(output, out);
                }
                for at in 0..self.slots.len() {
                    if self.slots[at].open {
                        self.close(at, None, out);
                    }
                }
                if !out.is_over() {
                    out.finish(match status {
                        "incomplete" => Stop::Length,
                        _ if out.has_calls() => Stop::ToolUse,
                        _ => Stop::Stop,
                    });
                }
                return;
            }
        };
        out.fail_as(&failure);
    }

    /// Takes from the answer's own list what no event told: everything, where there
    /// was none; else texts or calls, where there was no text or no call. Items are
    /// not matched one by one, as servers give them new ids there. And encrypted
    /// reasoning that came only now.
    fn catch_up(&mut self, output: Json<'_>, out: &mut Emitter) {
        let seen = |kind| self.slots.iter().any(|slot| slot.kind == kind);
        let told = [ItemKind::Reasoning, ItemKind::Message, ItemKind::Call].map(seen);
        let nothing = !told.contains(&true);
        for item in output.items() {
            let item = Item::of(item);
            match item.kind {
                ItemKind::Reasoning if !nothing => {
                    if item.encrypted
                        && let Some(block) = item.id.and_then(|id| self.unsealed.remove(id))
                    {
                        seal(block, &item, out);
                    }
                }
                ItemKind::Other => {}
                kind if nothing || !told[kind as usize] => {
                    let holds = kind != ItemKind::Message || !item.text().is_empty();
                    if holds {
                        let at = self.open(&item, None, out);
                        self.close(at, Some(&item), out);
                    }
                }
                _ => {}
            }
            if out.is_over() {
                return;
            }
        }
    }
}

/// What `whole` has beyond `streamed`, all three escaped; nothing where it does
/// not begin so.
fn missing(streamed: &str, whole: &str) -> String {
    if let Some(rest) = whole.strip_prefix(streamed) {
        return rest.to_owned();
    }
    // The two may be escaped differently.
    let mut out = String::new();
    if let Some(rest) = unescape(whole).strip_prefix(&*unescape(streamed)) {
        escape(rest, &mut out);
    }
    out
}

/// The provider's counts, made disjoint. Servers of chat completions keep that
/// protocol's names.
fn counts(usage: Json<'_>) -> Usage {
    let count = |of: Option<Json<'_>>, name: &str| of?.some(name)?.whole();
    let either = |name: &str, other: &str| {
        let of = Some(usage);
        count(of, name).or_else(|| count(of, other)).unwrap_or(0)
    };
    let details = usage
        .some("input_tokens_details")
        .or_else(|| usage.some("prompt_tokens_details"));
    let cache_read = count(details, "cached_tokens").unwrap_or(0);
    let cache_write = count(details, "cache_write_tokens").unwrap_or(0);
    Usage {
        input: either("input_tokens", "prompt_tokens")
            .saturating_sub(cache_read)
            .saturating_sub(cache_write),
        output: either("output_tokens", "completion_tokens"),
        cache_read,
        cache_write,
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
