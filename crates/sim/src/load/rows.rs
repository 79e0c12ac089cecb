//! Lines of a trace file, and what can be wrong with them.

use std::io::BufRead;
use std::time::Duration;

/// Bytes of a line; the longest known prompts make lines of 3 kB.
const MAX_LINE: usize = 65_536;

pub(super) const AZURE: &str = "TIMESTAMP,ContextTokens,GeneratedTokens";
pub(super) const AIBRIX: &str = "t_ms,input_tokens,output_tokens";
pub(super) const AGGREGATE: &str =
    "t_s,rate_rps,active_clients,rate_with_lengths_rps,mean_input_tokens,mean_output_tokens";

#[derive(Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub(crate) struct TraceError {
    /// The line, from 1; 0 where there is none.
    pub(crate) line: u64,
    pub(crate) problem: TraceProblem,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum TraceProblem {
    #[error("the file holds no requests; give one that does")]
    Empty,
    #[error("the file is compressed; unpack it first (gunzip -k FILE)")]
    Compressed,
    #[error(
        "unknown format, the file begins {beginning:?}; known are CSV files that begin \
         \"{AZURE}\", \"{AIBRIX}\" or \"{AGGREGATE}\", and JSON lines with timestamp, \
         input_length, output_length and hash_ids"
    )]
    Unknown {
        /// The beginning of the first line.
        beginning: String,
    },
    #[error("longer than {MAX_LINE} bytes; is this a trace of one request per line?")]
    Long,
    #[error("not UTF-8; save the file as UTF-8")]
    NotText,
    #[error("{found} columns where {wanted} are needed; add what is missing or delete the line")]
    Columns { found: usize, wanted: usize },
    #[error("{field} is {value:?}; give {wanted}")]
    Value {
        field: &'static str,
        value: String,
        wanted: &'static str,
    },
    #[error("{0}; give an object with timestamp, input_length, output_length and hash_ids")]
    Json(#[from] serde_json::Error),
    #[error("the time goes back from {before:?} to {at:?}; sort the file by time")]
    Backwards { before: Duration, at: Duration },
    #[error("more than {most} requests belong together; split the file")]
    TooMany { most: usize },
    #[error("cannot be read: {0}; check the file and the disk")]
    Read(#[from] std::io::Error),
}

impl TraceError {
    pub(super) fn at(line: u64, problem: impl Into<TraceProblem>) -> Self {
        let problem = problem.into();
        Self { line, problem }
    }
}

impl TraceProblem {
    pub(super) fn unknown(text: &str) -> Self {
        let beginning = text.chars().take(60).collect();
        Self::Unknown { beginning }
    }

    pub(super) fn value(field: &'static str, value: &str, wanted: &'static str) -> Self {
        let value = value.chars().take(60).collect();
        Self::Value {
            field,
            value,
            wanted,
        }
    }
}

/// Numbered lines without their ends; empty ones are left out. The first error is the last item.
pub(super) fn lines(
    mut reader: impl BufRead,
) -> impl Iterator<Item = Result<(u64, String), TraceError>> {
    let mut number = 0;
    let mut failed = false;
    std::iter::from_fn(move || {
        while !failed {
            number += 1;
            match read_line(&mut reader) {
                Ok(None) => return None,
                Ok(Some(line)) if line.is_empty() => {}
                Ok(Some(line)) => return Some(Ok((number, line))),
                Err(problem) => {
                    failed = true;
                    return Some(Err(TraceError::at(number, problem)));
                }
            }
        }
        None
    })
}

fn read_line(reader: &mut impl BufRead) -> Result<Option<String>, TraceProblem> {
    let mut line = Vec::new();
    let most = u64::try_from(MAX_LINE).unwrap_or(u64::MAX) + 2;
    let read = std::io::Read::take(reader, most).read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(None);
    }
    if line.starts_with(&[0x1f, 0x8b]) {
        return Err(TraceProblem::Compressed);
    }
    if line.len() > MAX_LINE {
        return Err(TraceProblem::Long);
    }
    let text = String::from_utf8(line).map_err(|error| {
        drop(error);
        TraceProblem::NotText
    })?;
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

pub(super) fn fields<const N: usize>(line: u64, text: &str) -> Result<[&str; N], TraceError> {
    let mut columns = [""; N];
    let mut found = 0;
    for (column, field) in columns.iter_mut().zip(text.split(',')) {
        *column = field.trim();
        found += 1;
    }
    if found == N {
        Ok(columns)
    } else {
        let wanted = N;
        Err(TraceError::at(
            line,
            TraceProblem::Columns { found, wanted },
        ))
    }
}

/// A number of tokens. Traces count 0 for answers that failed at once; here they cost one token.
pub(super) fn tokens(line: u64, field: &'static str, text: &str) -> Result<u32, TraceError> {
    let tokens: Option<u32> = text.parse().ok();
    tokens.map(|tokens| tokens.max(1)).ok_or_else(|| {
        let wanted = "a whole number of tokens";
        TraceError::at(line, TraceProblem::value(field, text, wanted))
    })
}

/// A number that is not negative.
pub(super) fn quantity(line: u64, field: &'static str, text: &str) -> Result<f64, TraceError> {
    let number: Option<f64> = text.parse().ok();
    let number = number.filter(|number| *number >= 0.0 && *number < 1e12);
    number.ok_or_else(|| {
        let wanted = "a number that is not negative";
        TraceError::at(line, TraceProblem::value(field, text, wanted))
    })
}
