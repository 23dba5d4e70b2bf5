//! Which bundles a profile lists: `profile.yml`, or upstream's `package.json`.

use crate::yaml::{Fault, Kind, Node};
use crate::{Error, file};
use serde_json::Value;
use std::path::Path;

/// `bundles` of a `profile.yml`; none where there is no such file.
pub(super) fn own(path: &Path) -> Result<Option<Vec<String>>, Error> {
    const SHAPE: &str = "a profile needs `bundles: [base, headless]`, a list of names";
    let Some(text) = file::read_optional(path)? else {
        return Ok(None);
    };
    let fault = |line, message: &str| {
        let message = message.to_owned();
        file::at(path, Fault { line, message })
    };
    let root = file::document(path, &text)?;
    let Some(Node {
        kind: Kind::Map(map),
        ..
    }) = root
    else {
        return Err(fault(root.map_or(1, |node| node.line), SHAPE));
    };
    let Some(Node {
        kind: Kind::Seq(names),
        ..
    }) = map.get("bundles")
    else {
        return Err(fault(map.get("bundles").map_or(1, |node| node.line), SHAPE));
    };
    names
        .iter()
        .map(|node| {
            let name = node.as_str().ok_or_else(|| fault(node.line, SHAPE))?;
            Ok(name.to_owned())
        })
        .collect::<Result<_, _>>()
        .map(Some)
}

/// `dsh.profile.bundles` of a `package.json`; none where there is no such file.
/// A manifest without the member has no bundles.
pub(super) fn upstream(path: &Path, profile: &str) -> Result<Option<Vec<String>>, Error> {
    let Some(text) = file::read_optional(path)? else {
        return Ok(None);
    };
    let fault = |line, message: String| file::at(path, Fault { line, message });
    let manifest: Value =
        serde_json::from_str(&text).map_err(|e| fault(e.line(), format!("not JSON: {e}")))?;
    let Some(listed) = manifest.pointer("/dsh/profile/bundles") else {
        return Ok(Some(Vec::new()));
    };
    let names: Option<Vec<String>> = listed.as_array().and_then(|list| {
        let names = list.iter().map(|name| name.as_str().map(str::to_owned));
        names.collect()
    });
    let mut names =
        names.ok_or_else(|| fault(1, "`dsh.profile.bundles` must be a list of names".into()))?;
    // An early headless profile listed the web bundle too; upstream migrates it so.
    const EARLY: [&str; 3] = [
        "@deepseek-ai/dsh-base",
        "@deepseek-ai/dsh-web-app",
        "@deepseek-ai/dsh-headless",
    ];
    if profile == super::HEADLESS && names == EARLY {
        names.remove(1);
    }
    Ok(Some(names))
}
