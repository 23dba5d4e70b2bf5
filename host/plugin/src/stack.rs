//! Who is in whose call: what keeps an instance from being entered twice.
//!
//! A component that calls an import may set off, further down, a call of itself:
//! a listener runs a command, the command wants an approval, and the listener
//! answers approvals. Its instance is on the stack and cannot be entered, and
//! whoever waited for it would wait for itself until a bound ends both. So each
//! call's future carries the warm instances that it is inside of, and a call of
//! one of them is told so at once.
//!
//! It is carried by the task, so a port that goes on in a task of its own loses
//! it, and with it only the early answer: the bounds still hold.

use std::future::Future;
use std::sync::Arc;

/// A warm instance's place, by its address.
pub(crate) type Place = usize;

/// The innermost warm instance that is entered, and those around it.
#[derive(Clone)]
struct Frame {
    place: Place,
    outer: Option<Arc<Frame>>,
}

tokio::task_local! {
    static STACK: Option<Frame>;
}

/// Whether the caller runs, however indirectly, inside of a call of this one.
pub(crate) fn holds(place: Place) -> bool {
    STACK
        .try_with(|innermost| {
            let frames = std::iter::successors(innermost.as_ref(), |frame| frame.outer.as_deref());
            frames.into_iter().any(|frame| frame.place == place)
        })
        .unwrap_or(false)
}

/// Runs a call inside of what the caller is inside of, and of `place`.
pub(crate) fn within<F: Future>(
    place: Option<Place>,
    future: F,
) -> impl Future<Output = F::Output> {
    let around = STACK.try_with(Clone::clone).ok().flatten();
    let stack = match place {
        Some(place) => Some(Frame {
            place,
            outer: around.map(Arc::new),
        }),
        None => around,
    };
    STACK.scope(stack, future)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_knows_all_that_it_is_inside_of_and_no_more() {
        within(Some(1), async {
            within(
                None,
                within(Some(2), async {
                    assert!(holds(1) && holds(2) && !holds(3));
                }),
            )
            .await;
            assert!(holds(1) && !holds(2));
            tokio::spawn(async { assert!(!holds(1)) }).await.unwrap();
        })
        .await;
        assert!(!holds(1));
    }
}
