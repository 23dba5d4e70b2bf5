//! The built `dsh`, from outside: a process, its streams, its exit code, the
//! files that it leaves. One test binary, since each links for seconds.

#![forbid(unsafe_code)]

mod arrows;
mod compaction;
mod configuration;
mod credentials;
mod differences;
mod doctor;
mod errors;
mod fences;
mod flags;
mod guests;
mod hostile;
mod installed;
mod kills;
mod listening;
mod litellm;
mod models;
mod models_bad;
mod one_tool;
mod pictures;
mod plugin;
mod plugin_ask;
mod plugin_fetch;
mod plugin_hostile;
mod plugin_json;
mod plugin_kills;
mod plugin_replay;
mod plugin_trust;
mod plugin_update;
mod policies;
#[path = "../../../plugin/tests/components/prober.rs"]
mod prober;
mod real_work;
mod recorded;
mod retries;
mod rows;
mod sessions;
mod sessions_mend;
mod signals;
mod support;
mod titles;
mod told;
mod transport;
mod views;
mod whole_runs;
