//! What the model is told of the four tools.

use guest_support::tool;

const READ: &str = r#"{"type":"object","properties":{"file_path":{"type":"string","description":"The file, absolute or relative to the working directory."},"offset":{"type":"number","description":"The first line to show, counted from 1."},"limit":{"type":"number","description":"How many lines to show, 2000 at most."}},"required":["file_path"]}"#;

const READ_IMAGE: &str = r#"{"type":"object","properties":{"file_path":{"type":"string","description":"The picture, absolute or relative to the working directory."}},"required":["file_path"]}"#;

const WRITE: &str = r#"{"type":"object","properties":{"file_path":{"type":"string","description":"The file, absolute or relative to the working directory. Missing directories are made."},"content":{"type":"string","description":"The whole content."}},"required":["file_path","content"]}"#;

const EDIT: &str = r#"{"type":"object","properties":{"file_path":{"type":"string","description":"The file, absolute or relative to the working directory."},"old_string":{"type":"string","description":"The text to replace, to the character."},"new_string":{"type":"string","description":"What to put in its place."},"replace_all":{"type":"boolean","description":"Replace every occurrence, not one."}},"required":["file_path","old_string","new_string"]}"#;

/// The tools, as `list-tools` shows them.
pub(crate) fn listings() -> Vec<String> {
    let read = "Shows a text file, each line with its number in front, as `12: text`. Up to 2000 lines and 50 KiB a \
        call, lines cut after 2000 characters; the last line of the answer says what is left and how to go on. Read \
        the whole of a file before you change it, and only the part that matters of a long one. The numbers are not \
        part of the file.";
    let read_image = "Shows a picture: a PNG, JPEG, GIF or WebP file of up to 15 MiB; of an animation the first \
        frame. What matters in a large one is easier to see once it is cut out, since a large one is shown smaller.";
    let write = "Makes a file, or replaces the whole of one. A file that is there must have been read in this session \
        before, and be unchanged since. To change a part, use `edit`.";
    let edit = "Replaces text in a file that was read in this session before. `old_string` must match exactly, \
        indentation included, and stand in the file once: take in lines around it until it does, or set \
        `replace_all`.";
    vec![
        tool::listing("read", read, READ, true),
        tool::listing("read_image", read_image, READ_IMAGE, true),
        tool::listing("write", write, WRITE, false),
        tool::listing("edit", edit, EDIT, false),
    ]
}
