//! One attempt over a real connection.

mod lines;

use std::collections::VecDeque;
use std::time::Duration;

use dsh_model::{Action, Emission};
use dsh_session::Json;
use mock_provider::{Answer, End, Mock, Step};

use lines::{STOP, Script, TEXT, drain, ending, log, open, plain, post, send_to, stream};

#[tokio::test]
async fn chunks_are_the_same_however_the_bytes_are_cut() {
    let body = format!("{TEXT}\n{TEXT}\n{STOP}\n");
    for sizes in [&[1][..], &[2, 3], &[7], &[40, 1], &[100_000]] {
        let mock = Mock::start(vec![Answer::sse(body.clone()).split(sizes)]);
        let script = send_to(&mock);
        let (mut stream, _) = stream(script.clone(), &mock).await;
        let chunks = drain(&mut stream).await;
        let texts: Vec<&str> = chunks.iter().map(Json::as_str).collect();
        assert_eq!(texts, [TEXT, TEXT, STOP], "{sizes:?}");
        assert_eq!(log(&script), ["open", "head 200", "close"]);
        assert_eq!(
            mock.requests()[0].header("authorization"),
            Some("Bearer sk-test-1")
        );
    }
}

#[tokio::test]
async fn a_response_that_breaks_or_ends_early_is_told_to_the_adapter_and_finished_by_the_host() {
    for (end, told, ending_is) in [
        (End::Reset, "end TRANSPORT", "error TRANSPORT"),
        (End::Cut, "end TRANSPORT", "error TRANSPORT"),
        (End::Clean, "end complete", "error STREAM_CLOSED"),
    ] {
        let answer = Answer::sse(format!("{TEXT}\n"))
            .then(Step::Gate)
            .ending(end);
        let mock = Mock::start(vec![answer]);
        let script = send_to(&mock);
        let (mut stream, _) = stream(script.clone(), &mock).await;
        assert_eq!(stream.next().await.unwrap().as_str(), TEXT);
        mock.open_gate();
        let chunks = drain(&mut stream).await;
        assert_eq!(
            (chunks.len(), ending(&chunks)),
            (1, ending_is.into()),
            "{end:?}"
        );
        assert_eq!(log(&script), ["open", "head 200", told, "close"], "{end:?}");
    }
}

#[tokio::test]
async fn the_adapters_own_words_for_a_broken_response_stand() {
    let mock = Mock::start(vec![Answer::sse("").ending(End::Cut)]);
    let own = r#"{"type":"finish","reason":{"kind":"error","failure":{"message":"mine","code":"SERVER"}}}"#;
    let script = Script {
        at_end: VecDeque::from([vec![TEXT, own, TEXT]]),
        ..send_to(&mock)
    };
    let (mut stream, _) = stream(script, &mock).await;
    let chunks = drain(&mut stream).await;
    assert_eq!((chunks.len(), chunks[1].as_str()), (2, own));
}

#[tokio::test]
async fn a_silent_provider_is_a_timeout_whatever_the_adapter_says() {
    for answer in [
        Answer::silence(),
        Answer::sse(format!("{TEXT}\n")).ending(End::Stall),
    ] {
        for own in [vec![], vec![STOP]] {
            let mock = Mock::start(vec![answer.clone()]);
            let script = Script {
                idle_timeout_ms: 200,
                at_end: VecDeque::from([own]),
                ..send_to(&mock)
            };
            let (mut stream, _) = stream(script.clone(), &mock).await;
            let chunks = drain(&mut stream).await;
            assert_eq!(ending(&chunks), "error TIMEOUT");
            assert!(log(&script).contains(&String::from("end TIMEOUT")));
        }
    }
}

#[tokio::test]
async fn any_byte_winds_the_watchdog() {
    // Together much longer than the watchdog waits, each pause much shorter.
    let (head, tail) = TEXT.split_at(8);
    let mut answer = Answer::sse(head);
    for _ in 0..9 {
        answer = answer
            .then(Step::Pause(Duration::from_millis(250)))
            .piece(" ");
    }
    let mock = Mock::start(vec![answer.piece(format!("{tail}\n{STOP}\n"))]);
    let script = Script {
        idle_timeout_ms: 2000,
        ..send_to(&mock)
    };
    let (mut stream, _) = stream(script, &mock).await;
    assert_eq!(ending(&drain(&mut stream).await), "stop");
}

