//! The words of an expression.

use std::iter::Peekable;
use std::str::CharIndices;

/// A word with the place where it begins, in bytes from the start.
pub(super) type Token = (Word, usize);

pub(super) type TokenError = (usize, String);

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Word {
    Name(String),
    /// Starts with a digit: a number or a length of time.
    Number(String),
    Text(String),
    /// A bracket, comma or operator.
    Sign(char),
    End,
}

impl Word {
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Name(text) | Self::Number(text) | Self::Text(text) => format!("{text:?}"),
            Self::Sign(sign) => format!("{sign:?}"),
            Self::End => "end of input".to_owned(),
        }
    }
}

/// Splits an expression into words; the last one is [`Word::End`].
pub(super) fn split(text: &str) -> Result<Vec<Token>, TokenError> {
    let mut tokens = Vec::new();
    let mut letters = text.char_indices().peekable();
    // Within square brackets a colon separates range and step; elsewhere it belongs to names.
    let mut bracketed = false;
    while let Some((place, letter)) = letters.peek().copied() {
        let word = match letter {
            '"' => Word::Text(quoted(&mut letters).map_err(|why| (place, why))?),
            _ if letter.is_ascii_digit() => Word::Number(collect(&mut letters, |letter| {
                letter.is_ascii_alphanumeric() || letter == '.'
            })),
            _ if is_of_names(letter) && !(bracketed && letter == ':') => {
                Word::Name(collect(&mut letters, is_of_names))
            }
            _ => {
                letters.next();
                if letter.is_ascii_whitespace() {
                    continue;
                }
                if !"(){}[],:=>!~-".contains(letter) {
                    return Err((place, format!("unexpected character: {letter:?}")));
                }
                bracketed = (bracketed || letter == '[') && letter != ']';
                Word::Sign(letter)
            }
        };
        tokens.push((word, place));
    }
    tokens.push((Word::End, text.len()));
    Ok(tokens)
}

type Letters<'t> = Peekable<CharIndices<'t>>;

fn is_of_names(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | ':')
}

fn collect(letters: &mut Letters<'_>, belongs: impl Fn(char) -> bool) -> String {
    let mut text = String::new();
    while let Some((_, letter)) = letters.next_if(|(_, letter)| belongs(*letter)) {
        text.push(letter);
    }
    text
}

fn quoted(letters: &mut Letters<'_>) -> Result<String, String> {
    letters.next();
    let mut text = String::new();
    while let Some((_, letter)) = letters.next() {
        match letter {
            '\\' => text.push(escaped(letters)?),
            '"' => return Ok(text),
            '\n' => break,
            other => text.push(other),
        }
    }
    Err("unterminated quoted string".to_owned())
}

fn escaped(letters: &mut Letters<'_>) -> Result<char, String> {
    match letters.next().map(|(_, letter)| letter) {
        Some('n') => Ok('\n'),
        Some('r') => Ok('\r'),
        Some('t') => Ok('\t'),
        Some(plain @ ('\\' | '"')) => Ok(plain),
        Some('u') => {
            let code: String = letters.take(4).map(|(_, letter)| letter).collect();
            let code = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
            code.ok_or_else(|| "escape sequence is no Unicode code point".to_owned())
        }
        _ => Err("unknown escape sequence".to_owned()),
    }
}
