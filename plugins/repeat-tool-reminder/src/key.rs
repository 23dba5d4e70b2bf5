//! Arguments as they are compared: members sorted by name at every depth, since
//! their order says nothing.

use guest_support::json::Json;

/// Levels that are sorted. Each level reads what is inside of it once more, so
/// the depth is what bounds the time; below, texts are compared as they stand.
const LEVELS: usize = 32;

/// A text that equal arguments share, whatever the order of their members. The
/// host has normalised numbers, spaces and escapes.
pub(crate) fn canonical(arguments: Json<'_>) -> String {
    let mut out = String::with_capacity(arguments.raw().len());
    write(arguments, LEVELS, &mut out);
    out
}

fn write(value: Json<'_>, levels: usize, out: &mut String) {
    if levels == 0 || !(value.is_object() || value.is_array()) {
        out.push_str(value.raw());
    } else if value.is_object() {
        let mut members: Vec<_> = value.members().collect();
        members.sort_unstable_by_key(|(name, _)| *name);
        out.push('{');
        for (at, (name, value)) in members.into_iter().enumerate() {
            out.push_str(if at == 0 { "\"" } else { ",\"" });
            out.push_str(name);
            out.push_str("\":");
            write(value, levels - 1, out);
        }
        out.push('}');
    } else {
        out.push('[');
        for (at, item) in value.items().enumerate() {
            if at > 0 {
                out.push(',');
            }
            write(item, levels - 1, out);
        }
        out.push(']');
    }
}
