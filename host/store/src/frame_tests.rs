use std::fs;

use super::*;
use crate::testing::{cases, json};

fn from_hex(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap())
        .collect()
}

#[test]
fn structure_is_read_as_upstream_reads_it() {
    let input = json("tbl-zstd-scan", "input.json");
    let expected = json("tbl-zstd-scan", "expected.json");
    let rows = input
        .as_array()
        .unwrap()
        .iter()
        .zip(expected.as_array().unwrap());
    let mut checked = 0;
    for (input, expected) in rows {
        let name = &input["name"];
        let frames = scan(&from_hex(input["hex"].as_str().unwrap()));
        if expected["ok"] == true {
            let ends: Vec<(u64, u64)> = expected["value"]["frames"]
                .as_array()
                .unwrap()
                .iter()
                .map(|f| (f["start"].as_u64().unwrap(), f["end"].as_u64().unwrap()))
                .collect();
            let got: Vec<_> = frames
                .complete
                .iter()
                .map(|f| (f.start as u64, f.end as u64))
                .collect();
            assert_eq!(got, ends, "{name}");
            assert_eq!(
                frames.torn.map(|t| t as u64),
                expected["value"]["tornStart"].as_u64(),
                "{name}"
            );
            assert_eq!(frames.invalid, None, "{name}");
        } else {
            let invalid = frames
                .invalid
                .unwrap_or_else(|| panic!("{name} was accepted"));
            let message = expected["error"]["message"].as_str().unwrap();
            assert!(
                message.ends_with(&format!("{} at byte {}", invalid.reason, invalid.offset)),
                "{name}: {message}"
            );
        }
        checked += 1;
    }
    assert_eq!(checked, 20);
}

/// Every frame in the cases that upstream's writer could have made comes out of ours byte for byte.
#[test]
fn frames_equal_upstreams_byte_for_byte() {
    let mut compared = 0;
    for case in fs::read_dir(cases()).unwrap() {
        let Ok(bytes) = fs::read(case.unwrap().path().join("input.jsonl.zstd")) else {
            continue;
        };
        for frame in scan(&bytes).complete {
            let frame = &bytes[frame.start..frame.end];
            if !frame.starts_with(&[0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58]) {
                continue;
            }
            let Ok(plaintext) = decode(frame, MAX_FRAME_PLAINTEXT) else {
                continue;
            };
            if plaintext.is_empty() {
                continue;
            }
            assert_eq!(encode(&plaintext).unwrap(), frame);
            compared += 1;
        }
    }
    assert!(compared >= 30, "only {compared} frames were found");
}

#[test]
fn a_frame_says_neither_size_nor_dictionary() {
    for text in ["x", &"line\n".repeat(100_000)] {
        let frame = encode(text.as_bytes()).unwrap();
        assert_eq!(frame[..6], [0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58]);
        assert_eq!(
            decode(&frame, MAX_FRAME_PLAINTEXT).unwrap(),
            text.as_bytes()
        );
    }
}

#[test]
fn a_cut_frame_gives_a_prefix_and_all_of_it_without_its_checksum() {
    let text: String = (0..40_000)
        .map(|i| format!("{{\"line\":{i},\"x\":{}}}\n", i * 7919 % 1000))
        .collect();
    let frame = encode(text.as_bytes()).unwrap();
    let mut longest = 0;
    for cut in (0..frame.len()).step_by(2003) {
        let part = decode_torn(&frame[..cut]);
        assert!(text.as_bytes().starts_with(&part));
        assert!(part.len() >= longest);
        longest = part.len();
    }
    assert!(longest > 0);
    for missing in 1..=4 {
        assert_eq!(
            decode_torn(&frame[..frame.len() - missing]),
            text.as_bytes()
        );
    }
}

#[test]
fn a_changed_byte_is_refused() {
    let frame = encode(b"some text that is long enough to be compressed, compressed, compressed\n")
        .unwrap();
    for at in 6..frame.len() {
        let mut bad = frame.clone();
        bad[at] ^= 0x10;
        if scan(&bad).complete.len() == 1 {
            assert!(decode(&bad, MAX_FRAME_PLAINTEXT).is_err(), "byte {at}");
        }
    }
}

#[test]
fn a_frame_cannot_ask_for_more_than_the_limit() {
    let frame = encode(&vec![b'x'; 1 << 20]).unwrap();
    assert!(frame.len() < 4096);
    assert!(decode(&frame, (1 << 20) - 1).is_err());
    assert!(decode(&frame, 1 << 20).is_ok());
}

#[test]
fn any_bytes_are_scanned_without_a_panic() {
    let frame = encode(b"{\"type\":\"session\"}\n").unwrap();
    for seed in 0..500_usize {
        let mut bytes = frame.repeat(2);
        let at = seed * 31 % bytes.len();
        bytes[at] = bytes[at].wrapping_add(u8::try_from(seed % 251).unwrap());
        bytes.truncate(bytes.len() - seed % 7);
        let frames = scan(&bytes);
        let mut end = 0;
        for frame in &frames.complete {
            assert_eq!(frame.start, end);
            end = frame.end;
            let _ = decode(&bytes[frame.start..frame.end], 1 << 20);
        }
        assert!(end <= bytes.len());
        let _ = decode_torn(&bytes[end..]);
    }
}
