//! Building texts: `Json::object(|o| { o.u64("turn", 1); o.str("name", "x"); })`.

use super::{Json, Value};

/// Writes the members of one object. Keys must not repeat; members come out in the order of the calls.
pub struct ObjectWriter<'a> {
    out: &'a mut String,
}

impl ObjectWriter<'_> {
    /// A string.
    pub fn str(&mut self, key: &str, text: &str) -> &mut Self {
        let _ = (key, text, &self.out);
        todo!()
    }

    /// A string when there is one.
    pub fn opt_str(&mut self, key: &str, text: Option<&str>) -> &mut Self {
        if let Some(text) = text {
            self.str(key, text);
        }
        self
    }

    /// A non-negative integer.
    pub fn u64(&mut self, key: &str, number: u64) -> &mut Self {
        let _ = (key, number);
        todo!()
    }

    /// An integer.
    pub fn i64(&mut self, key: &str, number: i64) -> &mut Self {
        let _ = (key, number);
        todo!()
    }

    /// A number; `null` when it is not finite.
    pub fn f64(&mut self, key: &str, number: f64) -> &mut Self {
        let _ = (key, number);
        todo!()
    }

    /// A boolean.
    pub fn bool(&mut self, key: &str, value: bool) -> &mut Self {
        let _ = (key, value);
        todo!()
    }

    /// `null`.
    pub fn null(&mut self, key: &str) -> &mut Self {
        let _ = key;
        todo!()
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
        let _ = (key, value);
        todo!()
    }

    /// An object.
    pub fn object(&mut self, key: &str, build: impl FnOnce(&mut ObjectWriter<'_>)) -> &mut Self {
        let _ = (key, build);
        todo!()
    }

    /// An array.
    pub fn array(&mut self, key: &str, build: impl FnOnce(&mut ArrayWriter<'_>)) -> &mut Self {
        let _ = (key, build);
        todo!()
    }
}

/// Writes the items of one array.
pub struct ArrayWriter<'a> {
    out: &'a mut String,
}

impl ArrayWriter<'_> {
    /// A string.
    pub fn str(&mut self, text: &str) -> &mut Self {
        let _ = (text, &self.out);
        todo!()
    }

    /// A non-negative integer.
    pub fn u64(&mut self, number: u64) -> &mut Self {
        let _ = number;
        todo!()
    }

    /// An integer.
    pub fn i64(&mut self, number: i64) -> &mut Self {
        let _ = number;
        todo!()
    }

    /// A text as it stands.
    pub fn json(&mut self, json: &Json) -> &mut Self {
        self.value(json.value())
    }

    /// A part of another text as it stands.
    pub fn value(&mut self, value: Value<'_>) -> &mut Self {
        let _ = value;
        todo!()
    }

    /// An object.
    pub fn object(&mut self, build: impl FnOnce(&mut ObjectWriter<'_>)) -> &mut Self {
        let _ = build;
        todo!()
    }

    /// An array.
    pub fn array(&mut self, build: impl FnOnce(&mut ArrayWriter<'_>)) -> &mut Self {
        let _ = build;
        todo!()
    }
}
