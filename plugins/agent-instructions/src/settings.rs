//! The row's configuration, with upstream's names and numbers.

use guest_support::json::{Json, Object, array, quote, text};
use guest_support::paths;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// Of a message, in bytes.
    pub(crate) max: usize,
    /// Of a file, in bytes.
    pub(crate) max_source: u32,
    pub(crate) markers: Vec<String>,
    pub(crate) names: Vec<String>,
    pub(crate) local_names: Vec<String>,
    /// The person's own file.
    pub(crate) user_file: Option<String>,
}

impl Settings {
    pub(crate) fn read(config: &str) -> Self {
        let config = Json::parse(config).unwrap_or_else(|| Json::parse("{}").expect("an object"));
        let number = |name: &str, default| {
            let number = config.some(name).and_then(Json::whole);
            number.unwrap_or(default)
        };
        // A name is a name: a path would look in another directory than its own.
        let list = |name: &str, default: &[&str]| match config.some(name) {
            Some(list) => list
                .items()
                .filter_map(Json::string)
                .filter(|name| !name.is_empty() && !name.contains('/'))
                .map(std::borrow::Cow::into_owned)
                .collect(),
            None => default.iter().map(|name| (*name).to_owned()).collect(),
        };
        Self {
            max: usize::try_from(number("maxBytes", 65_536)).unwrap_or(usize::MAX),
            max_source: u32::try_from(number("maxSourceBytes", 1_048_576)).unwrap_or(u32::MAX),
            markers: list("projectRootMarkers", &[".git"]),
            names: list("instructionFileCandidates", &["AGENTS.md", "CLAUDE.md"]),
            local_names: list(
                "localInstructionFileCandidates",
                &["AGENTS.local.md", "CLAUDE.local.md"],
            ),
            user_file: text(config, "userFile").filter(|path| path.starts_with('/')),
        }
    }

    /// Every name, in the order in which files are shown.
    pub(crate) fn all_names(&self) -> impl Iterator<Item = &str> {
        let names = self.names.iter().chain(&self.local_names);
        names.map(String::as_str)
    }

    /// What a baseline depends on beside the files: upstream's text, so that each
    /// takes up the other's sessions.
    pub(crate) fn identity(&self, cwd: &str, project: &str) -> String {
        let list = |names: &[String]| array(names.iter().map(|name| quote(name)));
        Object::new()
            .string("projectRoot", &paths::relative(cwd, project))
            .raw("projectRootMarkers", &list(&self.markers))
            .number("maxBytes", self.max as u64)
            .number("maxSourceBytes", self.max_source.into())
            .raw("instructionFileCandidates", &list(&self.names))
            .raw("localInstructionFileCandidates", &list(&self.local_names))
            .build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_configured_is_what_upstream_ships() {
        let settings = Settings::read("{}");
        assert_eq!(
            settings.identity("/w/p", "/w/p"),
            r#"{"projectRoot":"","projectRootMarkers":[".git"],"maxBytes":65536,"maxSourceBytes":1048576,"instructionFileCandidates":["AGENTS.md","CLAUDE.md"],"localInstructionFileCandidates":["AGENTS.local.md","CLAUDE.local.md"]}"#
        );
        assert!(
            settings
                .identity("/w/p/a", "/w")
                .starts_with(r#"{"projectRoot":"../..","#)
        );
    }

    #[test]
    fn each_member_is_read() {
        let settings = Settings::read(
            r#"{"maxBytes":300,"maxSourceBytes":9,"projectRootMarkers":["x"],"instructionFileCandidates":["A","b/C"],"localInstructionFileCandidates":[],"userFile":"/h/AGENTS.md"}"#,
        );
        assert_eq!((settings.max, settings.max_source), (300, 9));
        assert_eq!(settings.markers, ["x"]);
        assert_eq!(settings.all_names().collect::<Vec<_>>(), ["A"]);
        assert_eq!(settings.user_file.as_deref(), Some("/h/AGENTS.md"));
        assert_eq!(Settings::read(r#"{"userFile":"relative"}"#).user_file, None);
    }
}
