//! The anonymous id that model providers are told (spec/llm.md §6.3): one UUID
//! in `$DSH_HOME/.anonymous-user-id`, made on first use.

use std::io::Write;
use std::path::Path;

use uuid::Uuid;

/// The id in `home`; one for this run alone where it cannot be kept.
pub(crate) fn anonymous(home: &Path) -> String {
    let path = home.join(".anonymous-user-id");
    if let Some(kept) = read(&path) {
        return kept;
    }
    let made = Uuid::new_v4().to_string();
    let created = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
    match created {
        Ok(mut file) => {
            let _ = writeln!(file, "{made}");
            made
        }
        // Another process was first, or the content is no id.
        Err(_) => read(&path).unwrap_or_else(|| {
            let _ = std::fs::write(&path, format!("{made}\n"));
            made
        }),
    }
}

fn read(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let id = text.trim();
    (id.len() == 36 && Uuid::try_parse(id).is_ok()).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_made_once_and_nonsense_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        let first = anonymous(home.path());
        assert_eq!(anonymous(home.path()), first);
        std::fs::write(home.path().join(".anonymous-user-id"), "not an id").unwrap();
        let second = anonymous(home.path());
        assert_ne!(second, "not an id");
        assert_eq!(anonymous(home.path()), second);
    }

    #[test]
    fn a_home_that_cannot_be_written_gives_an_id_all_the_same() {
        let id = anonymous(Path::new("/proc/there-is-no-such-home"));
        assert_eq!(id.len(), 36);
    }
}
