//! A profile's `dsh.lock`: what is read of any text keeps the rules, each fault is one line, and what is written of it
//! reads back equal, so that a change of one plugin never changes another.

use std::collections::HashSet;
use std::path::Path;

use dsh_profile::{Lock, is_digest, is_plugin_name, is_row_id};

pub(crate) fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let lock = match Lock::parse(Path::new("dsh.lock"), &text) {
        Ok(lock) => lock,
        Err(error) => {
            assert!(!error.to_string().contains('\n'), "{error}");
            return;
        }
    };
    let mut names = HashSet::new();
    for plugin in &lock.plugins {
        assert!(is_plugin_name(&plugin.name), "{plugin:?}");
        assert!(names.insert(&plugin.name), "twice: {}", plugin.name);
        assert!(is_digest(&plugin.digest), "{plugin:?}");
        assert!(plugin.granted().is_empty() || plugin.granted_to == plugin.digest);
        let mut ids = HashSet::new();
        for row in &plugin.rows {
            assert!(is_row_id(&row.id) && ids.insert(&row.id), "{plugin:?}");
            assert!(row.config.is_object(), "{plugin:?}");
        }
    }
    for fault in lock.faults() {
        assert!(!fault.contains('\n'), "{fault:?}");
    }
    let written = lock.to_text().expect("what was read can be written");
    let again = Lock::parse(Path::new("dsh.lock"), &written).expect("what was written can be read");
    assert_eq!(again.plugins, lock.plugins, "{written}");
    assert_eq!(again.damaged.len(), lock.damaged.len(), "{written}");
    // From there on it is final.
    assert_eq!(again.to_text().expect("as before"), written);
}
