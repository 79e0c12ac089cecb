//! Takes secrets out of what is handed on.

use std::io::{self, BufRead, BufReader, Read, Write as _};

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Map, Value};
use wva_recording::{MAX_LINE, MAX_RECORDING};

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

/// Parts of names that hold no secret; what is left of the name may.
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

/// Groups of annotations that say how an object is scaled.
const ANNOTATIONS: [&str; 4] = [
    "wva.llmd.ai/",
    "autoscaling.keda.sh/",
    "autoscaling.aibrix.ai/",
    "llm-d.ai/",
];

/// Schemes of a header that holds credentials after them.
const SCHEMES: [&str; 4] = ["bearer", "basic", "digest", "negotiate"];

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
    // Else "tokens" would take the first letter of the secret.
    let plain = plain.replace("tokensecret", "token secret");
    let rest = (HARMLESS.iter()).fold(plain, |rest, part| rest.replace(part, " "));
    NAMES.iter().any(|name| rest.contains(name))
}

/// Drops what no report needs of an object: who wrote it, and annotations of others, which hold it once more as text.
fn strip(fields: &mut Map<String, Value>) {
    fields.remove("managedFields");
    if let Some(Value::Object(annotations)) = fields.get_mut("annotations") {
        annotations.retain(|name, _| ANNOTATIONS.iter().any(|group| name.contains(group)));
    }
    if let Some(Value::Array(variables)) = fields.get_mut("env") {
        let values = variables.iter_mut().filter_map(|one| one.get_mut("value"));
        values.for_each(blank);
    }
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
            strip(fields);
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

/// Whether a word is a flag or a header whose value, a secret, is the next word.
fn is_flag(word: &str) -> bool {
    if let Some((_, value)) = header(word) {
        return value.is_empty() || is_scheme(value);
    }
    let word = word.trim_end_matches(':');
    let is_bearer = word.eq_ignore_ascii_case("bearer");
    let is_named = word.starts_with('-') && !word.contains('=') && is_secret_name(word);
    is_bearer || is_named
}

fn header(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once(':')?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    (name.chars().all(is_name) && is_secret_name(name)).then(|| (name, value.trim()))
}

fn is_scheme(word: &str) -> bool {
    (SCHEMES.iter()).any(|scheme| word.eq_ignore_ascii_case(scheme))
}

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
        let is_scheme = follows_flag && is_scheme(end);
        if follows_flag && !is_scheme {
            shown.push_str(REDACTED);
        } else {
            shown.push_str(&word(end));
        }
        shown.push_str(rest);
        follows_flag = is_scheme || (!follows_flag && is_flag(end));
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
    if let Some((name, value)) = header(word)
        && !value.is_empty()
        && !is_scheme(value)
    {
        return format!("{name}:{REDACTED}");
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
