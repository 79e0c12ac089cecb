//! Reads a page in the text format of Prometheus
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>), line by line.

use std::borrow::Cow;

/// One line with a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleLine<'p> {
    /// Name and labels as they stand there: equal texts mean equal series.
    pub series: &'p str,
    /// The value.
    pub value: f64,
    /// Milliseconds since the Unix epoch, where the page says so.
    pub time: Option<i64>,
}

/// A page that cannot be read; Prometheus then takes nothing of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
// What a page holds is not repeated: readers of the error may not be allowed to read the page.
#[error("line {line} of the page, of {length} bytes: {problem}")]
pub struct InvalidPage {
    line: usize,
    length: usize,
    problem: &'static str,
}

impl InvalidPage {
    pub(super) fn at(line: usize, text: &str, problem: &'static str) -> Self {
        Self { line, length: text.len(), problem }
    }
}

/// The samples of a page, in order.
pub fn read(page: &str) -> Result<Vec<SampleLine<'_>>, InvalidPage> {
    let lines = page.lines().enumerate();
    lines.filter_map(|(number, text)| line(number + 1, text).transpose()).collect()
}

/// The sample of the line with this number; `None` for a comment or an empty one.
pub fn line(number: usize, text: &str) -> Result<Option<SampleLine<'_>>, InvalidPage> {
    let trimmed = text.trim_matches([' ', '\t']);
    if trimmed.is_empty() || trimmed.starts_with('#') {
        return Ok(None);
    }
    sample(trimmed).map(Some).map_err(|problem| InvalidPage::at(number, text, problem))
}

/// The name and the type that a line declares.
pub fn declared_type(text: &str) -> Option<(&str, &str)> {
    let comment = text.trim_matches([' ', '\t']).strip_prefix('#')?;
    let mut words = comment.split_ascii_whitespace();
    words.next().filter(|word| *word == "TYPE")?;
    Some((words.next()?, words.next()?))
}

fn sample(text: &str) -> Result<SampleLine<'_>, &'static str> {
    let end = end_of_series(text)?;
    let (series, rest) = text.split_at_checked(end).ok_or("it breaks off")?;
    let series = series.trim_end();
    let mut words = rest.split_ascii_whitespace();
    let value = words.next().ok_or("it has no value")?;
    let value = number(value).ok_or("its value is no number")?;
    let time = match words.next().map(str::parse) {
        None => None,
        Some(Ok(time)) => Some(time),
        Some(Err(_)) => return Err("its time is no number of milliseconds"),
    };
    if words.next().is_some() {
        return Err("something follows its time");
    }
    Ok(SampleLine { series, value, time })
}

/// A value. Whatever NaN is written, it is the usual one: none of them can be taken for a mark.
fn number(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    Some(if value.is_nan() { f64::NAN } else { value })
}

fn end_of_series(text: &str) -> Result<usize, &'static str> {
    let Some(start) = text.find(['{', ' ', '\t']) else {
        return Err("it has no value");
    };
    let space_then_brace = text.get(start..).and_then(|rest| rest.trim_start().strip_prefix('{'));
    let Some(inside) = space_then_brace else {
        return Ok(start);
    };
    let begin = text.len() - inside.len();
    let mut quoted = false;
    let mut escaped = false;
    for (place, letter) in inside.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '}' if !quoted => return Ok(begin + place + 1),
            _ => {}
        }
    }
    Err("its labels do not end")
}

/// Name and labels of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named<'p> {
    /// The name.
    pub name: &'p str,
    /// The labels, in the order in which they stand there.
    pub labels: Vec<(&'p str, Cow<'p, str>)>,
}

/// Reads the name and the labels of a series.
///
/// # Errors
/// What is wrong with it.
pub fn labels(series: &str) -> Result<Named<'_>, &'static str> {
    let (name, inside) = match series.split_once('{') {
        Some((name, rest)) => (name.trim_end(), rest.strip_suffix('}').unwrap_or(rest)),
        None => (series, ""),
    };
    if !is_name(name, true) {
        return Err("the name of its series is none");
    }
    let mut labels = Vec::new();
    let mut rest = inside.trim();
    while !rest.is_empty() {
        let (label, after) = rest.split_once('=').ok_or("a label has no value")?;
        let label = label.trim();
        if !is_name(label, false) {
            return Err("the name of a label is none");
        }
        let quoted = after.trim_start().strip_prefix('"');
        let (value, after) = quoted.and_then(value).ok_or("the value of a label is not quoted")?;
        labels.push((label, value));
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(next) => next.trim_start(),
            None if after.is_empty() => after,
            None => return Err("labels are not separated by commas"),
        };
    }
    Ok(Named { name, labels })
}

/// The text up to the closing quote, and what follows.
fn value(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let plain = text.find(['"', '\\'])?;
    if text.get(plain..)?.starts_with('"') {
        return Some((Cow::Borrowed(text.get(..plain)?), text.get(plain + 1..)?));
    }
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((place, letter)) = letters.next() {
        match letter {
            '"' => return Some((Cow::Owned(value), text.get(place + 1..)?)),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                plain @ ('\\' | '"') => value.push(plain),
                other => value.extend(['\\', other]),
            },
            other => value.push(other),
        }
    }
    None
}

fn is_name(text: &str, of_series: bool) -> bool {
    let starts = |letter: char| {
        letter.is_ascii_alphabetic() || letter == '_' || (of_series && letter == ':')
    };
    text.starts_with(starts) && text.chars().all(|letter| starts(letter) || letter.is_ascii_digit())
}

/// The name at the start of a series.
pub fn name(series: &str) -> &str {
    series.split(['{', ' ']).next().unwrap_or(series)
}
