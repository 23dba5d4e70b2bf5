//! The list as people read it.

use super::gather::{Listed, Listing, Provider};
use crate::report::plain;

pub(super) fn shown(listing: &Listing) -> String {
    let mut text = String::new();
    for provider in &listing.providers {
        if !text.is_empty() {
            text.push('\n');
        }
        text += &of_provider(provider);
    }
    for (row, reason) in &listing.rows {
        text += &format!("\nrow {row} is left out: {}\n", plain(reason));
    }
    match &listing.default {
        None => text += "\nno default model: set agent-default-model in settings.yaml\n",
        Some((model, problem)) => {
            let problem = problem
                .as_ref()
                .map(|what| format!(" cannot be called: {what}"));
            text += &format!(
                "\ndefault: {}/{}{}\n",
                plain(&model.provider),
                plain(&model.model),
                plain(&problem.unwrap_or_default())
            );
        }
    }
    text
}

fn of_provider(provider: &Provider) -> String {
    let mut text = plain(&provider.id);
    if provider.name != provider.id {
        text += &format!(" ({})", plain(&provider.name));
    }
    let mut facts: Vec<String> = Vec::new();
    facts.extend(provider.api.clone());
    facts.extend(provider.base_url.clone());
    if let Some((name, place)) = &provider.credential {
        let place = place.as_deref().map(|place| format!(" from {place}"));
        facts.push(format!("{name}{}", place.unwrap_or_default()));
    }
    facts.extend(provider.row.as_ref().map(|row| format!("row {row}")));
    if !facts.is_empty() {
        text += &format!(": {}", plain(&facts.join(", ")));
    }
    text.push('\n');
    if let Some(problem) = &provider.problem {
        text += &format!("  cannot be called: {}\n", plain(problem));
    }
    let width = provider.models.iter().map(|model| model.id.chars().count());
    let width = width.max().unwrap_or_default().min(48);
    for model in &provider.models {
        text += &of_model(model, width);
    }
    text
}

fn of_model(model: &Listed, width: usize) -> String {
    let mut facts: Vec<String> = Vec::new();
    facts.extend(
        model
            .window
            .map(|window| format!("{} window", tokens(window))),
    );
    facts.extend(
        model
            .cap
            .map(|cap| format!("{} out", tokens(u64::from(cap)))),
    );
    if !model.efforts.is_empty() {
        let effort = |effort: &String| {
            let own = model.default_effort.as_ref() == Some(effort);
            format!("{effort}{}", if own { "*" } else { "" })
        };
        let efforts: Vec<String> = model.efforts.iter().map(effort).collect();
        facts.push(format!("effort {}", efforts.join("|")));
    }
    facts.extend(model.inputs.as_ref().map(|inputs| inputs.join("+")));
    let mark = if model.default { '*' } else { ' ' };
    let line = format!(
        "{mark} {:<width$}  {}",
        plain(&model.id),
        plain(&facts.join(", "))
    );
    format!("{}\n", line.trim_end())
}

/// `1M`, `262k`, `900`: enough to choose by.
fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}k", count / 1_000),
        _ if count % 1_000_000 < 100_000 => format!("{}M", count / 1_000_000),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::tokens;

    #[test]
    fn tokens_are_counted_as_people_do() {
        for (count, wanted) in [
            (900, "900"),
            (128_000, "128k"),
            (262_144, "262k"),
            (1_000_000, "1M"),
            (1_048_576, "1M"),
            (1_500_000, "1.5M"),
        ] {
            assert_eq!(tokens(count), wanted);
        }
    }
}
