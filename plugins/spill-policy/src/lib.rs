//! A result too long for the model is kept whole in a file, and the model gets
//! its beginning, its end and the path (spec/loop.md §7.3).
//!
//! The row stands before all others that listen, so this is the outermost
//! reviewer: the last on the way out, over what all others made of the result.
//! Nothing that goes wrong here costs the result: it stays as it was, long, but
//! whole.

mod shorten;

use guest_support::json::{Json, Object, text};
use guest_support::{Error, config, hook_panics, tool};

#[allow(missing_docs, unreachable_pub, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package dsh:spill-policy;
            world component {
                import dsh:plugin/types@0.1.0;
                import dsh:plugin/log@0.1.0;
                import dsh:plugin/config@0.1.0;
                import dsh:plugin/spill@0.1.0;
                export dsh:plugin/dispatch@0.1.0;
            }",
        path: "../../wit",
        generate_all,
        with: {
            "dsh:plugin/types@0.1.0": guest_support::types,
            "dsh:plugin/log@0.1.0": guest_support::log,
            "dsh:plugin/config@0.1.0": guest_support::config,
        },
    });
    // A native linker takes no such names as a component's exports have.
    #[cfg(target_family = "wasm")]
    export!(Component with_types_in self);
    #[cfg(target_family = "wasm")]
    use super::Component;
}

use bindings::dsh::plugin::spill;
use bindings::exports::dsh::plugin::dispatch::{Entry, Guest, Subscription, Verdict};

/// The policy.
pub struct Component;

impl Guest for Component {
    fn subscriptions() -> Vec<Subscription> {
        hook_panics();
        // Without a cap there is nothing to do, and no call of this component.
        let review = cap().map(|_| Subscription {
            event: "tools/post-execute".to_owned(),
            only: Vec::new(),
            beside: false,
        });
        review.into_iter().collect()
    }

    fn notify(_: String, _: Vec<String>) {}

    fn decide(_: String, _: String) -> Result<Option<String>, Error> {
        Ok(None)
    }

    fn enter(_: String, payload: String) -> Result<Entry, Error> {
        hook_panics();
        Ok(Entry {
            verdict: Verdict::Proceed,
            carry: cap().and_then(|cap| carry(&payload, cap)),
        })
    }

    fn leave(_: String, carry: String, outcome: String) -> Result<Option<String>, Error> {
        hook_panics();
        let Some(cap) = cap() else { return Ok(None) };
        Ok(reviewed(&carry, &outcome, cap, |name, text| {
            spill::store(name, text.as_bytes()).ok()
        }))
    }
}

/// `maxInlineBytes`. A configuration does not change under an instance.
fn cap() -> Option<usize> {
    static CAP: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
    *CAP.get_or_init(|| {
        let config = config::get();
        let cap = Json::parse(&config)?.some("maxInlineBytes")?;
        let whole = cap.whole().and_then(|cap| usize::try_from(cap).ok());
        Some(whole.unwrap_or_else(|| {
            panic!(
                "maxInlineBytes must be a whole number from 0 on, not {}",
                cap.raw()
            )
        }))
    })
}

/// What the way out has to know of the result that came in: the call, and its
/// content where that is above the cap, for the case that nobody replaces it.
/// None where the call is exempt: `read` bounds its own output, and to spill it
/// would send the model round in circles.
fn carry(payload: &str, cap: usize) -> Option<String> {
    let call = Json::of_host(payload);
    let mut carry = Object::new();
    for (name, value) in call.members() {
        match name {
            "name" if value.string()? == "read" => return None,
            "callId" => carry = carry.raw("callId", value.raw()),
            "result" => {
                let content = value
                    .first("content")
                    .filter(|content| exceeds(*content, cap));
                carry = carry.maybe("content", content.map(Json::raw));
            }
            _ => {}
        }
    }
    Some(carry.build())
}

/// The outcome with its content cut, or none where it stays as it is.
fn reviewed(
    carry: &str,
    outcome: &str,
    cap: usize,
    store: impl FnOnce(&str, &str) -> Option<String>,
) -> Option<String> {
    let outcome = Json::of_host(outcome);
    // Whoever blocks a result or replaces its value has spoken for it.
    let accepted = outcome.first("kind")?.string()? == "accept";
    if !accepted || outcome.first("value").is_some() {
        return None;
    }
    // Written by `carry`, of the host's own text.
    let carry = Json::of_host(carry);
    let content = outcome
        .first("content")
        .or_else(|| carry.first("content"))?;
    if !exceeds(content, cap) {
        return None;
    }
    let whole = plain_text(content)?;
    let call = text(carry, "callId").unwrap_or_default();
    let locator = store(&format!("{}.txt", shorten::file_name(&call)), &whole)?;
    let short = shorten::shortened(&whole, cap, &locator)?;
    let mut reviewed = Object::new();
    for (name, value) in outcome.members().filter(|(name, _)| *name != "content") {
        reviewed = reviewed.raw(name, value.raw());
    }
    let blocks = format!("[{}]", tool::text_block(&short));
    Some(reviewed.raw("content", &blocks).build())
}

/// Whether the texts of a content are longer than the cap together.
fn exceeds(content: Json<'_>, cap: usize) -> bool {
    // A text is never longer than it is as JSON.
    let length = |block: Json<'_>| block.first("text").and_then(Json::string_len).unwrap_or(0);
    content.raw().len() > cap && content.items().map(length).sum::<usize>() > cap
}

/// The text of a content that is nothing but text.
fn plain_text(content: Json<'_>) -> Option<String> {
    let mut whole = String::new();
    for block in content.items() {
        if block.first("type")?.string()? != "text" {
            return None;
        }
        whole.push_str(&block.first("text")?.string()?);
    }
    Some(whole)
}

#[cfg(test)]
mod tests;
