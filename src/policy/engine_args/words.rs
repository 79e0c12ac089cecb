//! From commands to words: what a shell would pass on, as far as arguments need it.

use std::borrow::Cow;

/// Programs that run the text after `-c`.
const SHELLS: [&str; 5] = ["sh", "bash", "ash", "dash", "zsh"];

/// The words of a command. If a shell is told to run a text, the words of that text.
pub(super) fn of_command<'a>(command: &[&'a str]) -> Vec<Cow<'a, str>> {
    match script(command) {
        Some(script) => split(script).into_iter().map(Cow::Owned).collect(),
        None => command.iter().copied().map(Cow::Borrowed).collect(),
    }
}

/// The text that a shell is told to run.
fn script<'a>(command: &[&'a str]) -> Option<&'a str> {
    let shell = command.iter().position(|word| {
        let program = word.rsplit('/').next().unwrap_or_default();
        SHELLS.contains(&program)
    })?;
    let mut options = command.iter().skip(shell + 1);
    let runs = options
        .by_ref()
        .take_while(|word| word.starts_with(['-', '+']))
        .any(|word| !word.starts_with("--") && word.contains('c'));
    runs.then(|| options.next().copied()).flatten()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quote {
    None,
    Single,
    Double,
}

/// Splits at white space and at the signs between commands, outside of quotes.
pub(super) fn split(script: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = Quote::None;
    let mut letters = script.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Quote::Single, '\'') | (Quote::Double, '"') => quote = Quote::None,
            (Quote::None, '\'' | '"') => {
                quote = if letter == '"' {
                    Quote::Double
                } else {
                    Quote::Single
                };
                word.get_or_insert_default();
            }
            (Quote::None | Quote::Double, '\\') => {
                if let Some(escaped) = letters.next().filter(|next| *next != '\n') {
                    let word = word.get_or_insert_default();
                    if quote == Quote::Double && !matches!(escaped, '"' | '\\' | '$' | '`') {
                        word.push('\\');
                    }
                    word.push(escaped);
                }
            }
            (Quote::None, '#') if word.is_none() => {
                letters.by_ref().find(|letter| *letter == '\n');
            }
            (Quote::None, ';' | '&' | '|') => words.extend(word.take()),
            (Quote::None, space) if space.is_whitespace() => words.extend(word.take()),
            (_, other) => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}
