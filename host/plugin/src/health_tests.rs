use super::*;
use crate::api::PluginError;

fn trap() -> Result<(), CallError> {
    Err(CallError::Trap {
        row: "r".to_owned(),
        function: "tool.run",
        reason: "x".to_owned(),
    })
}

const RUN: Task<'_> = Task {
    function: "tool.run",
    event: "",
};

#[test]
fn three_failures_in_a_row_put_a_row_out_of_use_for_good() {
    let health = Health::default();
    for out_of_use in [None, None, Some(3)] {
        health.check("r").unwrap();
        assert_eq!(health.note(RUN, &trap()), out_of_use);
    }
    assert_eq!(health.note(RUN, &trap()), None, "it is said once");
    let Err(CallError::Quarantined {
        failures: 3, last, ..
    }) = health.check("r")
    else {
        panic!()
    };
    assert!(last.contains("crashed in tool.run"));
    health.note(RUN, &Ok(()));
    assert!(health.check("r").is_err());
}

#[test]
fn an_answer_ends_the_row_of_failures_and_a_cancel_does_not_count() {
    let health = Health::default();
    for _ in 0..5 {
        health.note(RUN, &trap());
        health.note(RUN, &trap());
        health.note::<()>(
            RUN,
            &Err(CallError::Cancelled {
                row: "r".to_owned(),
                function: "tool.run",
            }),
        );
        health.note::<()>(RUN, &Err(CallError::Plugin(PluginError::cancelled())));
    }
    health.check("r").unwrap();
}

/// Else a row that fails at one thing for ever would be saved by doing another
/// well in between.
#[test]
fn h70_what_a_row_does_well_elsewhere_does_not_end_its_row_of_failures() {
    let health = Health::default();
    let enter = |event| Task {
        function: "dispatch.enter",
        event,
    };
    for out_of_use in [None, None, Some(3)] {
        assert_eq!(health.note(enter("agent/pre-step"), &trap()), out_of_use);
        health.note(RUN, &Ok(()));
        health.note(enter("tools/pre-execute"), &Ok(()));
    }
}
