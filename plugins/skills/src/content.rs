//! A skill's whole text, for the model.

use guest_support::disk::Disk;
use guest_support::words::{one_line, start, unclosed};
use guest_support::{Error, error};

use crate::front;
use crate::scan::Skill;

/// Bytes of a skill's file.
const MAX: u32 = 1024 * 1024;

const FRAMES: [&str; 4] = [
    "skill_content",
    "skill_resources",
    "skill_instructions",
    "system-reminder",
];

/// Reads a skill as it is now. `max` bytes of its instructions are given.
pub(crate) fn read(skill: &Skill, max: usize, disk: &impl Disk) -> Result<String, Error> {
    let name = &skill.name;
    let bytes = match disk.read(&skill.path, MAX + 1) {
        Ok(Some((bytes, _))) => bytes,
        Ok(None) => {
            let gone = format!(
                "the skill \"{name}\" is gone: there is no file {}",
                skill.path
            );
            return Err(error("NOT_FOUND", gone));
        }
        Err(why) => return Err(error("UNAVAILABLE", format!("the skill \"{name}\": {why}"))),
    };
    if bytes.len() > MAX as usize {
        let what = format!(
            "{} has more than {MAX} bytes; read the parts of it that you need",
            skill.path
        );
        return Err(error("LIMIT", what));
    }
    let text = String::from_utf8_lossy(&bytes);
    let (_, body) = front::read(&text).map_err(|why| {
        error(
            "INVALID",
            format!("the skill \"{name}\" ({}): {why}", skill.path),
        )
    })?;
    let body = unclosed(text[body..].trim(), &FRAMES);
    let mut shown = start(&body, max).to_owned();
    if shown.len() < body.len() {
        shown.push_str(&format!(
            "\n\n(This is the start of it; the whole is in {}.)",
            skill.path
        ));
    }
    let resources = skill.folder.as_ref().map_or_else(String::new, |folder| {
        let folder = unclosed(&one_line(folder), &FRAMES);
        format!(
            "<skill_resources>\nFolder of this skill: {folder}\nRelative paths that the skill names start there. Read \
             what it refers to when you need it.\n</skill_resources>\n\n"
        )
    });
    Ok(format!(
        "<skill_content name=\"{name}\">\n{resources}<skill_instructions>\n{shown}\n</skill_instructions>\n</skill_content>"
    ))
}