#[tokio::test]
async fn the_watchdog_rests_while_the_reader_does() {
    let mock = Mock::start(vec![
        Answer::sse(format!("{TEXT}\n"))
            .then(Step::Gate)
            .piece(format!("{STOP}\n")),
    ]);
    let script = Script {
        idle_timeout_ms: 1000,
        ..send_to(&mock)
    };
    let (mut stream, _) = stream(script, &mock).await;
    assert_eq!(stream.next().await.unwrap().as_str(), TEXT);
    tokio::time::sleep(Duration::from_millis(1300)).await;
    mock.open_gate();
    assert_eq!(stream.next().await.unwrap().as_str(), STOP);
}

#[tokio::test]
async fn a_caller_who_gives_up_gets_an_aborted_finish_at_any_point() {
    // Before anything.
    let mock = Mock::start(vec![]);
    let script = send_to(&mock);
    let (mut stream_, ctx) = stream(script.clone(), &mock).await;
    ctx.cancel.cancel();
    assert_eq!(ending(&drain(&mut stream_).await), "aborted ABORTED");
    assert_eq!(log(&script).len() + mock.requests().len(), 0);

    // While waiting for the head, while waiting for the body: with and without a word of the adapter.
    for answer in [Answer::silence(), Answer::sse("").ending(End::Stall)] {
        for own in [vec![], vec![STOP], vec![TEXT]] {
            let mock = Mock::start(vec![answer.clone()]);
            let words = own.iter().filter(|chunk| **chunk == TEXT).count();
            let script = Script {
                at_end: VecDeque::from([own]),
                ..send_to(&mock)
            };
            let (mut stream, ctx) = stream(script.clone(), &mock).await;
            let cancel = async {
                while mock.requests().is_empty() {
                    tokio::task::yield_now().await;
                }
                ctx.cancel.cancel();
            };
            let (chunks, ()) = tokio::join!(drain(&mut stream), cancel);
            assert_eq!(
                (chunks.len(), ending(&chunks)),
                (words + 1, String::from("aborted ABORTED"))
            );
            let log = log(&script);
            assert_eq!(log[log.len() - 2..], ["end aborted", "close"]);
        }
    }

    // With chunks in hand: they are not delivered any more.
    let mock = Mock::start(vec![
        Answer::sse(format!("{TEXT}\n{TEXT}\n{TEXT}\n")).ending(End::Stall),
    ]);
    let (mut stream, ctx) = stream(send_to(&mock), &mock).await;
    assert_eq!(stream.next().await.unwrap().as_str(), TEXT);
    ctx.cancel.cancel();
    let chunks = drain(&mut stream).await;
    assert_eq!(
        (chunks.len(), ending(&chunks)),
        (1, String::from("aborted ABORTED"))
    );
}

#[tokio::test]
async fn a_finish_that_is_already_there_outlives_a_late_cancel() {
    let mock = Mock::start(vec![Answer::sse(format!("{TEXT}\n{STOP}\n"))]);
    let (mut stream, ctx) = stream(send_to(&mock), &mock).await;
    assert_eq!(stream.next().await.unwrap().as_str(), TEXT);
    ctx.cancel.cancel();
    assert_eq!(ending(&drain(&mut stream).await), "stop");
}

#[tokio::test]
async fn nothing_is_sent_to_an_origin_that_the_route_was_not_granted() {
    let mock = Mock::start(vec![]);
    let other = Mock::start(vec![]);
    let script = send_to(&other);
    let (mut stream, _) = stream(script.clone(), &mock).await;
    let chunks = drain(&mut stream).await;
    assert_eq!(ending(&chunks), "error DENIED");
    assert!(!chunks[0].as_str().contains("sk-test-1"));
    assert_eq!(other.requests().len(), 0);
    assert_eq!(log(&script), ["open", "close"]);
}

