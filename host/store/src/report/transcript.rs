//! A session as people read it, from append order: what was said, in the order in which it was said.
//!
//! The surface is what the model sees now; a compaction replaces on it what had been said. A transcript is of the
//! other kind: the surface events that were *appended*, in log order, all of them (spec/session.md §3). Where the model
//! was given something shorter instead, a mark says so, and a summary is shown under it: `compacted.rs`.
//! Events come one by one and are written at once, so a log of any length needs no memory.

use std::collections::VecDeque;
use std::io::{self, Write};

use dsh_session::title::printable;
use dsh_session::{Event, Header, Kind, SurfaceOp, Value};

use super::compacted::{Compactions, Mark};
use super::{date, line};
use crate::Damage;

/// Calls whose names are remembered until their results come; more than any step has open at once.
const OPEN_CALLS: usize = 1024;

/// How a transcript looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Indented text for a terminal; long arguments and results are cut, which is said where it is done.
    Terminal {
        /// How many characters of one call's arguments or result are shown; `None` for all.
        max: Option<usize>,
    },
    /// Markdown, whole.
    Markdown,
}

/// Writes a transcript.
pub struct Transcript<W> {
    out: W,
    style: Style,
    /// Name by call id.
    calls: VecDeque<(String, String)>,
    model: String,
    open_turn: Option<u64>,
    compactions: Compactions,
}

impl<W: Write> Transcript<W> {
    /// A transcript that goes to `out`.
    pub fn new(out: W, style: Style) -> Self {
        Self {
            out,
            style,
            calls: VecDeque::new(),
            model: String::new(),
            open_turn: None,
            compactions: Compactions::default(),
        }
    }

    /// What stands above: the title, then who and where.
    ///
    /// # Errors
    /// Of `out`.
    pub fn head(&mut self, header: &Header, title: Option<&str>) -> io::Result<()> {
        let title = title.map_or_else(|| "(no title)".to_owned(), |title| line(title, 200));
        let created = i64::try_from(header.created_at).unwrap_or(i64::MAX);
        let mut facts = vec![
            ("session", line(&header.id, 400)),
            ("created", date(created)),
        ];
        let mut add = |name, value: Option<&str>| {
            facts.extend(value.map(|value| (name, line(value, 4000))));
        };
        add("directory", header.cwd.as_deref());
        add("forked from", header.parent_session.as_deref());
        add("agent preset", header.agent_preset.as_deref());
        match self.style {
            Style::Terminal { .. } => {
                writeln!(self.out, "{title}")?;
                for (name, value) in facts {
                    writeln!(self.out, "  {name:<12} {value}")?;
                }
            }
            Style::Markdown => {
                writeln!(self.out, "# {}\n", escaped(&title))?;
                for (name, value) in facts {
                    writeln!(self.out, "- {name}: {}", code(&value))?;
                }
            }
        }
        Ok(())
    }

