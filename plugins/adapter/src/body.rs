//! The body of a request. A protocol writes it as one JSON text; a picture stands
//! in it as `NUL b64:ID NUL`, which the host replaces by the picture's bytes in
//! base64. A raw NUL cannot occur in a JSON text, so no text of a message can be
//! taken for one.

use guest_support::types::Part;

const MARK: char = '\0';
const BASE64: &str = "b64:";

/// What stands in a JSON text, inside of a string, for a picture's base64.
pub fn picture(id: &str) -> String {
    format!("{MARK}{BASE64}{id}{MARK}")
}

/// The pieces of a body: its text, pictures put between.
pub fn parts(json: String) -> Vec<Part> {
    if !json.contains(MARK) {
        return vec![Part::Bytes(json.into_bytes())];
    }
    let mut parts = Vec::new();
    for (at, piece) in json.split(MARK).enumerate() {
        match piece.strip_prefix(BASE64).filter(|_| at % 2 == 1) {
            Some(id) => parts.push(Part::PictureBase64(id.to_owned())),
            None if piece.is_empty() => {}
            None => parts.push(Part::Bytes(piece.as_bytes().to_vec())),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_stands_where_it_is_put_into_the_text() {
        let json = format!(
            r#"{{"a":"data:image/png;base64,{}","b":"{}"}}"#,
            picture("v1"),
            picture("v2")
        );
        let found: Vec<String> = parts(json)
            .into_iter()
            .map(|part| match part {
                Part::Bytes(bytes) => String::from_utf8(bytes).unwrap(),
                Part::PictureBase64(id) => format!("<{id}>"),
                Part::Picture(_) => panic!("base64 only"),
            })
            .collect();
        assert_eq!(
            found,
            [
                r#"{"a":"data:image/png;base64,"#,
                "<v1>",
                r#"","b":""#,
                "<v2>",
                r#""}"#
            ]
        );
        assert_eq!(parts("{}".to_owned()).len(), 1);
    }
}