#[tokio::test]
async fn a_missing_credential_is_named_and_nothing_is_sent() {
    let mock = Mock::start(vec![]);
    let (mut stream, _) = open(send_to(&mock), &mock.base_url(), "NO_KEY", plain()).await;
    let chunks = drain(&mut stream).await;
    assert_eq!(ending(&chunks), "error MISSING_CREDENTIAL");
    assert!(chunks[0].as_str().contains("NO_KEY"));
    assert_eq!(mock.requests().len(), 0);
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_says_where_it_leads() {
    let other = Mock::start(vec![]);
    let answer = Answer::new(307, "").header(
        "location",
        format!("{}/sk-test-1?key=sk-test-1", other.base_url()),
    );
    let mock = Mock::start(vec![answer]);
    let script = send_to(&mock);
    let (mut stream, _) = stream(script.clone(), &mock).await;
    let chunks = drain(&mut stream).await;
    assert_eq!(ending(&chunks), "error HTTP_307");
    let text = chunks[0].as_str();
    let to = format!(
        "redirect to {}/[credential], which is not followed",
        other.base_url()
    );
    assert!(text.contains(&to), "{text}");
    assert!(
        text.contains(r#""status":307"#) && !text.contains("sk-test-1"),
        "{text}"
    );
    assert_eq!(
        (log(&script), other.requests().len()),
        (vec!["open".to_owned(), "close".to_owned()], 0)
    );
}

#[tokio::test]
async fn a_status_that_http_does_not_have_is_said() {
    for status in [600, 999] {
        let mock = Mock::start(vec![Answer::new(status, "")]);
        let script = send_to(&mock);
        let (mut stream, _) = stream(script.clone(), &mock).await;
        let chunks = drain(&mut stream).await;
        assert_eq!(ending(&chunks), format!("error HTTP_{status}"));
        let text = chunks[0].as_str();
        assert!(text.contains(&format!("the status {status}")), "{text}");
        assert_eq!(log(&script), ["open", "close"]);
    }
}

#[tokio::test]
async fn an_adapter_that_refuses_or_breaks_ends_the_stream() {
    let mock = Mock::start(vec![Answer::sse(format!("{TEXT}\n"))]);
    let refused = plain().system(Some(String::from("refuse")));
    let (mut stream_, _) = open(send_to(&mock), &mock.base_url(), "KEY", refused).await;
    assert_eq!(
        ending(&drain(&mut stream_).await),
        "error UNSUPPORTED_CONTENT"
    );
    let script = Script {
        broken: true,
        ..send_to(&mock)
    };
    let (mut stream, _) = stream(script.clone(), &mock).await;
    assert_eq!(ending(&drain(&mut stream).await), "error PLUGIN_TRAP");
    assert_eq!(log(&script), ["open", "head 200", "close"]);
}

#[tokio::test]
async fn what_is_no_chunk_never_reaches_the_log() {
    for line in [
        "nope",
        "[]",
        "{}",
        r#"{"type":""}"#,
        r#"{"type":"finish"}"#,
        r#"{"type":"usage","n":-0}"#,
    ] {
        let mock = Mock::start(vec![Answer::sse(format!("{line}\n"))]);
        let (mut stream, _) = stream(send_to(&mock), &mock).await;
        let chunks = drain(&mut stream).await;
        assert_eq!(
            (chunks.len(), ending(&chunks)),
            (1, String::from("error INVALID_CHUNK")),
            "{line}"
        );
    }
}

#[tokio::test]
async fn a_provider_that_quotes_the_key_does_not_get_it_into_the_log() {
    let line = r#"{"type":"finish","reason":{"kind":"error","failure":{"message":"bad key sk-test-1","code":"AUTH"}}}"#;
    let mock = Mock::start(vec![Answer::sse(format!("{line}\n"))]);
    let (mut stream, _) = stream(send_to(&mock), &mock).await;
    let chunks = drain(&mut stream).await;
    assert!(
        chunks[0].as_str().contains("bad key [credential]"),
        "{:?}",
        chunks[0]
    );
}

#[tokio::test]
async fn a_key_that_was_written_into_a_header_is_kept_out_too() {
    for (name, value) in [
        ("Authorization", "Bearer sk-written-01"),
        ("X-Api-Key", "sk-written-01"),
        ("x-note", "sk-written-01"),
    ] {
        let line = r#"{"type":"finish","reason":{"kind":"error","failure":{"message":"bad sk-written-01, sk-test-1","code":"AUTH"}}}"#;
        let mock = Mock::start(vec![Answer::sse(format!("{line}\n"))]);
        let mut script = send_to(&mock);
        let Some(Action::Send(request)) = script.actions.front_mut() else {
            panic!("it sends first")
        };
        request.headers.push((name.to_owned(), value.to_owned()));
        let (mut stream, _) = stream(script, &mock).await;
        let chunks = drain(&mut stream).await;
        let kept = if name == "x-note" {
            value
        } else {
            "[credential]"
        };
        let says = format!("bad {kept}, [credential]");
        assert!(chunks[0].as_str().contains(&says), "{:?}", chunks[0]);
    }
}

#[tokio::test]
async fn an_attempt_may_send_more_than_once_and_its_last_response_counts() {
    let mock = Mock::start(vec![
        Answer::new(404, ""),
        Answer::sse(format!("{TEXT}\n{STOP}\n")),
    ]);
    let mut script = send_to(&mock);
    script
        .actions
        .push_back(post(format!("{}/again", mock.base_url())));
    let (mut stream, _) = stream(script.clone(), &mock).await;
    assert_eq!(ending(&drain(&mut stream).await), "stop");
    assert_eq!(
        log(&script),
        ["open", "head 404", "end complete", "head 200", "close"]
    );
    assert_eq!(mock.requests()[1].path, "/again");
}

#[tokio::test]
async fn an_adapter_without_a_wire_emits_at_its_own_pace() {
    let mock = Mock::start(vec![]);
    let emit = |after_ms, chunks: &[&str]| {
        Action::Emit(Emission {
            after_ms,
            chunks: chunks.iter().map(ToString::to_string).collect(),
        })
    };
    let script = |actions: Vec<Action>| Script {
        actions: actions.into(),
        ..send_to(&mock)
    };
    let (mut stream_, _) = stream(
        script(vec![emit(0, &[TEXT]), emit(1, &[TEXT, STOP])]),
        &mock,
    )
    .await;
    assert_eq!(drain(&mut stream_).await.len(), 3);

    // A caller need not wait for a long one, and `end` is for requests only.
    let long = script(vec![emit(0, &[TEXT]), emit(u32::MAX, &[STOP])]);
    let (mut stream_, ctx) = stream(long.clone(), &mock).await;
    assert_eq!(stream_.next().await.unwrap().as_str(), TEXT);
    let (chunks, ()) = tokio::join!(drain(&mut stream_), async { ctx.cancel.cancel() });
    assert_eq!(ending(&chunks), "aborted ABORTED");
    assert_eq!(log(&long), ["open", "close"]);

    let (mut stream_, _) = stream(script(vec![emit(0, &[TEXT])]), &mock).await;
    assert_eq!(ending(&drain(&mut stream_).await), "error STREAM_CLOSED");

    let (mut stream_, _) = stream(script(vec![emit(0, &[]); 10_000]), &mock).await;
    assert_eq!(ending(&drain(&mut stream_).await), "error LIMIT");
}

#[tokio::test]
async fn a_slow_reader_slows_the_provider_and_loses_nothing() {
    let mut answer = Answer::sse(format!("{TEXT}\n"));
    let mut sent = vec![TEXT.to_owned()];
    for at in 0..24 * 16 {
        let text = at.to_string().repeat((64 << 10) / 3);
        sent.push(format!(
            r#"{{"type":"text-delta","index":0,"text":"{text}"}}"#
        ));
        answer = answer.piece(format!("{}\n", sent[sent.len() - 1]));
    }
    sent.push(STOP.to_owned());
    let mock = Mock::start(vec![answer.piece(format!("{STOP}\n"))]);
    let (mut stream, _) = stream(send_to(&mock), &mock).await;
    assert_eq!(stream.next().await.unwrap().as_str(), sent[0]);
    // As far as the provider gets while nobody reads.
    let mut written = 0;
    while written != mock.written() {
        written = mock.written();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(written < 12 << 20, "the provider must wait: {written}");
    let chunks = drain(&mut stream).await;
    let texts = chunks.iter().map(Json::as_str);
    assert!(
        texts.eq(sent[1..].iter().map(String::as_str)),
        "nothing is lost"
    );
}

#[tokio::test]
async fn a_stream_that_is_dropped_closes_its_attempt_and_its_connection() {
    let mock = Mock::start(vec![Answer::sse(format!("{TEXT}\n")).ending(End::Stall)]);
    let script = send_to(&mock);
    let (mut stream, _) = stream(script.clone(), &mock).await;
    assert_eq!(stream.next().await.unwrap().as_str(), TEXT);
    drop(stream);
    while mock.closed() == 0 || log(&script).last().map(String::as_str) != Some("close") {
        tokio::task::yield_now().await;
    }
}
