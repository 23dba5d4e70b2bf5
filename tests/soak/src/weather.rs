//! What the provider does to a request. A throw of a seeded generator decides, so the same seed brings the same weather,
//! as far as requests come in the same order.

use std::time::Duration;

use dsh_torture::random::Random;
use mock_provider::{Answer, End, Protocol, Speech, Step};
use serde_json::json;

use crate::rig::TOOL;

/// How long a slow body pauses: less than a route's patience, which counts from byte to byte.
const PAUSE: Duration = Duration::from_millis(15);
/// Longer than what components buffer for a line at first, shorter than a body may be.
const LONG_LINE: usize = 300_000;

/// What was thrown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weather {
    /// A whole answer.
    Fair,
    /// A whole answer, a few bytes at a time and with pauses.
    Slow,
    /// A whole answer that begins late.
    Late,
    /// Reset somewhere in the middle, or before the first byte.
    Reset,
    /// The connection is closed somewhere in the middle.
    Cut,
    /// The body ends as if it were whole, somewhere in the middle.
    Short,
    /// Silence from somewhere in the middle on.
    Stall,
    /// Silence.
    Silence,
    /// 429.
    RateLimit,
    /// 429 with a wait that the route does not take.
    RateLimitForLong,
    /// 429 with a wait that it takes.
    RateLimitForShort,
    /// 500, 502, 503 or 529 with the protocol's error object, or a page of HTML.
    Broken,
    /// A quota is used up.
    Quota,
    /// 401.
    WrongKey,
    /// 200 with a page of HTML.
    Page,
    /// 200 without a byte.
    Nothing,
    /// An answer without a word.
    Wordless,
    /// The stream says that it failed.
    Overloaded,
    /// Bytes that are no text, and a line that is far too long.
    Garbage,
}

/// Out of a hundred or so throws, how many are what.
const ODDS: [(Weather, usize); 19] = [
    (Weather::Fair, 40),
    (Weather::Slow, 6),
    (Weather::Late, 3),
    (Weather::Reset, 8),
    (Weather::Cut, 5),
    (Weather::Short, 5),
    (Weather::Stall, 3),
    (Weather::Silence, 2),
    (Weather::RateLimit, 5),
    (Weather::RateLimitForLong, 1),
    (Weather::RateLimitForShort, 2),
    (Weather::Broken, 6),
    (Weather::Quota, 1),
    (Weather::WrongKey, 1),
    (Weather::Page, 2),
    (Weather::Nothing, 2),
    (Weather::Wordless, 3),
    (Weather::Overloaded, 3),
    (Weather::Garbage, 2),
];

impl Weather {
    /// Throws.
    pub fn thrown(random: &mut Random) -> Self {
        let all: usize = ODDS.iter().map(|(_, odds)| odds).sum();
        let mut throw = random.below(all);
        for (weather, odds) in ODDS {
            if throw < odds {
                return weather;
            }
            throw -= odds;
        }
        Self::Fair
    }

    /// What becomes of this speech.
    pub fn answer(self, protocol: Protocol, speech: &Speech, random: &mut Random) -> Answer {
        let stream = speech.stream(protocol);
        let somewhere = random.below(stream.len());
        let part = &stream.as_bytes()[..somewhere];
        let refused = |status: u16, kind: &str, message: &str| {
            let error = json!({"type": kind, "code": kind, "message": message});
            let body = json!({"type": "error", "error": error}).to_string();
            Answer::new(status, body).header("content-type", "application/json")
        };
        match self {
            Self::Fair => Answer::sse(stream).split(&[1 + random.below(400), 1 + random.below(40)]),
            Self::Slow => slow(stream.as_bytes(), random),
            Self::Late => Answer::sse(stream).delayed(PAUSE),
            Self::Reset => Answer::sse(part).ending(End::Reset),
            Self::Cut => Answer::sse(part).ending(End::Cut),
            Self::Short => Answer::sse(part),
            Self::Stall => Answer::sse(part).ending(End::Stall),
            Self::Silence => Answer::silence(),
            Self::RateLimit => refused(429, "rate_limit_exceeded", "Slow down"),
            Self::RateLimitForLong => {
                refused(429, "rate_limit_exceeded", "Slow down").header("retry-after", "30")
            }
            Self::RateLimitForShort => {
                refused(429, "rate_limit_exceeded", "Slow down").header("retry-after", "1")
            }
            Self::Broken => {
                let status = [500, 502, 503, 529][random.below(4)];
                if random.percent(50) {
                    refused(status, "server_error", "The server had an error")
                } else {
                    Answer::new(status, "<html><body>Bad gateway</body></html>")
                        .header("content-type", "text/html")
                }
            }
            Self::Quota => refused(429, "insufficient_quota", "You exceeded your current quota"),
            Self::WrongKey => refused(401, "invalid_api_key", "Incorrect API key provided"),
            Self::Page => Answer::new(200, "<html><body>Please log in</body></html>")
                .header("content-type", "text/html"),
            Self::Nothing => Answer::sse(""),
            Self::Wordless => Answer::sse(Speech::new("").stream(protocol)),
            Self::Overloaded => Answer::sse(overloaded(protocol, &stream, random)),
            Self::Garbage => {
                let mut bytes = part.to_vec();
                bytes.extend([0xff, 0xfe, 0xc3, b'\n', 0, 0x80]);
                bytes.extend(b"data: ");
                bytes.resize(bytes.len() + random.below(LONG_LINE), b'x');
                bytes.extend(b"\n\n");
                bytes.extend(&stream.as_bytes()[somewhere..]);
                Answer::sse(bytes)
            }
        }
    }
}

fn slow(stream: &[u8], random: &mut Random) -> Answer {
    let mut answer = Answer::sse("");
    let mut rest = stream;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at((1 + random.below(700)).min(rest.len()));
        answer = answer.piece(piece);
        if random.percent(20) {
            answer = answer.then(Step::Pause(PAUSE));
        }
        rest = after;
    }
    answer
}

/// The beginning of a stream, up to an event's end, and its protocol's word for an overload.
fn overloaded(protocol: Protocol, stream: &str, random: &mut Random) -> String {
    let events: Vec<&str> = stream.split_inclusive("\n\n").collect();
    // What comes before the first is what every stream begins with.
    let kept = 1 + random.below(2);
    let begun: String = events.iter().take(kept).copied().collect();
    let error =
        json!({"type": "overloaded_error", "code": "server_error", "message": "Overloaded"});
    let said = match protocol {
        Protocol::DeepSeek | Protocol::Completions => {
            format!("data: {}\n\n", json!({"error": error}))
        }
        Protocol::Responses => format!(
            "event: response.failed\ndata: {}\n\n",
            json!({"type": "response.failed", "response": {"id": "resp_1", "status": "failed", "error": error}})
        ),
        Protocol::Messages => format!(
            "event: error\ndata: {}\n\n",
            json!({"type": "error", "error": error})
        ),
    };
    begun + &said
}

/// Something to say; every one is another. A quarter of them call the tool.
pub fn speech(number: u64, random: &mut Random) -> Speech {
    let words = 1 + random.below(30);
    let mut text = format!("answer {number}:");
    for word in 0..words {
        text.push_str(&format!(" w\u{f6}rd{word} \u{1f980}"));
    }
    let mut speech = Speech::new(text);
    if random.percent(40) {
        speech = speech.thinking(format!("Let me think about {number} for a while."));
    }
    if random.percent(25) {
        speech = speech.call(TOOL, json!({"text": format!("note {number}")}).to_string());
    }
    speech
}
