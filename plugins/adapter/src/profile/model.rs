//! A model of a profile.

use guest_support::json::{Object, array, quote};

use super::{Compat, Profile};

/// Levels of thinking, from none to most.
pub const LEVELS: [&str; 7] = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];

/// A model, as it can be called.
#[derive(Clone, Debug)]
pub struct Model {
    /// As the provider names it.
    pub id: String,
    /// As people do.
    pub name: String,
    /// Where it is served, if not at the profile's base URL.
    pub base_url: Option<String>,
    /// Tokens.
    pub context_window: u64,
    /// The most that it may answer with.
    pub max_tokens: u32,
    /// What of that a person wrote, which then is the call's default.
    pub default_max_tokens: Option<u32>,
    /// Whether it takes pictures.
    pub vision: bool,
    /// How it can think; none: it does not.
    pub efforts: Option<Efforts>,
    /// Switches in force.
    pub compat: Compat,
}

/// Levels that a model has, and their spelling on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Efforts(pub(super) Vec<(&'static str, Option<String>)>);

/// What is said to a model that is not to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Off<'a> {
    /// It always thinks: nothing can be said.
    Unsupported,
    /// By saying nothing, or as the protocol has it.
    Silent,
    /// By this word.
    Word(&'a str),
}

impl Efforts {
    /// Whether it has this level.
    pub fn has(&self, level: &str) -> bool {
        self.0.iter().any(|(known, _)| *known == level)
    }

    /// The levels, from none to most.
    pub fn levels(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(level, _)| *level)
    }
}

impl Model {
    /// Whether it thinks at all.
    pub fn reasons(&self) -> bool {
        self.efforts.is_some()
    }

    /// A level as the provider spells it; the level itself where nothing else is
    /// known.
    pub fn spelling<'a>(&'a self, level: &'a str) -> &'a str {
        self.mapped(level).unwrap_or(level)
    }

    /// A level's spelling, where one was written.
    pub fn mapped(&self, level: &str) -> Option<&str> {
        let efforts = self.efforts.as_ref()?;
        let found = efforts.0.iter().find(|(known, _)| *known == level)?;
        found.1.as_deref()
    }

    /// How it is told not to think.
    pub fn off(&self) -> Off<'_> {
        match &self.efforts {
            Some(efforts) if !efforts.has("off") => Off::Unsupported,
            _ => self.mapped("off").map_or(Off::Silent, Off::Word),
        }
    }

    /// Where it is served.
    pub fn base_url<'a>(&'a self, profile: &'a Profile) -> &'a str {
        self.base_url.as_deref().unwrap_or(&profile.base_url)
    }

    /// What the contract wants to know of it.
    pub fn info(&self, profile: &Profile) -> String {
        let input = if self.vision {
            r#"["text","image"]"#
        } else {
            r#"["text"]"#
        };
        let context = Object::new()
            .number("contextWindow", self.context_window)
            .build();
        let cap = self.default_max_tokens.map(|cap| cap.to_string());
        let reasoning = self.efforts.as_ref().map(|efforts| {
            let list = efforts.levels().map(|level| {
                Object::new()
                    .string("id", level)
                    .string("name", &capitalised(level))
                    .build()
            });
            let default = profile
                .reasoning
                .as_deref()
                .filter(|level| efforts.has(level))
                .map(quote);
            Object::new()
                .raw("efforts", &array(list))
                .maybe("defaultEffort", default.as_deref())
                .build()
        });
        Object::new()
            .string("id", &self.id)
            .string("name", &self.name)
            .raw("inputModalities", input)
            .raw("context", &context)
            .maybe("defaultMaxTokens", cap.as_deref())
            .maybe("reasoning", reasoning.as_deref())
            .build()
    }
}

fn capitalised(level: &str) -> String {
    let mut name = level.to_owned();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    name
}
