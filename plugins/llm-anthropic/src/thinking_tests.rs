use super::*;

fn wish() -> Wish<'static> {
    Wish {
        reasons: true,
        can_stop: true,
        adaptive: false,
        level: Some("low"),
        spelling: None,
        budget: None,
        cap: 3000,
        most: 8192,
        room: 150_000,
    }
}

#[test]
fn a_budget_is_added_to_the_cap_within_what_the_model_and_its_window_allow() {
    for (level, budget, cap, most, room, tokens, whole) in [
        ("low", None, 3000, 8192, 150_000, 2048, 5048),
        ("minimal", None, 3000, 8192, 150_000, 1024, 4024),
        ("medium", None, 8192, 64_000, 150_000, 8192, 16_384),
        ("high", None, 8192, 8192, 150_000, 7168, 8192),
        ("xhigh", None, 32_000, 64_000, 150_000, 16_384, 48_384),
        ("max", None, 64_000, 64_000, 150_000, 16_384, 64_000),
        (
            "high",
            Some(30_000),
            32_000,
            64_000,
            150_000,
            30_000,
            62_000,
        ),
        ("low", Some(50_000), 1000, 8192, 150_000, 7168, 8192),
        // A window that is nearly full.
        ("high", None, 20_000, 64_000, 20_000, 16_384, 20_000),
        ("high", None, 5000, 64_000, 5000, 3976, 5000),
        ("low", None, u32::MAX, u32::MAX, u32::MAX, 2048, u32::MAX),
    ] {
        let wish = Wish {
            level: Some(level),
            budget,
            cap,
            most,
            room,
            ..wish()
        };
        assert_eq!(decide(&wish), (Thinking::Budget(tokens), whole), "{wish:?}");
    }
}

#[test]
fn without_room_for_the_least_budget_the_answer_comes_first() {
    for can_stop in [true, false] {
        let wish = Wish {
            can_stop,
            cap: 100,
            room: 2047,
            ..wish()
        };
        let none = if can_stop {
            Thinking::Off
        } else {
            Thinking::Unsaid
        };
        assert_eq!(decide(&wish), (none, 100));
    }
    let enough = Wish {
        cap: 100,
        room: 2048,
        ..wish()
    };
    assert_eq!(decide(&enough), (Thinking::Budget(1024), 2048));
    let small = Wish {
        budget: Some(500),
        ..wish()
    };
    assert_eq!(decide(&small), (Thinking::Off, 3000));
}

#[test]
fn adaptive_models_get_an_effort_and_keep_their_cap() {
    for (level, spelling, effort) in [
        ("minimal", None, "low"),
        ("low", None, "low"),
        ("medium", None, "medium"),
        ("high", None, "high"),
        ("xhigh", None, "high"),
        ("xhigh", Some("xhigh"), "xhigh"),
        ("low", Some("tiny"), "tiny"),
    ] {
        let wish = Wish {
            adaptive: true,
            level: Some(level),
            spelling,
            ..wish()
        };
        assert_eq!(
            decide(&wish),
            (Thinking::Adaptive(effort.to_owned()), 3000),
            "{level}"
        );
    }
}

#[test]
fn thinking_is_only_named_for_models_that_reason() {
    for (reasons, can_stop, adaptive, thinking) in [
        (false, false, false, Thinking::Unsaid),
        (false, true, true, Thinking::Unsaid),
        (true, true, false, Thinking::Off),
        (true, true, true, Thinking::Off),
        (true, false, false, Thinking::Unsaid),
        (true, false, true, Thinking::Unsaid),
    ] {
        let wish = Wish {
            reasons,
            can_stop,
            adaptive,
            level: None,
            ..wish()
        };
        assert_eq!(decide(&wish), (thinking, 3000), "{wish:?}");
    }
}
