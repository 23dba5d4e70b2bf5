//! The session header: what is known of a session before its first event. `spec/session.md` §6, §9.2.

use std::path::Path;
use std::sync::Arc;

use crate::{Error, Json, MAX_SAFE_INTEGER, Value, json};

/// Who started the session, when not a person.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// Another agent.
    Subagent,
}

/// The header. It is kept outside the log and never changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The session's id, any non-empty string.
    pub id: Arc<str>,
    /// Milliseconds since the epoch, a safe integer.
    pub created_at: u64,
    /// The absolute path that the session works in.
    pub cwd: Option<Arc<str>>,
    /// The session that this one was forked from or spawned by.
    pub parent_session: Option<Arc<str>>,
    /// How many of the first events were inherited.
    pub seed_length: Option<u64>,
    /// Who started it.
    pub origin: Option<Origin>,
    /// How many sessions stand above it; absent means 0, and reads so from disk.
    pub delegation_depth: Option<u64>,
    /// The agent preset chosen at creation.
    pub agent_preset: Option<Arc<str>>,
    /// What the line that it was read from holds wrongly; kept so that a listing can still show the rest.
    pub(crate) fault: Option<&'static str>,
}

impl Header {
    /// A header with an id and a creation time alone.
    pub fn new(id: impl Into<Arc<str>>, created_at: u64) -> Header {
        Header {
            id: id.into(),
            created_at,
            cwd: None,
            parent_session: None,
            seed_length: None,
            origin: None,
            delegation_depth: None,
            agent_preset: None,
            fault: None,
        }
    }

    /// The first line of a log, without the newline (§9.2).
    pub fn line(&self) -> String {
        let json = Json::object(|o| {
            o.str("type", "session")
                .u64("version", 0)
                .str("id", &self.id);
            o.u64("createdAt", self.created_at);
            o.opt_str("cwd", self.cwd.as_deref());
            o.opt_str("parentSession", self.parent_session.as_deref());
            if let Some(length) = self.seed_length {
                o.u64("seedLength", length);
            }
            if let Some(Origin::Subagent) = self.origin {
                o.str("origin", "subagent");
            }
            o.u64("delegationDepth", self.delegation_depth.unwrap_or(0));
            o.opt_str("agentPreset", self.agent_preset.as_deref());
        });
        json.as_str().to_owned()
    }

    /// Reads the first line of a log, in the order of checks of §9.2: a foreign version is reported before any other
    /// fault. What only the session checks (`cwd`, `parentSession`, `seedLength`) is left to [`Header::check`].
    ///
    /// # Errors
    /// [`Error::Json`], [`Error::UnsupportedVersion`], [`Error::HeaderShape`].
    pub fn parse_line(line: &str) -> Result<Header, Error> {
        let text = json::kept(line).map_err(not_json)?;
        let value = Value::trusted(&text);
        if let Some(version) = value.get("version")
            && version.f64().is_some_and(|number| number != 0.0)
        {
            return Err(Error::UnsupportedVersion {
                version: version.as_str().to_owned(),
            });
        }
        read(value)
    }

    /// [`Header::parse_line`] for listings, which show a foreign version as long as it keeps today's shape. Gives the
    /// version beside the header.
    ///
    /// # Errors
    /// [`Error::Json`], [`Error::HeaderShape`].
    pub fn parse_any_version(line: &str) -> Result<(Header, f64), Error> {
        let text = json::kept(line).map_err(not_json)?;
        let value = Value::trusted(&text);
        let version = value.get("version").and_then(Value::f64).unwrap_or(0.0);
        Ok((read(value)?, version))
    }

    /// Checks the values against §6.
    ///
    /// # Errors
    /// [`Error::HeaderShape`].
    pub fn check(&self) -> Result<(), Error> {
        let what = if self.created_at > MAX_SAFE_INTEGER {
            "createdAt must be a non-negative safe integer"
        } else if self
            .cwd
            .as_deref()
            .is_some_and(|cwd| !Path::new(cwd).is_absolute())
        {
            "cwd must be an absolute path"
        } else if let Some(fault) = self.fault {
            fault
        } else if self
            .seed_length
            .is_some_and(|length| length > MAX_SAFE_INTEGER)
        {
            "seedLength must be a non-negative safe integer"
        } else if self
            .delegation_depth
            .is_some_and(|depth| depth > MAX_SAFE_INTEGER)
        {
            "delegationDepth must be a non-negative safe integer"
        } else {
            return Ok(());
        };
        Err(Error::HeaderShape { what })
    }
}

