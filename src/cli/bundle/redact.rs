//! Takes secrets out of what is handed on.

use std::io::{self, BufRead, BufReader, Read, Write as _};

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;
use wva_recording::{MAX_LINE, MAX_RECORDING};

/// In place of a secret.
const REDACTED: &str = "REDACTED";

/// Parts of names whose values are secrets, in small letters without dashes and underscores.
const NAMES: [&str; 8] = [
    "token",
    "password",
    "passwd",
    "secret",
    "apikey",
    "authorization",
    "credential",
    "privatekey",
];

/// Names with such a part that hold no secret.
const HARMLESS: [&str; 8] = [
    "tokens",
    "tokenizer",
    "maxtoken",
    "tokenpath",
    "secretname",
    "pertoken",
    "kvtoken",
    "tokenfirst",
];

/// Beginnings of words that are secrets by their form.
const FORMS: [&str; 6] = ["hf_", "sk-", "ghp_", "glpat-", "eyJ", "xoxb-"];

/// Letters from which on a word of such a form is a secret.
const LEAST: usize = 12;

fn is_secret_name(name: &str) -> bool {
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    let is_harmless = HARMLESS.iter().any(|name| plain.contains(name));
    !is_harmless && NAMES.iter().any(|name| plain.contains(name))
}

/// Redacts every text below a secret name, after a flag of one, and of the form of one.
pub(super) fn redact(value: &mut Value) {
    match value {
        Value::String(text) => *text = redacted(text),
        Value::Array(elements) => {
            let mut follows_flag = false;
            for element in elements {
                let is_flag = element.as_str().is_some_and(is_flag);
                if follows_flag && element.is_string() {
                    *element = Value::from(REDACTED);
                } else {
                    redact(element);
                }
                follows_flag = is_flag;
            }
        }
        Value::Object(fields) => {
            // Environment variables, and headers.
            let is_named = (fields.get("name").and_then(Value::as_str)).is_some_and(is_secret_name);
            for (name, field) in fields {
                if is_secret_name(name) || (is_named && name == "value") {
                    blank(field);
                } else {
                    redact(field);
                }
            }
        }
        _ => {}
    }
}

/// Blanks every text, of whatever depth. Numbers are counts of tokens.
fn blank(value: &mut Value) {
    match value {
        Value::String(text) => REDACTED.clone_into(text),
        Value::Array(elements) => elements.iter_mut().for_each(blank),
        Value::Object(fields) => fields.values_mut().for_each(blank),
        _ => {}
    }
}

/// Whether a word is a flag whose value, a secret, is the next word.
fn is_flag(word: &str) -> bool {
    let is_bearer = word.eq_ignore_ascii_case("bearer");
    let is_named = word.starts_with('-') && !word.contains('=') && is_secret_name(word);
    is_bearer || is_named
}

/// A text with its secret words redacted.
pub(super) fn redacted(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut follows_flag = false;
    for part in
        text.split_inclusive(|letter: char| letter.is_whitespace() || "\"'`,;".contains(letter))
    {
        let end = part
            .trim_end_matches(|letter: char| letter.is_whitespace() || "\"'`,;".contains(letter));
        let rest = part.get(end.len()..).unwrap_or_default();
        if end.is_empty() {
            shown.push_str(part);
            continue;
        }
        if follows_flag {
            shown.push_str(REDACTED);
        } else {
            shown.push_str(&word(end));
        }
        shown.push_str(rest);
        follows_flag = !follows_flag && is_flag(end.trim_end_matches(':'));
    }
    shown
}

/// One word: `flag=secret`, an address with a password, or a secret by its form.
fn word(word: &str) -> String {
    if let Some((name, value)) = word.split_once('=')
        && !value.is_empty()
    {
        return if is_secret_name(name) {
            format!("{name}={REDACTED}")
        } else {
            format!("{name}={}", self::word(value))
        };
    }
    let is_secret = FORMS.iter().any(|form| word.starts_with(form));
    if is_secret && word.len() >= LEAST {
        return REDACTED.to_owned();
    }
    if let Some((scheme, rest)) = word.split_once("://")
        && let Some((user, host)) = rest.split_once('@')
        && !user.contains('/')
    {
        return format!("{scheme}://{REDACTED}@{host}");
    }
    word.to_owned()
}

/// A recording without secrets. Its decisions are repeated all the same: no plan reads what is redacted.
///
/// # Errors
/// It cannot be read.
pub(super) fn redact_recording(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let limit = u64::try_from(MAX_LINE).unwrap_or(u64::MAX);
    let mut source = BufReader::new(MultiGzDecoder::new(bytes).take(MAX_RECORDING));
    let mut writer = GzEncoder::new(Vec::new(), Compression::default());
    loop {
        let mut line = Vec::new();
        match (&mut source).take(limit).read_until(b'\n', &mut line) {
            // The last segment of a running controller has no end.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            read => read?,
        };
        if line.is_empty() {
            break;
        }
        let mut value: Value = serde_json::from_slice(&line)?;
        redact(&mut value);
        serde_json::to_writer(&mut writer, &value)?;
        writer.write_all(b"\n")?;
    }
    writer.finish()
}
