use crate::{Draft, Header, Json, Kind, Seq, Session};

fn user(text: &str) -> Draft {
    Draft::new(Kind::UserMessage, Json::string(text)).append()
}

fn long(count: usize) -> Session {
    let mut session = Session::new(Header::new("s", 0)).unwrap();
    for index in 0..count {
        session.append(user(&index.to_string()), 0).unwrap();
    }
    session
}

fn texts(session: &mut Session) -> Vec<String> {
    session
        .messages()
        .unwrap()
        .iter()
        .map(|message| message.as_str().to_owned())
        .collect()
}

#[test]
fn snapshots_of_any_length_stay_as_they_were() {
    let mut session = Session::new(Header::new("s", 0)).unwrap();
    let mut snapshots = Vec::new();
    for index in 0..200 {
        session.append(user(&index.to_string()), 0).unwrap();
        snapshots.push(session.messages().unwrap());
    }
    for (index, snapshot) in snapshots.iter().enumerate() {
        assert_eq!(snapshot.len(), index + 1);
        let last = snapshot.iter().next_back().unwrap();
        assert_eq!(
            (last.seq(), last.as_str()),
            (Seq(index as u64), &*format!("\"{index}\""))
        );
    }
}

#[test]
fn a_replace_anywhere_gives_the_list_that_a_fresh_fold_gives() {
    for (start, end) in [
        (0, 0),
        (0, 149),
        (63, 64),
        (64, 64),
        (100, 149),
        (149, 149),
        (10, 70),
    ] {
        let mut session = long(150);
        let before = session.messages().unwrap();
        let sources = (start..=end).map(Seq).collect();
        let replace = Draft::new(Kind::UserMessage, Json::string("new"));
        let replace = replace.replace(Seq(start), Seq(end)).sources(sources);
        session.append(replace, 0).unwrap();
        session.append(user("after"), 0).unwrap();
        let mut expected: Vec<String> = (0..150).map(|index| format!("\"{index}\"")).collect();
        expected.splice(start as usize..=end as usize, ["\"new\"".to_owned()]);
        expected.push("\"after\"".to_owned());
        assert_eq!(texts(&mut session), expected, "{start}..={end}");
        assert_eq!(before.len(), 150);
        // The digest is that of the list, however it came about.
        let mut fresh = Session::new(Header::new("t", 0)).unwrap();
        for text in &expected {
            fresh.append(user(text.trim_matches('"')), 0).unwrap();
        }
        assert_eq!(session.digest().unwrap(), fresh.digest().unwrap());
        assert_ne!(session.digest().unwrap(), before.digest());
    }
}

#[test]
fn an_assistant_message_without_content_is_a_node_and_no_message() {
    let mut session = long(1);
    let digest = session.digest().unwrap();
    let data = Json::normalise(r#"{"turn":1,"step":1,"message":{"content":[]}}"#).unwrap();
    session
        .append(Draft::new(Kind::AssistantMessage, data).append(), 0)
        .unwrap();
    assert_eq!(session.surface().nodes().len(), 2);
    assert_eq!(
        (session.messages().unwrap().len(), session.digest().unwrap()),
        (1, digest)
    );
}

#[test]
fn log_only_events_do_not_change_the_digest() {
    let mut session = long(3);
    let digest = session.digest().unwrap();
    session
        .append(Draft::new(Kind::TodoWrite, Json::empty_object()), 0)
        .unwrap();
    assert_eq!(session.digest().unwrap(), digest);
}
