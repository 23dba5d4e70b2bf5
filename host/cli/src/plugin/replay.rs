//! `dsh plugin replay`: one call through a model adapter, with a recording where the provider is.
//!
//! For who writes an adapter, or wonders what one sends. A case is a request, a response and, where one likes, what is
//! expected of both (`tests/conformance/llm`). The component is mounted as a row is and driven by the code of a run
//! (`dsh_model`), down to the socket, where the recording answers. So limits, refusals and the order of ends are those
//! of a run; nothing is sent, no credential of a person's is read, and no time is waited for but what an adapter without
//! a wire asks for itself.

mod case;
mod expected;
mod play;
mod tell;

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dsh_plugin::{Component, Description, Engine, componentise};
use dsh_profile::Packages;
use dsh_session::{Json, Value};

use super::source::Source;
use super::text::{json_text, shown};
use super::{DOWNLOAD, Desk, Done, Report, Stop, fetch, names, what};
use crate::arguments::usage;
use crate::attachments::Attachments;
use crate::words::Words;
use crate::{embedded, report};
use case::Case;
use play::Played;

/// Bytes of a case's files.
const MAX_FILE: u64 = 64 << 20;

pub(super) fn run(desk: &Desk, words: &Words) -> Done {
    let Some(request) = words.value("--request") else {
        return Err(usage("dsh plugin replay: --request is missing: the file of the case, as in tests/conformance/llm").into());
    };
    let at = |name: &str| desk.place.cwd.join(name);
    let request = at(request);
    let case = Case::read(&text_of(&request)?).map_err(|why| of_file(&request, &why))?;
    for member in &case.unknown {
        report::line(format_args!(
            "{}: {} is no member of a case; passed over",
            request.display(),
            shown(member, 120)
        ));
    }
    // A name that is nobody's is said before a recording of it is looked for.
    let engine = desk.engine()?;
    let word = words.one();
    let refused = |why: &str| Stop::of(format_args!("{}: {why}", shown(word, 300)));
    let (what, component) = component(desk, &engine, word)?;
    if !component.description().exports.iter().any(|export| {
        export
            .of_contract()
            .is_some_and(|(name, _)| name == "llm-adapter")
    }) {
        return Err(refused(
            "it exports no `llm-adapter`, so there is nothing to replay; adapters alone can be",
        ));
    }
    let body = response(&case, &request, words.value("--response").map(at))?;
    let wanted = match words.value("--expect").map(at) {
        Some(file) => Some((text_of(&file)?, file)),
        // Programs compare for themselves.
        None if words.has("--json") => None,
        None => beside(&request)?,
    };
    let wanted = wanted.map(|(text, file)| match Json::restore(&text) {
        Ok(json) if json.value().is_object() => Ok((json, file)),
        Ok(_) => Err(of_file(
            &file,
            "it is no object with `chunks` and `assembled`",
        )),
        Err(error) => Err(of_file(&file, &error)),
    });
    let wanted = wanted.transpose()?;
    let attachments = Attachments::of(&desk.place.home);
    let played = desk
        .wait(play::play(&engine, component, &case, body, &attachments))
        .map_err(|why| refused(&why))?;
    told(&what, &case, &played, wanted.as_ref())
}

/// The report; 1 where the component broke, or came out otherwise than it was expected to.
fn told(what: &str, case: &Case, played: &Played, wanted: Option<&(Json, PathBuf)>) -> Done {
    let whole = tell::whole(case, played);
    let mut text = tell::text(what, case, played);
    let broke = broke(played);
    if let Some(broke) = &broke {
        text += &format!("\nthe component broke: {broke}\n");
    }
    let mut difference = None;
    if let Some((wanted, file)) = wanted {
        difference = differs(case, wanted, &whole);
        let file = shown(&file.display().to_string(), 300);
        text += &match &difference {
            None => format!("\nas {file} expects\n"),
            Some(found) => format!("\nnot as {file} expects: {found}\n"),
        };
    }
    let object = match (wanted, &difference) {
        (None, _) => whole,
        (Some(_), found) => Json::object(|o| {
            for (name, value) in whole.value().entries() {
                o.value(&name.decode(), value);
            }
            match found {
                Some(found) => o.str("difference", found),
                None => o.null("difference"),
            };
        }),
    };
    let mut report = Report::new(text, serde_json::Value::Null);
    report.whole = Some(json_text(object.as_str()));
    report.code = u8::from(broke.is_some() || difference.is_some());
    Ok(report)
}

/// The first difference, the request's before what came of it.
fn differs(case: &Case, wanted: &Json, whole: &Json) -> Option<String> {
    expected::request(case.http.as_ref(), whole.get("http")).or_else(|| {
        ["chunks", "assembled"].into_iter().find_map(|name| {
            let wanted = wanted.get(name)?;
            expected::difference(name, wanted, whole.get(name))
        })
    })
}

