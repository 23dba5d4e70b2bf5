//! The row's configuration, and the folders that follow from it.

use guest_support::disk::Disk;
use guest_support::json::{Json, text};
use guest_support::paths;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    markers: Vec<String>,
    custom: Vec<String>,
    user: Option<String>,
    agents: Option<String>,
    bundled: Option<String>,
    home: Option<String>,
}

impl Settings {
    pub(crate) fn read(config: &str) -> Self {
        let config = Json::parse(config).unwrap_or_else(|| Json::parse("{}").expect("an object"));
        let list = |name: &str| {
            let list = config.some(name)?.items().filter_map(Json::string);
            Some(
                list.filter(|text| !text.is_empty())
                    .map(std::borrow::Cow::into_owned)
                    .collect(),
            )
        };
        let path = |name: &str| text(config, name).filter(|path| !path.trim().is_empty());
        Self {
            markers: list("projectRootMarkers").unwrap_or_else(|| vec![".git".to_owned()]),
            custom: list("customSkillDirs").unwrap_or_default(),
            user: path("userSkillDir"),
            agents: path("agentsHome"),
            bundled: path("bundledSkillDir"),
            home: path("userHome"),
        }
    }

    /// The folders of skills, by rank (spec/cli.md §8.2): what comes first wins a name.
    pub(crate) fn roots(&self, cwd: &str, disk: &impl Disk) -> Vec<String> {
        let ancestors = std::iter::successors(Some(cwd), |path| paths::parent(path));
        let marked = |directory: &&str| {
            let mut markers = self.markers.iter();
            markers.any(|marker| disk.exists(&paths::join(directory, marker)))
        };
        let project = ancestors.into_iter().find(marked).unwrap_or(cwd);
        let absolute = |path: &String| match (path.strip_prefix('~'), &self.home) {
            (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
                Some(paths::join(home, rest.trim_start_matches('/')))
            }
            (Some(rest), None) if rest.is_empty() || rest.starts_with('/') => None,
            _ => Some(paths::join(cwd, path)),
        };
        let mut roots: Vec<String> = Vec::new();
        let mut add = |path: Option<String>| {
            if let Some(path) = path
                && !roots.contains(&path)
            {
                roots.push(path);
            }
        };
        add(Some(paths::join(project, ".dsh/skills")));
        add(Some(paths::join(project, ".agents/skills")));
        for path in &self.custom {
            add(absolute(path));
        }
        add(self.user.as_ref().and_then(absolute));
        let agents = self.agents.as_ref().and_then(absolute);
        add(agents.map(|home| paths::join(&home, "skills")));
        add(self.bundled.as_ref().and_then(absolute));
        roots
    }
}
