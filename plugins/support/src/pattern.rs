//! Patterns of names, as configurations have them.

/// Whether all of `name` fits a pattern, in which `*` stands for any text.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_of_the_whole_name() {
        let table = [
            ("bash", "bash", true),
            ("bash", "bash2", false),
            ("bas", "bash", false),
            ("*", "", true),
            ("*", "anything", true),
            ("mcp_*", "mcp_a", true),
            ("mcp_*", "amcp_a", false),
            ("*_list", "job_list", true),
            ("*_list", "job_lists", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
            ("**", "x", true),
            ("", "", true),
            ("", "x", false),
        ];
        for (pattern, name, expected) in table {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
