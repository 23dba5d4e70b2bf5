//! Sessions that upstream recorded, played back: the provider says again what it
//! said ([`Provider`]), the tools give again what they gave ([`stage`]), and
//! the log that comes of it is compared event for event ([`compare`]).
//!
//! The recordings are not part of the project; [`recordings`] finds them where
//! they are. Which of them are played, which rules of difference each of those
//! uses, and what each of the others lacks is generated from them ([`List`]) and
//! committed, so that a checkout without them tells as well.
//!
//! A difference is a [`Rule`], with its reason, and not a property of a session:
//! it is looked for in every recording, and says where it was met. Free text of
//! the recordings was run through a substitution of letters, so what components
//! write is compared without its words.

#![forbid(unsafe_code)]

mod compare;
mod list;
mod needs;
mod provider;
mod recording;
mod rules;
mod stage;

pub use compare::{Difference, compare};
pub use list::{List, played};
pub use needs::lacks;
pub use provider::Provider;
pub use recording::{Recording, Told, recordings};
pub use rules::{Outcome, RULES, Rule};
pub use stage::{Door, Prompt, Stage, When, stage};