    /// The next event of the log.
    ///
    /// # Errors
    /// Of `out`.
    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        let data = event.data.value();
        let mut compactions = std::mem::take(&mut self.compactions);
        compactions.event(event, |mark| self.mark(mark))?;
        self.compactions = compactions;
        match event.kind {
            Kind::TurnStart => {
                let turn = data.get("turn").and_then(Value::u64).unwrap_or(0);
                self.open_turn = Some(turn);
                self.turn(turn, event.time)
            }
            Kind::TurnEnd => {
                self.open_turn = None;
                match ending(data) {
                    Some(text) => self.note(&text),
                    None => Ok(()),
                }
            }
            _ if event.surface_op != Some(SurfaceOp::Append) => Ok(()),
            Kind::UserMessage => self.user(data),
            Kind::AssistantMessage => self.assistant(data),
            Kind::ToolResult => self.result(data),
            _ => Ok(()),
        }
    }

    /// What stands below: a turn without an end, and the damage. `how` says what can be done about it.
    ///
    /// # Errors
    /// Of `out`.
    pub fn end(&mut self, damage: Option<&Damage>, how: &str) -> io::Result<()> {
        std::mem::take(&mut self.compactions).end(|mark| self.mark(mark))?;
        if let Some(turn) = self.open_turn {
            self.note(&format!(
                "turn {turn} has no end in the log: it was interrupted, or it is still running"
            ))?;
        }
        if let Some(damage) = damage {
            self.note(&format!("the log is damaged from here on: {damage}; {how}"))?;
        }
        self.out.flush()
    }

    fn turn(&mut self, turn: u64, time: i64) -> io::Result<()> {
        match self.style {
            Style::Terminal { .. } => writeln!(self.out, "\n── turn {turn}, {} ──", date(time)),
            Style::Markdown => writeln!(self.out, "\n## Turn {turn}\n\n{}", date(time)),
        }
    }

    fn note(&mut self, text: &str) -> io::Result<()> {
        let text = line(text, 4000);
        match self.style {
            Style::Terminal { .. } => writeln!(self.out, "\n[{text}]"),
            Style::Markdown => writeln!(self.out, "\n*{}*", escaped(&text)),
        }
    }

    fn mark(&mut self, mark: Mark) -> io::Result<()> {
        self.note(&mark.line())?;
        match mark {
            Mark::Summary { text, .. } => {
                self.speaker("Summary")?;
                self.text(&text, "")
            }
            Mark::Pruned(_) | Mark::Failed(_) => Ok(()),
        }
    }

    fn speaker(&mut self, who: &str) -> io::Result<()> {
        let who = line(who, 200);
        match self.style {
            Style::Terminal { .. } => writeln!(self.out, "\n{who}:"),
            Style::Markdown => writeln!(self.out, "\n### {}\n", escaped(&who)),
        }
    }

    fn user(&mut self, message: Value<'_>) -> io::Result<()> {
        let source = message.get("source");
        let text = |key| source?.get(key)?.text();
        let who = match text("kind").as_deref() {
            Some("user") => "You".to_owned(),
            Some("plugin") => format!("Plugin {}", text("plugin").as_deref().unwrap_or("?")),
            kind => kind.unwrap_or("?").replace('-', " "),
        };
        self.speaker(&who)?;
        self.blocks(message.get("content"))
    }

    fn assistant(&mut self, data: Value<'_>) -> io::Result<()> {
        let Some(message) = data.get("message") else {
            return Ok(());
        };
        let source = |key| {
            message
                .path(&["source", key])
                .and_then(Value::text)
                .unwrap_or_default()
        };
        let model = format!("{}/{}", source("provider"), source("model"));
        if self.model == model {
            self.speaker("Assistant")?;
        } else {
            self.speaker(&format!("Assistant ({model})"))?;
            self.model = model;
        }
        self.blocks(message.get("content"))?;
        match data.get("interrupted").and_then(Value::bool) {
            Some(true) => self.note("the answer was interrupted here"),
            _ => Ok(()),
        }
    }

    fn result(&mut self, data: Value<'_>) -> io::Result<()> {
        let blocks = data
            .path(&["message", "content"])
            .into_iter()
            .flat_map(Value::items);
        for block in blocks {
            let id = block.get("toolCallId").and_then(Value::text);
            let id = id.unwrap_or_default();
            let name = match self.calls.iter().position(|(call, _)| *call == *id) {
                Some(at) => self
                    .calls
                    .remove(at)
                    .map_or_else(String::new, |(_, name)| name),
                None => id.into_owned(),
            };
            let failed = block.get("isError").and_then(Value::bool) == Some(true);
            let code = data.path(&["error", "code"]).and_then(Value::text);
            let how = match (failed, code) {
                (_, Some(code)) => format!(" ({})", line(&code, 100)),
                (true, None) => " (error)".to_owned(),
                (false, None) => String::new(),
            };
            let mut text = String::new();
            for part in block.get("content").into_iter().flat_map(Value::items) {
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push('\n');
                }
                text.push_str(&plain_block(part));
            }
            self.tool("←", &format!("{}{how}", line(&name, 100)), &text)?;
        }
        Ok(())
    }

    fn blocks(&mut self, content: Option<Value<'_>>) -> io::Result<()> {
        for block in content.into_iter().flat_map(Value::items) {
            match block.get("type").and_then(Value::text).as_deref() {
                Some("text") => self.text(&text_of(block), "")?,
                Some("reasoning") => self.text(&text_of(block), "reasoning")?,
                Some("tool-call") => {
                    let text = |key| block.get(key).and_then(Value::text).unwrap_or_default();
                    let name = text("name").into_owned();
                    self.tool("→", &line(&name, 100), &text("arguments"))?;
                    if self.calls.len() == OPEN_CALLS {
                        self.calls.pop_front();
                    }
                    self.calls.push_back((text("id").into_owned(), name));
                }
                _ => self.text(&plain_block(block), "")?,
            }
        }
        Ok(())
    }

    fn text(&mut self, text: &str, mark: &str) -> io::Result<()> {
        let text = printable(text);
        let text = text.trim_matches('\n');
        if text.trim().is_empty() {
            return Ok(());
        }
        match (self.style, mark) {
            (Style::Terminal { .. }, "") => {
                text.lines().try_for_each(|l| writeln!(self.out, "  {l}"))
            }
            (Style::Terminal { .. }, mark) => {
                writeln!(self.out, "  ({mark})")?;
                text.lines().try_for_each(|l| writeln!(self.out, "  | {l}"))
            }
            (Style::Markdown, "") => writeln!(self.out, "{text}\n"),
            (Style::Markdown, mark) => {
                writeln!(self.out, "> *{mark}*\n>")?;
                text.lines().try_for_each(|l| writeln!(self.out, "> {l}"))?;
                writeln!(self.out)
            }
        }
    }

    /// A call with its arguments, or a result.
    fn tool(&mut self, arrow: &str, name: &str, text: &str) -> io::Result<()> {
        let text = printable(text);
        let text = text.trim_matches('\n');
        match self.style {
            Style::Terminal { max } => {
                let (shown, left) = cut(text, max);
                let mut lines = shown.lines();
                let first = lines.next().unwrap_or_default();
                // A call's arguments are one line mostly, and stand beside its name.
                if arrow == "→" && left.is_none() && lines.clone().next().is_none() {
                    return writeln!(self.out, "  {arrow} {name} {first}");
                }
                writeln!(self.out, "  {arrow} {name}")?;
                shown
                    .lines()
                    .try_for_each(|l| writeln!(self.out, "    {l}"))?;
                match left {
                    Some(left) => writeln!(self.out, "    … {left} left out; --full shows all"),
                    None => Ok(()),
                }
            }
            Style::Markdown => {
                let word = if arrow == "→" { "Call" } else { "Result" };
                let fence = fence(text);
                writeln!(self.out, "**{word}: {}**\n\n{fence}", escaped(name))?;
                if !text.is_empty() {
                    writeln!(self.out, "{text}")?;
                }
                writeln!(self.out, "{fence}\n")
            }
        }
    }
}

