//! Takes secrets out of what is handed on.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read, Write as _};

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Map, Value};
use wva_recording::{MAX_LINE, MAX_RECORDING};

const REDACTED: &str = "REDACTED";

/// Parts of names whose values are secrets, in small letters without dashes and underscores.
const NAMES: [&str; 12] = [
    "token",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "apikey",
    "accesskey",
    "accountkey",
    "authorization",
    "credential",
    "privatekey",
];

/// Parts of names that hold no secret; what is left of the name may.
const HARMLESS: [&str; 12] = [
    "tokens",
    "tokenizer",
    "tokenusage",
    "maxtoken",
    "tokenpath",
    "secretname",
    "pertoken",
    "peroutputtoken",
    "tofirsttoken",
    "intertokenlatency",
    "kvtoken",
    "tokenfirst",
];

/// Groups of annotations that say how an object is scaled.
const ANNOTATIONS: [&str; 4] =
    ["wva.llmd.ai/", "autoscaling.keda.sh/", "autoscaling.aibrix.ai/", "llm-d.ai/"];

/// Schemes of a header that holds credentials after them.
const SCHEMES: [&str; 4] = ["bearer", "basic", "digest", "negotiate"];

/// Flags of a user, whose password stands behind a colon.
const LOGINS: [&str; 4] = ["-u", "--user", "-U", "--proxy-user"];

/// Beginnings of words that are secrets by their form.
const FORMS: [&str; 9] =
    ["hf_", "sk-", "ghp_", "github_pat_", "glpat-", "nvapi-", "eyJ", "xoxb-", "AKIA"];

/// Ends the first line of a private key, and its last.
const PRIVATE_KEY: &str = "PRIVATE KEY-----";

/// Letters from which on a word of that form is a secret.
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
    rest == "bearer" || NAMES.iter().any(|name| rest.contains(name))
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
            let mut reach = Reach::Nothing;
            let mut last = String::new();
            let mut is_curl = false;
            for element in elements {
                let Value::String(text) = element else {
                    redact(element);
                    reach = Reach::Nothing;
                    continue;
                };
                let shown = flagged_login(&last, text, is_curl);
                is_curl |= runs_curl(text);
                last.clone_from(text);
                if let Some(shown) = shown {
                    *text = shown;
                    reach = Reach::Nothing;
                    continue;
                }
                if reach == Reach::Flag && text.starts_with('-') {
                    reach = Reach::Nothing;
                }
                match reach {
                    Reach::Nothing => (*text, reach) = read(text),
                    Reach::Word if is_scheme(text) => {}
                    Reach::Word | Reach::Flag => {
                        REDACTED.clone_into(text);
                        reach = reach.after_word();
                    }
                }
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

/// How far what follows a word is a secret.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Reach {
    #[default]
    Nothing,
    /// One word, or one text in quotes.
    Word,
    /// Everything up to the next flag: some flags take several values.
    Flag,
}

impl Reach {
    /// Of a flag, a header, or a scheme of a header; and whether the word itself holds the secret or its beginning.
    fn of(word: &str) -> (Self, bool) {
        if let Some((_, value)) = header(word) {
            return (Self::Word, !value.is_empty() && !is_scheme(value));
        }
        let is_flag = word.starts_with('-');
        if let Some((name, value)) = word.split_once('=') {
            return match (is_secret_name(name), is_flag) {
                (false, _) => Self::of(value),
                (true, true) => (Self::Flag, true),
                (true, false) => (Self::Word, true),
            };
        }
        let word = word.trim_end_matches(':');
        let reach = if is_flag && is_secret_name(word) {
            Self::Flag
        } else if word.eq_ignore_ascii_case("bearer") {
            Self::Word
        } else {
            Self::Nothing
        };
        (reach, false)
    }

    const fn after_word(self) -> Self {
        match self {
            Self::Flag => Self::Flag,
            Self::Word | Self::Nothing => Self::Nothing,
        }
    }
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
    read(text).0
}

/// A text without its secrets, and what of the next one is secret.
fn read(text: &str) -> (String, Reach) {
    let text = without_private_keys(text);
    let text = without_fields(&text);
    let mut words = Words::default();
    for part in text.split_inclusive(is_end) {
        let word = part.trim_end_matches(is_end);
        if !word.is_empty() {
            words.push(word);
        }
        if let Some(end) = part.get(word.len()..).and_then(|end| end.chars().next()) {
            words.end(word, end);
        }
    }
    let reach = if words.is_begun { Reach::Nothing } else { words.reach };
    (words.shown, reach)
}

fn is_end(letter: char) -> bool {
    letter.is_whitespace() || "\"'`,;".contains(letter)
}

/// The words of a text, one after the other.
#[derive(Default)]
struct Words<'a> {
    shown: String,
    reach: Reach,
    /// Whether a part of the secret was read.
    is_begun: bool,
    /// The quotes around the secret.
    quote: Option<char>,
    /// Whether something stands before the next word that belongs to it.
    is_joined: bool,
    /// Whether the word stands behind curl.
    is_curl: bool,
    last: &'a str,
}

