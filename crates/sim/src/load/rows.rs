//! Lines of a trace file, and what can be wrong with them.

use std::fmt::Display;
use std::io::BufRead;

/// Bytes of a line; the longest known prompts make lines of 3 kB.
const MAX_LINE: usize = 65_536;

pub(super) const AZURE: &str = "TIMESTAMP,ContextTokens,GeneratedTokens";
pub(super) const AIBRIX: &str = "t_ms,input_tokens,output_tokens";
pub(super) const AGGREGATE: &str =
    "t_s,rate_rps,active_clients,rate_with_lengths_rps,mean_input_tokens,mean_output_tokens";

/// What is wrong with a line, counted from 1; 0 where there is none.
pub(super) fn refusal(line: u64, problem: impl Display) -> String {
    format!("line {line}: {problem}")
}

pub(super) fn wrong(line: u64, field: &str, text: &str, wanted: &str) -> String {
    let value = beginning(text);
    refusal(line, format_args!("{field} is {value:?}; give {wanted}"))
}

pub(super) fn beginning(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Numbered lines without their ends; empty ones are left out. The first error is the last item.
pub(super) fn lines(
    mut reader: impl BufRead,
) -> impl Iterator<Item = Result<(u64, String), String>> {
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
                    return Some(Err(refusal(number, problem)));
                }
            }
        }
        None
    })
}

fn read_line(reader: &mut impl BufRead) -> Result<Option<String>, String> {
    let mut line = Vec::new();
    let most = u64::try_from(MAX_LINE).unwrap_or(u64::MAX) + 2;
    let read = std::io::Read::take(reader, most).read_until(b'\n', &mut line);
    let read =
        read.map_err(|error| format!("cannot be read: {error}; check the file and the disk"))?;
    if read == 0 {
        return Ok(None);
    }
    if line.starts_with(&[0x1f, 0x8b]) {
        return Err("the file is compressed; unpack it first (gunzip -k FILE)".to_owned());
    }
    if line.len() > MAX_LINE {
        return Err(format!(
            "longer than {MAX_LINE} bytes; is this a trace of one request per line?"
        ));
    }
    let text = String::from_utf8(line);
    let text = text.map_err(|_bytes| "not UTF-8; save the file as UTF-8".to_owned())?;
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

pub(super) fn fields<const N: usize>(line: u64, text: &str) -> Result<[&str; N], String> {
    let found: Vec<&str> = text.split(',').map(str::trim).take(N).collect();
    <[&str; N]>::try_from(found).map_err(|found| {
        let remedy = "add what is missing or delete the line";
        refusal(line, format_args!("{} columns where {N} are needed; {remedy}", found.len()))
    })
}

/// A number of tokens. Traces count 0 for answers that failed at once; here they cost one token.
pub(super) fn tokens(line: u64, field: &str, text: &str) -> Result<u32, String> {
    let tokens: Option<u32> = text.parse().ok();
    let tokens = tokens.map(|tokens| tokens.max(1));
    tokens.ok_or_else(|| wrong(line, field, text, "a whole number of tokens"))
}

/// A number that is not negative.
pub(super) fn quantity(line: u64, field: &str, text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    let number = number.filter(|number| *number >= 0.0 && *number < 1e12);
    number.ok_or_else(|| wrong(line, field, text, "a number that is not negative"))
}
