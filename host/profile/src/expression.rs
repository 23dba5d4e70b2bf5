//! `!!js`: the closed, side-effect-free part of JavaScript that rows may use.
//!
//! ```text
//! expression = operand { "??" operand }
//! operand    = "process.env." NAME | "dshHomePath(" expression ")" | string | "(" expression ")"
//! ```
//!
//! Nothing here runs code: shipped and hand-written files keep parsing under
//! upstream's tag, and whatever is not of this grammar is an error that says so.
//! A value is a string, or `undefined` (none) for a variable that is not set; `??`
//! passes an empty string on, as JavaScript does.

use crate::{Environment, Home};
use std::path::PathBuf;

/// Evaluates an expression.
pub(crate) fn evaluate(
    expression: &str,
    env: &Environment,
    home: &Home,
) -> Result<Option<String>, String> {
    let mut reader = Reader {
        rest: expression.trim(),
        env,
        home,
        depth: 0,
    };
    let value = reader.expression()?;
    if reader.rest.is_empty() {
        Ok(value)
    } else {
        Err(reader.unexpected())
    }
}

struct Reader<'a> {
    rest: &'a str,
    env: &'a Environment,
    home: &'a Home,
    depth: u32,
}

impl<'a> Reader<'a> {
    fn expression(&mut self) -> Result<Option<String>, String> {
        let mut value = self.operand()?;
        while self.take("??") {
            let other = self.operand()?;
            value = value.or(other);
        }
        Ok(value)
    }

    fn operand(&mut self) -> Result<Option<String>, String> {
        if self.take("(") {
            return self.group();
        }
        if self.take("process.env.") {
            let name = self.word();
            if name.is_empty() {
                return Err(self.unexpected());
            }
            return Ok(self.env.get(name).map(str::to_owned));
        }
        if self.take("dshHomePath") {
            if !self.take("(") {
                return Err(self.unexpected());
            }
            let below = self.group()?.ok_or("dshHomePath needs a string")?;
            return home_path(self.home, &below).map(Some);
        }
        match self.rest.chars().next() {
            Some(quote @ ('\'' | '"')) => self.string(quote).map(Some),
            _ => Err(self.unexpected()),
        }
    }

    /// An expression up to its closing parenthesis.
    fn group(&mut self) -> Result<Option<String>, String> {
        self.depth += 1;
        if self.depth > 64 {
            return Err("it is nested too deeply".into());
        }
        let value = self.expression()?;
        self.depth -= 1;
        if self.take(")") {
            Ok(value)
        } else {
            Err(self.unexpected())
        }
    }

    fn string(&mut self, quote: char) -> Result<String, String> {
        let mut text = String::new();
        let mut chars = self.rest[1..].char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                c if c == quote => {
                    self.rest = self.rest[1 + at + 1..].trim_start();
                    return Ok(text);
                }
                '\\' => match chars.next() {
                    Some((_, c @ ('\\' | '\'' | '"'))) => text.push(c),
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    _ => return Err("a string has an escape that is not supported".into()),
                },
                c => text.push(c),
            }
        }
        Err("a string is not closed".into())
    }

    fn word(&mut self) -> &'a str {
        let end = self
            .rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word
    }

    fn take(&mut self, token: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(token) else {
            return false;
        };
        self.rest = if token.ends_with('.') {
            rest
        } else {
            rest.trim_start()
        };
        true
    }

    fn unexpected(&self) -> String {
        const KNOWN: &str =
            "only process.env.NAME, dshHomePath('…'), strings, ( ) and ?? are supported";
        match self.rest {
            "" => format!("it ends too early; {KNOWN}"),
            rest => format!("not supported at {rest:?}; {KNOWN}"),
        }
    }
}

fn home_path(home: &Home, below: &str) -> Result<String, String> {
    let path: PathBuf = home.path().join(below.trim_start_matches('/'));
    path.into_os_string()
        .into_string()
        .map_err(|_| "the path of DSH_HOME is not Unicode".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn eval(expression: &str) -> Result<Option<String>, String> {
        let env = Environment::process([("A".into(), "a".into()), ("EMPTY".into(), "".into())]);
        let home = Home::resolve(Some("/h".as_ref()), None, Path::new("/")).unwrap();
        evaluate(expression, &env, &home)
    }

    #[test]
    fn values_are_as_in_javascript() {
        for (expression, value) in [
            ("process.env.A", Some("a")),
            ("process.env.NONE", None),
            ("process.env.NONE ?? 'x'", Some("x")),
            ("process.env.NONE??process.env.ALSO??\"y\"", Some("y")),
            ("process.env.EMPTY ?? 'x'", Some("")),
            ("dshHomePath('sessions')", Some("/h/sessions")),
            ("dshHomePath( process.env.NONE ?? '/a/b' )", Some("/h/a/b")),
            ("(process.env.NONE ?? (process.env.A))", Some("a")),
            ("'it\\'s \\\\ \"x\"'", Some("it's \\ \"x\"")),
            ("  'x'  ", Some("x")),
        ] {
            assert_eq!(
                eval(expression),
                Ok(value.map(str::to_owned)),
                "{expression}"
            );
        }
    }

    #[test]
    fn anything_else_is_an_error_that_names_the_place() {
        for expression in [
            "",
            "process.platform === 'win32'",
            "process.env",
            "process.env.",
            "process.env['A']",
            "process.env.A || 'x'",
            "ctx.headlessStartup.task",
            "process.env.A ? 'a' : 'b'",
            "'open",
            "`t`",
            "process.env.A 'x'",
            "dshHomePath()",
            "dshHomePath(process.env.NONE)",
            "require('fs')",
            "1",
            "'a' ??",
            "('a'",
            "'\\x41'",
            "process.env.A.length",
        ] {
            assert!(eval(expression).is_err(), "{expression}");
        }
        assert!(eval(&"(".repeat(100_000)).is_err());
        assert!(eval("process.env.A || 'x'").unwrap_err().contains("|| 'x'"));
    }
}
