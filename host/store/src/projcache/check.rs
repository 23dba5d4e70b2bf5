//! What `dsh doctor` says of the file: one line, and never that something is wrong, as no task needs it.

use dsh_check::Finding;

use super::ProjectionCache;

impl ProjectionCache {
    /// Whether a run can read the file and keep views in it. Changes nothing, makes nothing.
    pub fn check(&self) -> Finding {
        let at = self.path.display();
        match self.read() {
            Ok(records) if records.is_empty() => {
                Finding::ok(format_args!("no views of sessions are kept yet ({at})"))
            }
            Ok(records) => {
                Finding::ok(format_args!("{at} has views of {} sessions", records.len()))
            }
            // The error names the file; where it cannot be read, what to do is ours to say.
            Err(error @ crate::StoreError::ProjectionCache { .. }) => Finding::warning(
                format_args!("{error}; until then views of sessions are neither shown nor kept"),
            ),
            Err(error) => Finding::warning(format_args!(
                "{error}; make the file readable for you or move it away; until then views of sessions are neither \
                 shown nor kept"
            )),
        }
    }
}
