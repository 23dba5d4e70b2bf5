use super::*;

fn row(id: &str) -> Overview {
    Overview {
        path: "/s".into(),
        bytes: 4200,
        modified_ms: 0,
        id: Some(id.into()),
        header: None,
        title: Some("T\u{1b}[2J\nU".into()),
        updated_at: 0,
        events: 0,
        turns: 2,
        torn: false,
        damage: None,
    }
}

#[test]
fn an_id_is_shown_as_short_as_it_can_be_written() {
    let ids = [
        "session-11111111-aaaa",
        "session-11111111-abbb",
        "session-22222222-cccc",
        "mine",
        "mine-too-and-long",
        "33333333",
        "session-333333334444",
        "session-",
    ];
    let rows: Vec<Overview> = ids.iter().map(|id| row(id)).collect();
    let short = short_ids(&rows);
    let shown: Vec<&str> = ids.iter().map(|id| short[id]).collect();
    assert_eq!(
        shown,
        [
            "11111111-aa",
            "11111111-ab",
            "22222222",
            "mine",
            "mine-too",
            "33333333",
            "333333334",
            "session-",
        ]
    );
    for (id, short) in &short {
        let answers = |other: &&&str| other.starts_with(short) || handle(other).starts_with(short);
        let exact = ids.contains(short);
        assert!(
            exact || ids.iter().filter(answers).count() == 1,
            "{id} {short}"
        );
    }
}

#[test]
fn a_row_is_one_line_that_cannot_speak_to_the_terminal() {
    let text = table(&[row("session-12345678-1")], 120_000);
    assert_eq!(
        text,
        "ID          AGE  TURNS     SIZE  TITLE\n12345678  2 min      2  4.1 KiB  T U\n"
    );
}

#[test]
fn a_directory_is_looked_for_by_its_name_and_by_where_it_leads() {
    let spelled = |dir: &str| spellings(Path::new("/no/where"), Path::new(dir));
    assert_eq!(spelled("../x/./y"), ["/no/x/y"]);
    assert_eq!(spelled("/"), ["/"]);
}