/// Why a turn ended, unless it just did.
fn ending(data: Value<'_>) -> Option<String> {
    let turn = data.get("turn").and_then(Value::u64).unwrap_or(0);
    let reason = data.get("reason")?;
    let text = |keys: &[&str]| reason.path(keys).and_then(Value::text);
    let kind = text(&["kind"])?;
    let detail = match &*kind {
        "completed" => return None,
        "aborted" => match (text(&["reason", "kind"])?, text(&["reason", "reason"])) {
            (by, Some(why)) => format!(" by {by}: {why}"),
            (by, None) => format!(" by {by}"),
        },
        "error" => {
            let part = |key| text(&["error", key]).unwrap_or_default();
            format!(": {} {}", part("code"), part("message"))
        }
        _ => String::new(),
    };
    Some(format!("turn {turn} ended: {kind}{detail}"))
}

fn text_of(block: Value<'_>) -> String {
    block
        .get("text")
        .and_then(Value::text)
        .unwrap_or_default()
        .into_owned()
}

/// A block of which the text is shown, or what else it is.
fn plain_block(block: Value<'_>) -> String {
    match block.get("type").and_then(Value::text).as_deref() {
        Some("text") => text_of(block),
        Some(kind) => format!("[{}]", line(kind, 40)),
        None => "[?]".to_owned(),
    }
}

/// The first `max` characters, and how much that leaves out.
fn cut(text: &str, max: Option<usize>) -> (&str, Option<String>) {
    // A little more than the limit is shown whole: a mark would take as much room.
    let Some((end, _)) = max.and_then(|max| {
        text.char_indices().nth(max + max / 10)?;
        text.char_indices().nth(max)
    }) else {
        return (text, None);
    };
    let end = text[..end]
        .rfind('\n')
        .filter(|at| *at > end / 2)
        .unwrap_or(end);
    let rest = text[end..].trim_start_matches('\n');
    let (chars, lines) = (rest.chars().count(), rest.lines().count());
    let left = match lines {
        0 | 1 => format!("{chars} characters"),
        _ => format!("{lines} lines, {chars} characters"),
    };
    (&text[..end], Some(left))
}

/// A fence that the text does not contain.
fn fence(text: &str) -> String {
    let longest = text
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}

/// A short text as code in a line of Markdown.
fn code(text: &str) -> String {
    let fence = fence(text);
    let fence = if text.contains('`') { &*fence } else { "`" };
    format!("{fence}{text}{fence}")
}

/// A line of text that no Markdown is made of.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
