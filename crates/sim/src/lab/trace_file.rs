//! Trace files below a folder, unpacked where they are compressed, and cut before they are drawn from.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::Duration;

use flate2::read::GzDecoder;

use crate::load::{Arrival, RequestTrace};
use wva_supervise::SeedTree;

/// First column of a trace that holds rates instead of requests.
const RATES: &str = "t_s,";
/// How long a row of rates counts.
const ROW: f64 = 600.0;

#[derive(Debug)]
pub(super) struct Clip {
    pub(super) arrivals: Vec<Arrival>,
    pub(super) length: Duration,
    /// The end of its requests: its length, or less where the trace ends before.
    pub(super) ends: Duration,
    /// Whether the requests were drawn from rates, which hold the scale already.
    pub(super) is_drawn: bool,
}

pub(super) fn clip(
    file: &Path,
    (from, to): (Duration, Option<Duration>),
    scale: f64,
    seed: &SeedTree,
) -> Result<Clip, String> {
    let text = text(file)?;
    let is_drawn = text.starts_with(RATES);
    let text = if is_drawn { cut(&text, from, to) } else { text };
    let reader = std::io::Cursor::new(text.into_bytes());
    let trace = RequestTrace::open(reader, scale, seed)?;
    let (mut arrivals, mut is_whole) = (Vec::new(), false);
    for arrival in trace {
        let mut arrival = arrival?;
        if to.is_some_and(|to| arrival.at >= to) {
            is_whole = true;
            break;
        }
        if let Some(at) = arrival.at.checked_sub(from) {
            arrival.at = at;
            arrivals.push(arrival);
        }
    }
    let Some(last) = arrivals.last() else {
        return Err("no request lies between from and to; widen the clip".to_owned());
    };
    let known = Duration::from_secs(last.at.as_secs() + 1);
    let length = to.map_or(known, |to| to.saturating_sub(from));
    Ok(Clip { arrivals, length, ends: if is_whole { length } else { known }, is_drawn })
}

fn text(file: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("{error}; give the folder of the traces");
    let mut reader = BufReader::new(File::open(file).map_err(unreadable)?);
    let is_packed = reader.fill_buf().map_err(unreadable)?.starts_with(&[0x1f, 0x8b]);
    let mut text = String::new();
    let read = if is_packed {
        GzDecoder::new(reader).read_to_string(&mut text)
    } else {
        reader.read_to_string(&mut text)
    };
    read.map_err(|error| format!("{error}; is the file whole?"))?;
    Ok(text)
}

/// Leaves out rows of rates that end before the clip or begin after it: days of requests need not be drawn.
fn cut(text: &str, from: Duration, to: Option<Duration>) -> String {
    let from = from.as_secs_f64() - ROW;
    let to = to.map_or(f64::INFINITY, |to| to.as_secs_f64());
    let mut kept = String::new();
    for (place, line) in text.lines().enumerate() {
        let time = line.split(',').next().and_then(|time| time.parse::<f64>().ok());
        let is_inside = time.is_none_or(|time| time > from && time < to);
        if place == 0 || is_inside {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}
