//! The words of an expression.

use std::iter::Peekable;
use std::str::CharIndices;

/// A word with the place where it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) word: Word,
    /// In bytes from the start.
    pub(super) place: usize,
}

/// A word.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Word {
    /// A name, a keyword, or a number with letters in it.
    Name(String),
    /// Starts with a digit or a point: a number or a length of time.
    Number(String),
    Text(String),
    /// Brackets, commas, operators.
    Sign(&'static str),
    End,
}

impl Word {
    /// As errors show it.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Name(name) => format!("identifier {name:?}"),
            Self::Number(number) => format!("number {number:?}"),
            Self::Text(text) => format!("string {text:?}"),
            Self::Sign(sign) => format!("{sign:?}"),
            Self::End => "end of input".to_owned(),
        }
    }
}

/// The longer ones first.
const SIGNS: [&str; 22] = [
    "==", "!=", "<=", ">=", "=~", "!~", "(", ")", "{", "}", "[", "]", ",", ":", "=", "<", ">", "+",
    "-", "*", "/", "%",
];

/// What cannot be read, and where.
pub(super) type TokenError = (usize, String);

/// Splits an expression into words; the last one is [`Word::End`].
pub(super) fn split(text: &str) -> Result<Vec<Token>, TokenError> {
    let mut tokens = Vec::new();
    let mut letters = text.char_indices().peekable();
    // Within square brackets a colon separates range and step; elsewhere it belongs to names.
    let mut bracketed = false;
    while let Some((place, letter)) = letters.peek().copied() {
        let word = match letter {
            ' ' | '\t' | '\r' | '\n' => {
                letters.next();
                continue;
            }
            '#' => {
                while letters.next_if(|(_, letter)| *letter != '\n').is_some() {}
                continue;
            }
            '"' | '\'' => Word::Text(quoted(&mut letters, letter).map_err(|why| (place, why))?),
            '`' => Word::Text(raw(&mut letters).ok_or_else(|| (place, UNTERMINATED.to_owned()))?),
            '^' => {
                letters.next();
                Word::Sign("^")
            }
            _ if letter.is_ascii_digit() || letter == '.' => Word::Number(number(&mut letters)),
            _ if letter.is_ascii_alphabetic() || letter == '_' => Word::Name(name(&mut letters)),
            ':' if !bracketed => Word::Name(name(&mut letters)),
            _ => Word::Sign(sign(text, place, &mut letters)?),
        };
        match word {
            Word::Sign("[") => bracketed = true,
            Word::Sign("]") => bracketed = false,
            _ => {}
        }
        tokens.push(Token { word, place });
    }
    tokens.push(Token {
        word: Word::End,
        place: text.len(),
    });
    Ok(tokens)
}

type Letters<'t> = Peekable<CharIndices<'t>>;

const UNTERMINATED: &str = "unterminated quoted string";

fn sign(text: &str, place: usize, letters: &mut Letters<'_>) -> Result<&'static str, TokenError> {
    let rest = text.get(place..).unwrap_or_default();
    let found = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
    let Some(sign) = found else {
        let letter: String = rest.chars().take(1).collect();
        return Err((place, format!("unexpected character: {letter:?}")));
    };
    for _ in sign.chars() {
        letters.next();
    }
    Ok(sign)
}

fn name(letters: &mut Letters<'_>) -> String {
    collect(letters, |letter| {
        letter.is_ascii_alphanumeric() || matches!(letter, '_' | ':')
    })
}

fn number(letters: &mut Letters<'_>) -> String {
    let mut text = collect(letters, |letter| {
        letter.is_ascii_alphanumeric() || letter == '.'
    });
    let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    if text.ends_with(['e', 'E'])
        && !hexadecimal
        && let Some((_, sign)) = letters.next_if(|(_, letter)| matches!(letter, '+' | '-'))
    {
        text.push(sign);
        text.push_str(&collect(letters, |letter| letter.is_ascii_digit()));
    }
    text
}

fn collect(letters: &mut Letters<'_>, belongs: impl Fn(char) -> bool) -> String {
    let mut text = String::new();
    while let Some((_, letter)) = letters.next_if(|(_, letter)| belongs(*letter)) {
        text.push(letter);
    }
    text
}

fn raw(letters: &mut Letters<'_>) -> Option<String> {
    letters.next();
    let text = collect(letters, |letter| letter != '`');
    letters.next().map(|_| text)
}

fn quoted(letters: &mut Letters<'_>, quote: char) -> Result<String, String> {
    letters.next();
    let mut text = String::new();
    while let Some((_, letter)) = letters.next() {
        match letter {
            '\\' => text.push(escaped(letters)?),
            '\n' => break,
            _ if letter == quote => return Ok(text),
            other => text.push(other),
        }
    }
    Err(UNTERMINATED.to_owned())
}

fn escaped(letters: &mut Letters<'_>) -> Result<char, String> {
    let letter = letters.next().map(|(_, letter)| letter);
    let digits = match letter {
        Some('n') => return Ok('\n'),
        Some('r') => return Ok('\r'),
        Some('t') => return Ok('\t'),
        Some(plain @ ('\\' | '"' | '\'')) => return Ok(plain),
        Some('x') => 2,
        Some('u') => 4,
        Some('U') => 8,
        Some(other) => {
            return Err(format!(
                "unknown escape sequence U+{:04X}",
                u32::from(other)
            ));
        }
        None => return Err("escape sequence not terminated".to_owned()),
    };
    let code: String = letters.take(digits).map(|(_, letter)| letter).collect();
    let code = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
    code.ok_or_else(|| "escape sequence is an invalid Unicode code point".to_owned())
}
