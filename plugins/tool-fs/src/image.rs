//! `read_image`: who may be shown a picture, and what is said beside it. The host
//! looks at the file, keeps it, and makes it fit the model.

use guest_support::json::{Json, Object, text};
use guest_support::{Error, error, tool};

/// Bytes of a file: what a component hands over in one go.
pub(crate) const MOST: u32 = 15 << 20;

/// Refuses a model that could not see it: a note in the picture's place would look
/// to it like a picture without anything on it.
pub(crate) fn check_model(more: Option<&str>, shown: &str) -> Result<(), Error> {
    let told = more.and_then(Json::parse);
    let images = told.and_then(|more| more.some("model")?.some("images")?.bool());
    if images == Some(false) {
        let message = format!(
            "cannot show {shown}: the model in use takes text only; a model that takes images can be shown it"
        );
        return Err(error("UNSUPPORTED_CONTENT", message));
    }
    Ok(())
}

pub(crate) fn check_size(shown: &str, size: f64) -> Result<(), Error> {
    if size <= f64::from(MOST) {
        return Ok(());
    }
    let message = format!(
        "{shown} has {size} bytes, and pictures of up to {MOST} are shown; make a smaller copy of it first"
    );
    Err(error("FS_TOO_LARGE", message))
}

/// The blocks of the result.
pub(crate) fn content(shown: &str, attachment: &str) -> Vec<String> {
    let facts = Json::parse(attachment).map(|attachment| {
        let number = |name| attachment.some(name).and_then(Json::whole).unwrap_or(0);
        let kind = text(attachment, "mediaType").unwrap_or_default();
        let (width, height, bytes) = (number("width"), number("height"), number("bytes"));
        format!("{kind} image, {width}x{height} px, {bytes} bytes")
    });
    let image = Object::new()
        .string("type", "image")
        .raw("attachment", attachment)
        .build();
    let said = crate::envelope(shown, "image", &facts.unwrap_or_default());
    vec![tool::text_block(&said), image]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_result_names_the_picture_and_holds_it() {
        let attachment = r#"{"attachmentId":"sha256:0","mediaType":"image/png","bytes":69,"width":2,"height":1}"#;
        let blocks: Vec<Value> = content("/w/red.png", attachment)
            .iter()
            .map(|block| serde_json::from_str(block).unwrap())
            .collect();
        let said = "<path>/w/red.png</path>\n<type>image</type>\n<content>\nimage/png image, 2x1 px, 69 bytes\n</content>";
        assert_eq!(blocks[0], json!({"type": "text", "text": said}));
        let attachment: Value = serde_json::from_str(attachment).unwrap();
        assert_eq!(
            blocks[1],
            json!({"type": "image", "attachment": attachment})
        );
    }

    #[test]
    fn a_model_that_takes_text_only_is_refused_and_one_that_nobody_knows_is_not() {
        for (more, refused) in [
            (None, false),
            (Some("{}"), false),
            (Some(r#"{"model":{"images":true}}"#), false),
            (Some(r#"{"parent":"c","model":{"images":false}}"#), true),
        ] {
            let checked = check_model(more, "/w/a.png");
            assert_eq!(checked.is_err(), refused, "{more:?}");
            if let Err(error) = checked {
                assert!(
                    error
                        .message
                        .contains("/w/a.png: the model in use takes text only")
                );
            }
        }
    }

    #[test]
    fn a_file_that_is_too_large_is_refused_with_its_size() {
        check_size("/w/a", f64::from(MOST)).unwrap();
        let error = check_size("/w/a", 15_728_641.0).unwrap_err();
        assert!(
            error.message.starts_with("/w/a has 15728641 bytes"),
            "{}",
            error.message
        );
    }
}
