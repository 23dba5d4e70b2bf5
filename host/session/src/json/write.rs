//! Building texts: `Json::object(|o| { o.u64("turn", 1).str("name", "x"); })`.
//!
//! Upstream's readers do not care about the order of members, but byte-compatible logs do, so the writer keeps the
//! order of the calls. Keys must not repeat. Integer-like keys would have to be sorted: a writer that meets one says so,
//! and the finished text is normalised.

use super::{Json, Value, number, text};

pub(super) struct Sink {
    pub(super) out: String,
    /// An integer-like key was written, the order may be wrong.
    pub(super) loose: bool,
}

/// Writes the members of one object.
pub struct ObjectWriter<'a> {
    pub(super) sink: &'a mut Sink,
    pub(super) empty: bool,
}

/// Writes the items of one array.
pub struct ArrayWriter<'a> {
    pub(super) sink: &'a mut Sink,
    pub(super) empty: bool,
}

impl Sink {
    fn str(&mut self, value: &str) {
        self.out.push('"');
        text::escape(value, &mut self.out);
        self.out.push('"');
    }

    pub(super) fn object(&mut self, build: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.out.push('{');
        build(&mut ObjectWriter {
            sink: self,
            empty: true,
        });
        self.out.push('}');
    }

    pub(super) fn array(&mut self, build: impl FnOnce(&mut ArrayWriter<'_>)) {
        self.out.push('[');
        build(&mut ArrayWriter {
            sink: self,
            empty: true,
        });
        self.out.push(']');
    }
}

impl ObjectWriter<'_> {
    fn key(&mut self, key: &str) -> &mut Sink {
        if !self.empty {
            self.sink.out.push(',');
        }
        self.empty = false;
        if key.as_bytes().first().is_some_and(u8::is_ascii_digit) {
            self.sink.loose = true;
        }
        self.sink.str(key);
        self.sink.out.push(':');
        self.sink
    }

    /// A string.
    pub fn str(&mut self, key: &str, text: &str) -> &mut Self {
        self.key(key).str(text);
        self
    }

    /// A string when there is one.
    pub fn opt_str(&mut self, key: &str, text: Option<&str>) -> &mut Self {
        if let Some(text) = text {
            self.str(key, text);
        }
        self
    }

    /// A non-negative integer, up to 2^53-1 to be exact.
    pub fn u64(&mut self, key: &str, number: u64) -> &mut Self {
        number::write(number as f64, &mut self.key(key).out);
        self
    }

    /// An integer, up to 2^53-1 either way to be exact.
    pub fn i64(&mut self, key: &str, number: i64) -> &mut Self {
        number::write(number as f64, &mut self.key(key).out);
        self
    }

    /// A number; `null` when it is not finite.
    pub fn f64(&mut self, key: &str, number: f64) -> &mut Self {
        number::write(number, &mut self.key(key).out);
        self
    }

    /// A boolean.
    pub fn bool(&mut self, key: &str, value: bool) -> &mut Self {
        self.key(key)
            .out
            .push_str(if value { "true" } else { "false" });
        self
    }

    /// `null`.
    pub fn null(&mut self, key: &str) -> &mut Self {
        self.key(key).out.push_str("null");
        self
    }

    /// A text as it stands.
    pub fn json(&mut self, key: &str, json: &Json) -> &mut Self {
        self.value(key, json.value())
    }

    /// A text as it stands, when there is one.
    pub fn opt_json(&mut self, key: &str, json: Option<&Json>) -> &mut Self {
        if let Some(json) = json {
            self.json(key, json);
        }
        self
    }

    /// A part of another text as it stands.
    pub fn value(&mut self, key: &str, value: Value<'_>) -> &mut Self {
        self.key(key).out.push_str(value.as_str());
        self
    }

    /// An object.
    pub fn object(&mut self, key: &str, build: impl FnOnce(&mut ObjectWriter<'_>)) -> &mut Self {
        self.key(key).object(build);
        self
    }

    /// An array.
    pub fn array(&mut self, key: &str, build: impl FnOnce(&mut ArrayWriter<'_>)) -> &mut Self {
        self.key(key).array(build);
        self
    }
}

impl ArrayWriter<'_> {
    fn item(&mut self) -> &mut Sink {
        if !self.empty {
            self.sink.out.push(',');
        }
        self.empty = false;
        self.sink
    }

    /// A string.
    pub fn str(&mut self, text: &str) -> &mut Self {
        self.item().str(text);
        self
    }

    /// A non-negative integer, up to 2^53-1 to be exact.
    pub fn u64(&mut self, number: u64) -> &mut Self {
        number::write(number as f64, &mut self.item().out);
        self
    }

    /// An integer, up to 2^53-1 either way to be exact.
    pub fn i64(&mut self, number: i64) -> &mut Self {
        number::write(number as f64, &mut self.item().out);
        self
    }

    /// A text as it stands.
    pub fn json(&mut self, json: &Json) -> &mut Self {
        self.value(json.value())
    }

    /// A part of another text as it stands.
    pub fn value(&mut self, value: Value<'_>) -> &mut Self {
        self.item().out.push_str(value.as_str());
        self
    }

    /// An object.
    pub fn object(&mut self, build: impl FnOnce(&mut ObjectWriter<'_>)) -> &mut Self {
        self.item().object(build);
        self
    }

    /// An array.
    pub fn array(&mut self, build: impl FnOnce(&mut ArrayWriter<'_>)) -> &mut Self {
        self.item().array(build);
        self
    }
}
