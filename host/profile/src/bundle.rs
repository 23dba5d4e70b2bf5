//! The bundles that ship inside: `profiles/*.yml`, as data.

use crate::entry::Entry;
use crate::layer::Layer;
use crate::{Error, Tree};
use std::path::Path;
use std::sync::OnceLock;

/// Name and text of each.
const BUNDLES: [(&str, &str); 2] = [
    ("base", include_str!("../../../profiles/base.yml")),
    ("headless", include_str!("../../../profiles/headless.yml")),
];

/// Our name of a bundle, from ours or upstream's package name.
pub(crate) fn canonical(name: &str) -> Option<&'static str> {
    let name = name.strip_prefix("@deepseek-ai/dsh-").unwrap_or(name);
    BUNDLES.iter().map(|(own, _)| *own).find(|own| *own == name)
}

/// Whether this is our name of a bundle, which is also its layer's label.
pub(crate) fn is_one(label: &str) -> bool {
    BUNDLES.iter().any(|(own, _)| *own == label)
}

/// The layer of a bundle, under its name.
pub(crate) fn layer(name: &str) -> Result<Option<Layer>, Error> {
    BUNDLES
        .iter()
        .find(|(own, _)| *own == name)
        .map(|(own, text)| Layer::parse(Path::new(own), None, text))
        .transpose()
}

/// Whether a bundle's row mounts this part of the host: there are no others.
pub(crate) fn has_host(part: &str) -> bool {
    fn among(entries: &[Entry], part: &str) -> bool {
        entries
            .iter()
            .any(|entry| entry.str("host") == Some(part) || among(entry.rows(), part))
    }
    among(rows(), part)
}

/// The row of ours that does the job of an upstream package, for rows of people's
/// own that name the package.
pub(crate) fn row_of_package(package: &str) -> Option<&'static Entry> {
    fn among<'e>(entries: &'e [Entry], package: &str) -> Option<&'e Entry> {
        entries.iter().find_map(|entry| {
            let own = entry.str("name") == Some(package) && !entry.is_group();
            if own {
                Some(entry)
            } else {
                among(entry.rows(), package)
            }
        })
    }
    among(rows(), package)
}

/// The rows of all bundles.
fn rows() -> &'static [Entry] {
    static ROWS: OnceLock<Vec<Entry>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let layers = BUNDLES
            .iter()
            .filter_map(|(name, _)| layer(name).ok().flatten());
        Tree::compose(layers.collect(), Vec::new()).map_or_else(|_| Vec::new(), |tree| tree.entries)
    })
}
