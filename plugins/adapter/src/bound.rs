//! Pictures within what a request may carry: the oldest go first, as what was
//! seen long ago is worth least (spec/llm.md §7.1, `maxRequestImageBytes`).

use std::borrow::Cow;

use guest_support::Error;

use crate::Pictures;
use crate::history::{Entry, Piece};
use crate::profile::PictureBounds;

/// What stands where a picture was.
const LEFT_OUT: &str = "(image omitted: the request holds too many bytes of images)";

/// What stands where a picture is gone or damaged, escaped: a session goes on
/// without it.
fn missing(error: &Error) -> String {
    crate::escaped(&format!("(image omitted: {})", error.message))
}

/// Leaves out the oldest pictures until the others fit, and those that cannot be
/// made.
pub(crate) fn bound_pictures(
    history: &mut [Entry<'_>],
    bounds: &PictureBounds,
    pictures: &mut dyn Pictures,
) -> Result<(), Error> {
    let mut room = u64::from(bounds.request_bytes);
    for entry in history.iter_mut().rev() {
        let (Entry::User { parts } | Entry::Result { parts, .. }) = entry else {
            continue;
        };
        for part in parts.iter_mut().rev() {
            let Piece::Image(image) = part else { continue };
            // Once one is left out, so are all before it.
            let base64 = if room == 0 {
                u64::MAX
            } else {
                match pictures.render(&image.attachment, Some(bounds.pixels), Some(bounds.bytes)) {
                    Ok(picture) => u64::from(picture.bytes).div_ceil(3) * 4,
                    Err(error) if error.code == "CANCELLED" => return Err(error),
                    Err(error) => {
                        *part = Piece::Text(Cow::Owned(missing(&error)));
                        continue;
                    }
                }
            };
            if base64 <= room {
                room -= base64;
            } else {
                room = 0;
                *part = Piece::Text(Cow::Borrowed(LEFT_OUT));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Picture;
    use crate::history::Image;

    struct Hundred;

    impl Pictures for Hundred {
        fn render(
            &mut self,
            attachment: &str,
            _: Option<u32>,
            _: Option<u32>,
        ) -> Result<Picture, Error> {
            if attachment == "gone" {
                return Err(guest_support::error("NOT_FOUND", "\"gone\" is not there"));
            }
            Ok(Picture {
                id: attachment.to_owned(),
                media_type: "image/png".to_owned(),
                bytes: attachment.parse().unwrap(),
                width: 1,
                height: 1,
                alpha: false,
            })
        }
    }

    #[test]
    fn a_picture_that_cannot_be_made_costs_itself_alone() {
        let image = |of: &'static str| {
            Piece::Image(Image {
                attachment: Cow::Borrowed(of),
            })
        };
        let mut history = [Entry::User {
            parts: vec![image("3"), image("gone"), image("30")],
        }];
        bound_pictures(&mut history, &PictureBounds::default(), &mut Hundred).unwrap();
        let [Entry::User { parts }] = history else {
            unreachable!()
        };
        let text = Piece::Text(Cow::Borrowed(r#"(image omitted: \"gone\" is not there)"#));
        assert_eq!(parts, [image("3"), text, image("30")]);
    }

    #[test]
    fn the_oldest_pictures_are_left_out_where_all_do_not_fit() {
        let image = |bytes: &'static str| {
            Piece::Image(Image {
                attachment: Cow::Borrowed(bytes),
            })
        };
        for (room, kept) in [
            (1000, &["3", "300", "30", "90"][..]),
            (560, &["300", "30", "90"]),
            (300, &["30", "90"]),
            (159, &["90"]),
            (0, &[]),
        ] {
            let mut history = [
                Entry::User {
                    parts: vec![image("3"), image("300")],
                },
                Entry::Result {
                    call_id: Cow::Borrowed("c"),
                    tool_name: Cow::Borrowed("t"),
                    parts: vec![image("30"), image("90")],
                    is_error: false,
                },
            ];
            let bounds = PictureBounds {
                request_bytes: room,
                ..PictureBounds::default()
            };
            bound_pictures(&mut history, &bounds, &mut Hundred).unwrap();
            let left: Vec<_> = history
                .iter()
                .flat_map(|entry| match entry {
                    Entry::User { parts } | Entry::Result { parts, .. } => parts,
                    Entry::Assistant(_) => unreachable!(),
                })
                .filter_map(|part| match part {
                    Piece::Image(image) => Some(&*image.attachment),
                    Piece::Text(text) => {
                        assert_eq!(text, LEFT_OUT);
                        None
                    }
                })
                .collect();
            assert_eq!(left, kept, "{room}");
        }
    }
}
