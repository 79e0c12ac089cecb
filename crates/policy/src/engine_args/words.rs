//! From commands to words: what a shell would pass on, as far as arguments need it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Programs that run the text after `-c`.
const SHELLS: [&str; 5] = ["sh", "bash", "ash", "dash", "zsh"];

type Values = BTreeMap<Arc<str>, Arc<str>>;

/// The words of a command. If a shell runs a text, the words of that text, with the
/// variables that it sets itself or finds among `values`.
pub(super) fn of_command<'a>(command: &[&'a str], values: &Values) -> Vec<Cow<'a, str>> {
    match script(command) {
        Some((script, parameters)) => {
            let words = split(script, values, parameters);
            words.into_iter().map(Cow::Owned).collect()
        }
        None => command.iter().copied().map(Cow::Borrowed).collect(),
    }
}

/// The names of the variables that the text of a shell uses.
pub fn shell_variables<'a>(command: &[&'a str]) -> BTreeSet<&'a str> {
    let script = script(command).map_or("", |(script, _)| script);
    let mut parts = script.split('$');
    // Before the first sign there is none.
    parts.next();
    parts.filter_map(|part| Reference::read(part).map(|(reference, _)| reference.name)).collect()
}

/// The text that a shell runs, and the parameters behind it, `$0` first.
fn script<'a, 'c>(command: &'c [&'a str]) -> Option<(&'a str, &'c [&'a str])> {
    let shell = command.iter().position(|word| {
        let program = word.rsplit('/').next().unwrap_or_default();
        SHELLS.contains(&program)
    })?;
    let mut options = command.get(shell + 1..)?.iter();
    let runs = options
        .by_ref()
        .take_while(|word| word.starts_with(['-', '+']))
        .any(|word| !word.starts_with("--") && word.contains('c'));
    let script = options.next().filter(|_| runs)?;
    Some((script, options.as_slice()))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quote {
    None,
    Single,
    Double,
}

/// `NAME`, `{NAME}`, `{NAME:-otherwise}` or `{NAME-otherwise}` behind a dollar sign.
struct Reference<'a> {
    name: &'a str,
    otherwise: Option<&'a str>,
}

impl<'a> Reference<'a> {
    /// The reference that a text begins with, and how many bytes it has.
    fn read(text: &'a str) -> Option<(Self, usize)> {
        if let Some(inner) = text.strip_prefix('{') {
            let (inner, _) = inner.split_once('}')?;
            let (name, otherwise) = match inner.split_once('-') {
                Some((name, otherwise)) => (name.trim_end_matches(':'), Some(otherwise)),
                None => (inner, None),
            };
            let reference = Self { name, otherwise };
            return (name_length(name) == name.len()).then_some((reference, inner.len() + 2));
        }
        let (name, _) = text.split_at_checked(name_length(text))?;
        let reference = Self { name, otherwise: None };
        Some((reference, name.len())).filter(|(_, length)| *length > 0)
    }
}

fn name_length(text: &str) -> usize {
    let is_of_name = |(at, byte): (usize, u8)| {
        byte == b'_' || byte.is_ascii_alphabetic() || (at > 0 && byte.is_ascii_digit())
    };
    let bytes = text.bytes().enumerate();
    bytes.take_while(|byte| is_of_name(*byte)).count()
}

/// Most bytes that variables may add to a text.
const MAX_EXPANDED: usize = 64 * 1024;

struct Splitter<'v> {
    values: &'v Values,
    /// `$0`, `$1` and so on.
    parameters: &'v [&'v str],
    own: BTreeMap<String, String>,
    words: Vec<String>,
    word: Option<String>,
    /// Bytes that variables may still add.
    room: usize,
}

