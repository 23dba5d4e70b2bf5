//! How often the same call came in a row.

/// The last call that was counted, and how often it came.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    name: String,
    arguments: String,
    count: u64,
}

impl Counter {
    /// Counts a call: 1 where it differs from the one before.
    pub(crate) fn count(&mut self, name: &str, arguments: &str) -> u64 {
        if self.count > 0 && self.name == name && self.arguments == arguments {
            self.count += 1;
        } else {
            *self = Self {
                name: name.to_owned(),
                arguments: arguments.to_owned(),
                count: 1,
            };
        }
        self.count
    }
}