/// What a component that broke came to; a refusal of its own is none.
fn broke(played: &Played) -> Option<String> {
    let failure = played.chunks.last()?.value().path(&["reason", "failure"])?;
    let text = |key| failure.get(key).and_then(Value::text);
    let code = text("code")?;
    let own = code.starts_with("PLUGIN_") || code == "INVALID_CHUNK";
    own.then(|| shown(&text("message").unwrap_or_default(), 600))
}

fn is_adapter(description: &Description) -> bool {
    let mut exports = description
        .exports
        .iter()
        .filter_map(|export| export.of_contract());
    exports.any(|(name, _)| name == "llm-adapter")
}

/// A file, a component of this build, or an installed plugin; with what it is called.
fn component(desk: &Desk, engine: &Engine, word: &str) -> Result<(String, Arc<Component>), Stop> {
    let refused =
        |error: &dyn std::fmt::Display| Stop::of(format_args!("{}: {error}", shown(word, 300)));
    let bundled = format!("dsh:{}", word.strip_prefix("dsh:").unwrap_or(word));
    let is_file = word.contains('/') || desk.place.cwd.join(word).is_file();
    if !is_file && let Some(found) = embedded::find(&bundled) {
        let loaded = desk.wait(engine.load_embedded(found.wasm, found.code));
        return Ok((bundled, loaded.map_err(|error| refused(&error))?));
    }
    if !is_file
        && Path::new(word)
            .extension()
            .is_none_or(|extension| extension != "wasm")
    {
        let missing = || {
            let mut adapters = embedded::names();
            adapters.retain(|name| {
                let found = embedded::find(name).map(|found| Description::read(found.wasm));
                found.is_some_and(|read| read.is_ok_and(|description| is_adapter(&description)))
            });
            refused(&format_args!(
                "there is no such file, component of this build or installed plugin; its adapters are {}",
                adapters.join(", ")
            ))
        };
        let profile = desk.profile().map_err(|_| missing())?;
        let lock = desk.lock(&profile)?;
        let plugin = names::plugin(&lock, word, &desk.name).map_err(|_| missing())?;
        let packages = Packages::at(&desk.place.home);
        let read = || packages.read(&plugin.digest).map_err(std::io::Error::other);
        let loaded = desk.wait(engine.load_pinned(&plugin.digest, read));
        return Ok((plugin.label(), loaded.map_err(|error| refused(&error))?));
    }
    let source = Source::read(word, &desk.place.cwd).map_err(usage)?;
    let Source::File(_) = source else {
        return Err(usage(
            "dsh plugin replay plays files and what is installed; download it first",
        )
        .into());
    };
    let bytes = fetch::component(desk, &source, DOWNLOAD)
        .map_err(Stop::of)?
        .bytes;
    if let Some(what) = what::told(&bytes) {
        return Err(refused(&what));
    }
    let made = componentise(bytes).map_err(|error| refused(&error))?;
    let compiling = desk
        .progress
        .during("compiling", engine.load_bytes(made.component));
    let loaded = desk.wait(compiling).map_err(|error| refused(&error))?;
    desk.progress.clear();
    Ok((shown(word, 300), loaded))
}

/// The bytes of the answer. A case without a `response` needs none: nothing is sent in it.
fn response(case: &Case, request: &Path, given: Option<PathBuf>) -> Result<Option<Vec<u8>>, Stop> {
    let named = case
        .response
        .as_ref()
        .and_then(|response| response.body.as_ref());
    let (file, must) = match (given, named) {
        (Some(file), _) => (file, case.response.is_some()),
        (None, Some(name)) => (request.with_file_name(name), true),
        (None, None) if case.http.is_some() => {
            return Err(usage(
                "dsh plugin replay: --response is missing: the file of the body that comes back",
            )
            .into());
        }
        (None, None) => return Ok(None),
    };
    match bytes_of(&file) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound && !must => Ok(None),
        Err(error) => Err(unread(&file, &error)),
    }
}

/// `expected.json` beside the case, where there is one.
fn beside(request: &Path) -> Result<Option<(String, PathBuf)>, Stop> {
    let file = request.with_file_name("expected.json");
    match bytes_of(&file) {
        Ok(bytes) => Ok(Some((utf8(&file, bytes)?, file))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unread(&file, &error)),
    }
}

fn text_of(file: &Path) -> Result<String, Stop> {
    let bytes = bytes_of(file).map_err(|error| unread(file, &error))?;
    utf8(file, bytes)
}

fn utf8(file: &Path, bytes: Vec<u8>) -> Result<String, Stop> {
    String::from_utf8(bytes).map_err(|_| of_file(file, &"it is not UTF-8"))
}

fn bytes_of(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    crate::regular::open(file)?
        .take(MAX_FILE + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(std::io::Error::other("it is larger than 64 MiB"));
    }
    Ok(bytes)
}

fn unread(file: &Path, error: &std::io::Error) -> Stop {
    Stop::of(format_args!("cannot read {}: {error}", file.display()))
}

fn of_file(file: &Path, why: &(impl std::fmt::Display + ?Sized)) -> Stop {
    Stop::of(format_args!("{}: {why}", file.display()))
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