impl Splitter<'_> {
    fn push(&mut self, letter: char) {
        self.word.get_or_insert_default().push(letter);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if let Some((name, value)) = word.split_once('=')
            && !name.is_empty()
            && name_length(name) == name.len()
        {
            self.own.insert(name.to_owned(), value.to_owned());
        }
        self.words.push(word);
    }

    /// Takes in the value of the variable that `rest` names; returns how many bytes of `rest` that
    /// were. An unknown variable stays as it is written.
    fn expand(&mut self, rest: &str, quote: Quote) -> usize {
        let known = Reference::read(rest).and_then(|(reference, length)| {
            let own = self.own.get(reference.name).map(String::as_str);
            let value = own.or_else(|| self.values.get(reference.name).map(|value| &**value));
            let value = match reference.otherwise {
                Some(otherwise) => value.filter(|value| !value.is_empty()).unwrap_or(otherwise),
                None => value?,
            };
            (value.len() <= self.room).then(|| (value.to_owned(), length))
        });
        let Some((value, length)) = known else {
            return self.expand_parameters(rest, quote).unwrap_or_else(|| {
                self.push('$');
                0
            });
        };
        self.insert(&value, quote);
        length
    }

    /// Takes in the parameters that `rest` names, as [`Self::expand`] does: one by its number, or all
    /// from the first on by `@` or `*`.
    fn expand_parameters(&mut self, rest: &str, quote: Quote) -> Option<usize> {
        let (name, length) = match rest.strip_prefix('{') {
            Some(inner) => (inner.split_once('}')?.0, 2),
            None => (rest.get(..1)?, 0),
        };
        let named = match name {
            "@" | "*" => self.parameters.get(1..).unwrap_or_default(),
            number if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                let number: usize = number.parse().ok()?;
                self.parameters.get(number..).unwrap_or_default().get(..1).unwrap_or_default()
            }
            _ => return None,
        };
        if named.iter().map(|value| value.len() + 1).sum::<usize>() > self.room {
            return None;
        }
        if named.is_empty() && self.word.as_ref().is_some_and(String::is_empty) {
            self.word = None;
        }
        for (index, value) in named.iter().enumerate() {
            match (index, name, quote) {
                (0, _, _) => {}
                (_, "*", Quote::Double) => self.push(' '),
                _ => self.end_word(),
            }
            self.insert(value, quote);
        }
        Some(name.len() + length)
    }

    fn insert(&mut self, value: &str, quote: Quote) {
        self.room = self.room.saturating_sub(value.len() + 1);
        for letter in value.chars() {
            if quote == Quote::None && letter.is_whitespace() {
                self.end_word();
            } else {
                self.push(letter);
            }
        }
    }
}

/// Splits at white space and at the signs between commands, outside of quotes. Variables are replaced
/// by their values, as far as the text sets them, `values` has them or they are `parameters`.
pub(super) fn split(script: &str, values: &Values, parameters: &[&str]) -> Vec<String> {
    let mut out = Splitter {
        values,
        parameters,
        own: BTreeMap::new(),
        words: Vec::new(),
        word: None,
        room: MAX_EXPANDED,
    };
    let mut quote = Quote::None;
    let mut letters = script.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Quote::Single, '\'') | (Quote::Double, '"') => quote = Quote::None,
            (Quote::None, '\'' | '"') => {
                quote = if letter == '"' { Quote::Double } else { Quote::Single };
                out.word.get_or_insert_default();
            }
            (Quote::None | Quote::Double, '\\') => {
                if let Some(escaped) = letters.next().filter(|next| *next != '\n') {
                    if quote == Quote::Double && !matches!(escaped, '"' | '\\' | '$' | '`') {
                        out.push('\\');
                    }
                    out.push(escaped);
                }
            }
            (Quote::None | Quote::Double, '$') => {
                let length = out.expand(letters.as_str(), quote);
                letters = letters.as_str().split_at(length).1.chars();
            }
            (Quote::None, '#') if out.word.is_none() => {
                letters.by_ref().find(|letter| *letter == '\n');
            }
            (Quote::None, ';' | '&' | '|') => out.end_word(),
            (Quote::None, space) if space.is_whitespace() => out.end_word(),
            (_, other) => out.push(other),
        }
    }
    out.end_word();
    out.words
}