fn not_json(source: crate::JsonError) -> Error {
    Error::Json {
        subject: "session header".to_owned(),
        source,
    }
}

/// A count that upstream's header check takes: a non-negative safe integer other than negative zero.
fn count(value: Option<Value<'_>>) -> Option<u64> {
    value
        .filter(|value| value.as_str() != "-0")
        .and_then(Value::u64)
}

/// An optional string; the second part is false when something else stands there.
fn string(value: Option<Value<'_>>) -> (Option<Arc<str>>, bool) {
    let text = value.and_then(Value::text);
    let sound = text.is_some() || value.is_none();
    (text.map(Arc::from), sound)
}

fn read(value: Value<'_>) -> Result<Header, Error> {
    let shape = |what| Error::HeaderShape { what };
    if value.get("sandboxMode").is_some() || value.get("approvalPolicy").is_some() {
        return Err(shape("uses retired policy fields"));
    }
    if !value.get("type").is_some_and(|kind| kind.is("session")) {
        return Err(shape("line is not of type session"));
    }
    if !value.get("version").is_some_and(Value::is_number) {
        return Err(shape("version must be a number"));
    }
    let id = value
        .get("id")
        .and_then(Value::text)
        .ok_or(shape("id must be a string"))?;
    let created_at = count(value.get("createdAt"));
    let created_at = created_at.ok_or(shape("createdAt must be a non-negative safe integer"))?;
    let depth = count(value.get("delegationDepth"));
    let depth = depth.ok_or(shape("delegationDepth must be a non-negative safe integer"))?;
    let origin = match value.get("origin") {
        None => None,
        Some(origin) if origin.is("subagent") => Some(Origin::Subagent),
        Some(_) => return Err(shape("origin must be \"subagent\"")),
    };
    let (agent_preset, preset_sound) = string(value.get("agentPreset"));
    if !preset_sound {
        return Err(shape("agentPreset must be a string"));
    }
    let (cwd, cwd_sound) = string(value.get("cwd"));
    let (parent_session, parent_sound) = string(value.get("parentSession"));
    let seed_length = value.get("seedLength").and_then(Value::u64);
    let fault = if !cwd_sound {
        Some("cwd must be a string")
    } else if !parent_sound {
        Some("parentSession must be a string")
    } else if value.get("seedLength").is_some() && seed_length.is_none() {
        Some("seedLength must be a non-negative safe integer")
    } else {
        None
    };
    Ok(Header {
        id: Arc::from(id),
        created_at,
        cwd,
        parent_session,
        seed_length,
        origin,
        delegation_depth: Some(depth),
        agent_preset,
        fault,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(version: &str, rest: &str) -> String {
        format!(r#"{{"type":"session","version":{version},"id":"s","createdAt":5,{rest}}}"#)
    }

    fn code(line: &str) -> &'static str {
        Header::parse_line(line).map_or_else(|error| error.code(), |_| "")
    }

    #[test]
    fn a_foreign_version_is_reported_before_any_other_fault() {
        for version in ["1", "-1", "0.5", "1e400"] {
            let foreign = format!(r#"{{"version":{version}}}"#);
            assert_eq!(code(&foreign), "SESSION_VERSION_UNSUPPORTED", "{version}");
        }
        assert_eq!(
            code(&line("\"0\"", "\"delegationDepth\":0")),
            "SESSION_HEADER_INVALID"
        );
        assert_eq!(code(&line("-0", "\"delegationDepth\":0")), "");
        assert_eq!(code("{"), "JSON_INVALID");
    }

    #[test]
    fn negative_zero_is_no_count() {
        assert_eq!(
            code(&line("0", "\"delegationDepth\":-0")),
            "SESSION_HEADER_INVALID"
        );
        assert_eq!(code(&line("0", "\"delegationDepth\":0,\"other\":-0")), "");
    }

    #[test]
    fn what_only_a_session_checks_can_still_be_listed() {
        let listed =
            Header::parse_line(&line("0", "\"delegationDepth\":1,\"cwd\":\"rel\"")).unwrap();
        assert_eq!(listed.cwd.as_deref(), Some("rel"));
        assert_eq!(listed.check().unwrap_err().code(), "SESSION_HEADER_INVALID");
        let listed =
            Header::parse_line(&line("0", "\"delegationDepth\":1,\"parentSession\":5")).unwrap();
        assert!(listed.check().is_err());
    }
}
