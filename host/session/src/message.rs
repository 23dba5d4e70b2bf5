//! The shape that every stored message has. `spec/session.md` §3 "Message shape checks".

use crate::{Error, Event};

/// Checks the message of a surface event, and nothing for other kinds. Done on seeds and loads, not on append.
///
/// # Errors
/// [`Error::MessageShape`], with `subject` naming the event.
pub fn check_message(event: &Event, subject: &dyn Fn() -> String) -> Result<(), Error> {
    let _ = (event, subject);
    todo!()
}
