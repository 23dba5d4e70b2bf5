//! Whether what is mounted fits together.

use std::collections::BTreeMap;

use dsh_check::Finding;

/// Names of tools that two rows offer: the model can only mean one. `rows` are
/// the mounted rows with the names of their tools, in row order.
pub fn check<'a>(rows: impl IntoIterator<Item = (&'a str, Vec<&'a str>)>) -> Vec<Finding> {
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    let mut found = Vec::new();
    for (row, tools) in rows {
        for tool in tools {
            if let Some(first) = owners.get(tool) {
                found.push(Finding::wrong(format_args!(
                    "rows {first} and {row} both offer a tool {tool}, and the second is left out; \
                     disable one of them in cordis.patch.yml"
                )));
            } else {
                owners.insert(tool, row);
            }
        }
    }
    if found.is_empty() {
        let names: Vec<&str> = owners.into_keys().collect();
        found.push(Finding::ok(match names.len() {
            0 => "no row offers a tool".to_owned(),
            count => format!("{count} tools: {}", names.join(", ")),
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_of_two_rows_is_told_with_both() {
        let found = check([("a", vec!["x", "y"]), ("b", vec!["z", "y"])]);
        assert_eq!(found.len(), 1);
        assert!(found[0].what.contains("rows a and b both offer a tool y"));
        assert_eq!(check([("a", vec!["x"])]), [Finding::ok("1 tools: x")]);
        assert_eq!(check([]), [Finding::ok("no row offers a tool")]);
    }
}
