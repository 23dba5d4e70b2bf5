//! Writing JSON.

/// `text` as a JSON string.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    escape(text, &mut out);
    out.push('"');
    out
}

/// Appends `text` to `out`, escaped.
pub fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => {
                out.push_str("\\u00");
                out.push(char::from(b'0' + (c as u8 >> 4)));
                out.push(char::from(b"0123456789abcdef"[usize::from(c as u8 & 15)]));
            }
            c => out.push(c),
        }
    }
}

/// Writes one object, members in the order in which they are given.
#[derive(Clone, Debug)]
pub struct Object(String);

impl Object {
    /// An object without members.
    pub fn new() -> Self {
        Self("{".to_owned())
    }

    /// A member whose value is the JSON text `value`.
    #[must_use]
    pub fn raw(mut self, name: &str, value: &str) -> Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push('"');
        self.0.push_str(name);
        self.0.push_str("\":");
        self.0.push_str(value);
        self
    }

    /// A member whose value is a string.
    #[must_use]
    pub fn string(self, name: &str, value: &str) -> Self {
        self.raw(name, &quote(value))
    }

    /// A member whose value is a string that is already escaped.
    #[must_use]
    pub fn escaped(self, name: &str, value: &str) -> Self {
        let mut text = String::with_capacity(value.len() + 2);
        text.push('"');
        text.push_str(value);
        text.push('"');
        self.raw(name, &text)
    }

    /// A member whose value is a whole number.
    #[must_use]
    pub fn number(self, name: &str, value: u64) -> Self {
        self.raw(name, &value.to_string())
    }

    /// A member, where there is a value for it.
    #[must_use]
    pub fn maybe(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.raw(name, value),
            None => self,
        }
    }

    /// The text.
    #[must_use]
    pub fn build(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

impl Default for Object {
    fn default() -> Self {
        Self::new()
    }
}

/// `items`, each a JSON text, as an array.
pub fn array<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let mut out = "[".to_owned();
    for item in items {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(item.as_ref());
    }
    out.push(']');
    out
}
