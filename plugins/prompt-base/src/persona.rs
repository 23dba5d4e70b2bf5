//! Variables in the persona: `{{name}}` (spec/loop.md §9.3).

use guest_support::json::Json;

/// `template` with its variables filled in. What is filled in is not looked at
/// again, so a directory's name cannot name a variable.
pub(crate) fn fill(template: &str, variables: Json<'_>) -> Result<String, String> {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, behind)) = after.split_once("}}") else {
            break;
        };
        out.push_str(before);
        out.push_str(&value(name, variables)?);
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

fn value(name: &str, variables: Json<'_>) -> Result<String, String> {
    let well_formed = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if !well_formed {
        return Err(format!(
            "\"{{{{{name}}}}}\" names no variable; a name has small letters, digits and _"
        ));
    }
    match variables.some(name) {
        Some(value) => Ok(value
            .string()
            .map_or_else(|| value.raw().to_owned(), std::borrow::Cow::into_owned)),
        None => {
            let known: Vec<_> = variables.members().map(|(name, _)| name).collect();
            Err(format!(
                "there is no variable \"{name}\"; there are {}",
                known.join(", ")
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &str) -> Result<String, String> {
        fill(
            template,
            Json::parse(r#"{"model":"m {{cwd}}","cwd":"/w","n":3,"none":null}"#).unwrap(),
        )
    }

    #[test]
    fn variables_are_filled_in_and_not_looked_at_again() {
        assert_eq!(
            filled("a {{model}}, {{cwd}}{{n}}."),
            Ok("a m {{cwd}}, /w3.".to_owned())
        );
        assert_eq!(filled(""), Ok(String::new()));
    }

    #[test]
    fn an_open_brace_that_nothing_closes_is_text() {
        assert_eq!(
            filled("{{cwd}} and {{ more"),
            Ok("/w and {{ more".to_owned())
        );
        assert_eq!(filled("} {"), Ok("} {".to_owned()));
    }

    #[test]
    fn what_is_unknown_or_malformed_is_refused() {
        for template in ["{{x}}", "{{none}}", "{{ cwd }}", "{{}}", "{{Cwd}}", "{{1}}"] {
            assert!(filled(template).is_err(), "{template}");
        }
    }
}
