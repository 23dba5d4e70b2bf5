//! Events to a tree.

use super::{Kind, Map, Node, scalar};
use granit_parser::{Event, Parser, ScalarStyle, Span, Tag};
use std::borrow::Cow;
use std::collections::HashMap;

/// What is wrong with a document, and on which 1-based line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// More nodes than any configuration has: a document that grows past it by its
/// aliases is refused instead of being unfolded.
const MOST_NODES: usize = 200_000;

/// Reads one document; none for a text that is empty but for comments.
pub(crate) fn parse(text: &str) -> Result<Option<Node>, Fault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader {
        parser: Parser::new_from_str(text),
        anchors: HashMap::new(),
        nodes: 0,
    };
    let mut root = None;
    while let Some((event, span)) = reader.next()? {
        match event {
            Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
            Event::StreamEnd => break,
            event if root.is_none() => root = Some(reader.node(event, &span)?),
            _ => return Err(fault(&span, "a second YAML document; one is expected")),
        }
    }
    Ok(root)
}

fn fault(span: &Span, message: impl Into<String>) -> Fault {
    Fault {
        line: span.start.line(),
        message: message.into(),
    }
}

struct Reader<'t> {
    parser: Parser<'t, granit_parser::StrInput<'t>>,
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<Option<(Event<'t>, Span)>, Fault> {
        self.parser.next_event().transpose().map_err(|e| Fault {
            line: e.marker().line().max(1),
            message: e.info(),
        })
    }

    fn inside(&mut self) -> Result<(Event<'t>, Span), Fault> {
        self.next()?.ok_or_else(|| Fault {
            line: 1,
            message: "the document ends too early".into(),
        })
    }

    fn count(&mut self, nodes: usize, span: &Span) -> Result<(), Fault> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MOST_NODES {
            return Err(fault(span, "the document is too large"));
        }
        Ok(())
    }

    fn node(&mut self, event: Event<'t>, span: &Span) -> Result<Node, Fault> {
        let before = self.nodes;
        self.count(1, span)?;
        let anchor = event.anchor_id();
        let line = span.start.line();
        let kind = match event {
            Event::Scalar(text, style, _, tag) => {
                scalar_node(&text, style, tag.as_ref()).map_err(|m| fault(span, m))?
            }
            Event::SequenceStart(_, _, tag) => {
                collection_tag(tag.as_ref(), "seq").map_err(|m| fault(span, m))?;
                self.sequence()?
            }
            Event::MappingStart(_, _, tag) => {
                collection_tag(tag.as_ref(), "map").map_err(|m| fault(span, m))?;
                self.mapping()?
            }
            Event::Alias(id) => {
                let Some((node, size)) = self.anchors.get(&id).cloned() else {
                    return Err(fault(span, "an alias inside of what it stands for"));
                };
                self.count(size, span)?;
                return Ok(node);
            }
            _ => return Err(fault(span, "not a YAML value")),
        };
        let node = Node { line, kind };
        if let Some(id) = anchor {
            self.anchors.insert(id, (node.clone(), self.nodes - before));
        }
        Ok(node)
    }

    fn sequence(&mut self) -> Result<Kind, Fault> {
        let mut items = Vec::new();
        loop {
            match self.inside()? {
                (Event::SequenceEnd, _) => return Ok(Kind::Seq(items)),
                (event, span) => items.push(self.node(event, &span)?),
            }
        }
    }

    fn mapping(&mut self) -> Result<Kind, Fault> {
        let mut map = Map::default();
        loop {
            let key = match self.inside()? {
                (Event::MappingEnd, _) => return Ok(Kind::Map(map)),
                (Event::Scalar(text, ..), span) => {
                    if map.get(&text).is_some() {
                        return Err(fault(&span, format!("the key {text:?} is there twice")));
                    }
                    text.into_owned()
                }
                (_, span) => return Err(fault(&span, "a mapping's key must be a plain word")),
            };
            let (event, span) = self.inside()?;
            let value = self.node(event, &span)?;
            map.0.push((key, value));
        }
    }
}

/// What `!!` stands for.
const YAML: &str = "tag:yaml.org,2002:";

fn scalar_node(text: &str, style: ScalarStyle, tag: Option<&Cow<'_, Tag>>) -> Result<Kind, String> {
    let Some(tag) = tag else {
        return if style == ScalarStyle::Plain {
            scalar::resolve(text).map_err(Into::into)
        } else {
            Ok(Kind::String(text.to_owned()))
        };
    };
    let name = tag.suffix_in_namespace(YAML);
    match name.as_deref() {
        Some("js") => Ok(Kind::Js(text.trim().to_owned())),
        Some("str") => Ok(Kind::String(text.to_owned())),
        Some(wanted @ ("null" | "bool" | "int" | "float")) => {
            let kind = scalar::resolve(text)?;
            let found = match &kind {
                Kind::Null => "null",
                Kind::Bool(_) => "bool",
                Kind::Number(n) if n.is_f64() => "float",
                Kind::Number(_) if wanted == "float" => "float",
                Kind::Number(_) => "int",
                _ => "str",
            };
            if found == wanted {
                Ok(kind)
            } else {
                Err(format!("the value is not a {wanted}, as its tag says"))
            }
        }
        // `! text`: a string, whatever it looks like.
        None if tag.original() == "!" => Ok(Kind::String(text.to_owned())),
        _ => Err(format!("unknown tag {}", tag.original())),
    }
}

fn collection_tag(tag: Option<&Cow<'_, Tag>>, own: &str) -> Result<(), String> {
    match tag {
        Some(tag) if tag.suffix_in_namespace(YAML).as_deref() == Some("js") => {
            Err("!!js takes an expression on one line, not a list or a mapping".into())
        }
        Some(tag) if tag.core_suffix() != Some(own) => {
            Err(format!("unknown tag {}", tag.original()))
        }
        _ => Ok(()),
    }
}
