//! Stand-in for the derived list, until `listing` lands: reads every log whole.

use std::sync::Arc;

use dsh_session::{Header, Kind, title};

use crate::{Damage, Store, StoreError, Target};

#[derive(Debug, Clone)]
pub struct Overview {
    pub path: std::path::PathBuf,
    pub bytes: u64,
    pub modified_ms: i64,
    pub id: Option<Arc<str>>,
    pub header: Option<Header>,
    pub title: Option<Arc<str>>,
    pub updated_at: i64,
    pub events: u64,
    pub turns: u64,
    pub blank: bool,
    pub torn: bool,
    pub damage: Option<Damage>,
}

#[derive(Debug, Clone, Copy)]
pub enum Only<'a> {
    All,
    Cwd(&'a str),
}

impl Store {
    pub fn overview(&self, only: Only<'_>) -> Result<Vec<Overview>, StoreError> {
        let mut rows = Vec::new();
        for entry in self.list()? {
            let mut row = Overview {
                id: entry.id(),
                path: entry.path.clone(),
                bytes: entry.bytes,
                modified_ms: entry.modified_ms,
                header: entry.header.as_ref().ok().cloned(),
                title: None,
                updated_at: entry.modified_ms,
                events: 0,
                turns: 0,
                blank: true,
                torn: false,
                damage: entry.header.as_ref().err().cloned(),
            };
            if let Ok(found) = self.inspect(&Target::File(entry.path)) {
                row.torn = found.torn.is_some();
                row.events = found.log.len();
                row.damage = row.damage.or(found.damage);
                let mut updated = found.header.created_at as i64;
                let mut own = None;
                let mut fallback = None;
                for e in found.log.events_from(dsh_session::Seq(0)).flatten() {
                    match e.kind {
                        Kind::TurnStart => row.turns += 1,
                        Kind::SessionTitle => {
                            own = e
                                .data
                                .get("title")
                                .and_then(dsh_session::Value::text)
                                .map(|t| Arc::from(&*t));
                        }
                        Kind::UserMessage => {
                            if e.data
                                .value()
                                .path(&["source", "kind"])
                                .is_some_and(|k| k.is("user"))
                            {
                                updated = updated.max(e.time);
                            }
                            if fallback.is_none() {
                                fallback = title::eligible_prompt(&e)
                                    .map(|t| Arc::from(title::fallback(&t, 5, 40)));
                            }
                        }
                        _ => {}
                    }
                }
                row.title = own.or(fallback);
                row.updated_at = updated;
                row.header.get_or_insert(found.header);
            }
            rows.push(row);
        }
        if let Only::Cwd(cwd) = only {
            rows.retain(|r| r.header.as_ref().and_then(|h| h.cwd.as_deref()) == Some(cwd));
        }
        rows.sort_by(|a, b| b.updated_at.cmp(&a.updated_at).then(a.path.cmp(&b.path)));
        Ok(rows)
    }

    pub fn resolve(&self, text: &str, cwd: Option<&str>) -> Result<Arc<str>, StoreError> {
        let missing = || StoreError::NotFound {
            id: text.to_owned(),
            root: self.root().to_owned(),
        };
        if text == "last" {
            return self.last(cwd)?.ok_or_else(missing);
        }
        let ids: Vec<Arc<str>> = self.list()?.iter().filter_map(crate::Entry::id).collect();
        if let Some(id) = ids.iter().find(|id| ***id == *text) {
            return Ok(id.clone());
        }
        let mut found: Vec<_> = ids
            .into_iter()
            .filter(|id| {
                id.starts_with(text)
                    || id
                        .strip_prefix("session-")
                        .is_some_and(|r| r.starts_with(text))
            })
            .collect();
        found.dedup();
        match found.len() {
            0 => Err(missing()),
            1 => Ok(found.remove(0)),
            _ => Err(StoreError::Ambiguous {
                text: text.to_owned(),
                candidates: found.iter().map(ToString::to_string).collect(),
                more: 0,
            }),
        }
    }

    pub fn last(&self, cwd: Option<&str>) -> Result<Option<Arc<str>>, StoreError> {
        let rows = self.overview(cwd.map_or(Only::All, Only::Cwd))?;
        Ok(rows
            .into_iter()
            .find(|r| r.header.as_ref().is_some_and(|h| h.origin.is_none()))
            .and_then(|r| r.id))
    }
}