impl<'a> Words<'a> {
    fn push(&mut self, word: &'a str) {
        if self.reach == Reach::Flag && !self.is_joined && word.starts_with('-') {
            self.reach = Reach::Nothing;
        }
        let shown = flagged_login(self.last, word, self.is_curl);
        self.is_curl |= runs_curl(word);
        if let Some(shown) = shown.filter(|_| self.reach == Reach::Nothing) {
            self.shown.push_str(&shown);
            (self.reach, self.is_begun) = (Reach::Word, true);
            // Quotes that began before are those of the whole command.
            self.quote = self.quote.filter(|_| !self.is_joined);
            self.last = word;
            return;
        }
        match self.reach {
            Reach::Nothing => {
                self.shown.push_str(&self::word(word));
                (self.reach, self.is_begun) = Reach::of(word);
                // Of a field: `"name": "secret"`.
                if word == ":" && is_secret_name(self.last) {
                    self.reach = Reach::Word;
                }
                // The quotes are those of the whole command.
                if self.reach == Reach::Flag {
                    self.quote = None;
                }
            }
            Reach::Word if !self.is_begun && is_scheme(word) => self.shown.push_str(word),
            Reach::Word | Reach::Flag => {
                self.shown.push_str(REDACTED);
                self.is_begun |= self.reach == Reach::Word;
            }
        }
        self.last = word;
    }

    /// Takes in what ends a word, or stands alone.
    fn end(&mut self, word: &str, end: char) {
        self.shown.push(end);
        let is_first = (word.is_empty() && !self.is_joined) || word.ends_with(['=', ':']);
        let is_quote = "\"'`".contains(end);
        if end.is_whitespace() {
            let is_over = self.quote.is_none() && self.is_begun && self.reach == Reach::Word;
            self.reach = if is_over { Reach::Nothing } else { self.reach };
        } else if is_quote && self.quote == Some(end) {
            self.quote = None;
            self.reach = self.reach.after_word();
        } else if is_quote && self.quote.is_none() && is_first {
            self.quote = Some(end);
        }
        // A word directly behind quotes may be a flag.
        self.is_joined = match self.quote {
            Some(quote) => quote != end,
            None => !end.is_whitespace() && (!is_quote || !word.is_empty()),
        };
    }
}

/// Private keys that stand in a text with their first line.
fn without_private_keys(text: &str) -> Cow<'_, str> {
    let Some((before, after)) = text.split_once(PRIVATE_KEY) else {
        return Cow::Borrowed(text);
    };
    let before = before.rsplit_once("-----BEGIN").map_or("", |(text, _)| text);
    let rest = after.split_once(PRIVATE_KEY).map_or("", |(_, text)| text);
    Cow::Owned(format!("{before}{REDACTED}{}", without_private_keys(rest)))
}

/// Objects of JSON that stand in a text, as in an argument, without their secrets.
fn without_fields(text: &str) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, object)) = rest.find('{').and_then(|at| rest.split_at_checked(at)) {
        let mut values = serde_json::Deserializer::from_str(object).into_iter::<Value>();
        let value = values.next().and_then(Result::ok);
        let length = value.as_ref().map_or(1, |_| values.byte_offset());
        let (own, after) = object.split_at(length);
        let redacted = value.and_then(|value| {
            let mut redacted = value.clone();
            redact(&mut redacted);
            (redacted != value).then(|| redacted.to_string())
        });
        shown.push_str(before);
        shown.push_str(redacted.as_deref().unwrap_or(own));
        rest = after;
    }
    if shown.is_empty() {
        return Cow::Borrowed(text);
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// One word: `flag=secret`, an address with a password, or a secret by its form.
fn word(word: &str) -> String {
    let assigned = word.split_once('=').filter(|(_, value)| !value.is_empty());
    if let Some((name, _)) = assigned.filter(|(name, _)| is_secret_name(name)) {
        return format!("{name}={REDACTED}");
    }
    if let Some(address) = without_user(word) {
        return address;
    }
    if let Some((name, value)) = assigned {
        let shown = login(value, false).filter(|_| LOGINS.contains(&name));
        return format!("{name}={}", shown.unwrap_or_else(|| self::word(value)));
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
    word.to_owned()
}

fn runs_curl(text: &str) -> bool {
    let mut words = text.split(is_end);
    words.any(|word| word == "curl" || word.ends_with("/curl"))
}

/// A word without the password of its user, behind a flag or, of curl, joined to one.
fn flagged_login(last: &str, word: &str, is_curl: bool) -> Option<String> {
    if LOGINS.contains(&last) {
        return login(word, is_curl);
    }
    let (flag, joined) = word.split_at_checked(2).filter(|_| is_curl)?;
    let shown = login(joined, true).filter(|_| LOGINS.contains(&flag))?;
    Some(format!("{flag}{shown}"))
}

/// A user without the password. Numbers are those of a user and a group, except for curl.
fn login(text: &str, is_curl: bool) -> Option<String> {
    let (user, password) = text.split_once(':')?;
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_group = !is_curl && is_number(user) && is_number(password);
    let is_login = !password.starts_with("//") && !is_group;
    is_login.then(|| format!("{user}:{REDACTED}"))
}

/// An address without user and password. Some passwords have a slash, and a port has digits alone.
fn without_user(word: &str) -> Option<String> {
    let (scheme, rest) = word.split_once("://")?;
    let (authority, _) = rest.split_once('/').unwrap_or((rest, ""));
    let (_, behind) = authority.split_once(':').unwrap_or_default();
    let (user, _) = if authority.contains('@') || behind.parse::<u16>().is_ok() {
        authority.rsplit_once('@')?
    } else {
        rest.rsplit_once('@').filter(|_| !behind.is_empty())?
    };
    let host = rest.get(user.len()..)?;
    Some(format!("{scheme}://{REDACTED}{host}"))
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
