//! `wva replay`: repeats recorded decisions, and shows what differs.

mod arguments;
#[cfg(test)]
pub(super) mod tests;

use std::fmt::Write as _;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

pub(super) use self::arguments::ReplayFlags;
use super::bundle::archive;
use super::usage::{Given, read};
use super::{misused, plan, print};
use crate::policy::params::DynamicSettings;
use crate::settings::bundle::read_bundle;
use wva_base::moment::WallTime;
use wva_base::text::printable;
use wva_recording::{RecordedCycle, RecordingError, RecordingReader, ReplayedCycle, replay};

/// Most cycles whose differences are printed.
const MOST: usize = 200;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ReplayReport {
    pub(in crate::cli) text: String,
    has_differences: bool,
}

/// Runs the command.
pub fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let flags: ReplayFlags = match read(&super::PROGRAM, arguments) {
        Ok(Given::Arguments(flags)) => flags,
        Ok(Given::Help(text)) => return print(&text),
        Err(error) => return misused([error]),
    };
    match answer(&flags) {
        Err(error) => misused([error]),
        Ok(report) => match print(&printable(&report.text)) {
            ExitCode::SUCCESS if report.has_differences => ExitCode::FAILURE,
            code => code,
        },
    }
}

fn answer(flags: &ReplayFlags) -> Result<ReplayReport, String> {
    let settings = flags.settings.as_deref().map(settings).transpose()?;
    let mut reader = open(&flags.file)?;
    let placed = |error: &dyn ToString| format!("{}: {}", flags.file, error.to_string());
    if flags.version_of {
        return versions(&mut reader).map_err(|error| placed(&error));
    }
    let report = match flags.at {
        None => all(&mut reader, settings.as_ref()),
        Some(at) => one(
            &mut reader,
            WallTime(at.as_millisecond()),
            settings.as_ref(),
        ),
    };
    report.map_err(|error| placed(&error))
}

/// Reads settings as `wva plan` does.
fn settings(path: &str) -> Result<DynamicSettings, String> {
    let text = plan::load(path).map_err(|errors| errors.join("\n"))?;
    read_bundle(&text).map_err(|errors| {
        let lines = errors.iter().map(|error| format!("{path}: {error}"));
        lines.collect::<Vec<_>>().join("\n")
    })
}

pub(super) fn open(path: &str) -> Result<RecordingReader<Box<dyn Read>>, String> {
    Ok(RecordingReader::new(archive::open(path)?))
}

/// The versions that recorded, each once in a row.
fn versions<R: Read>(reader: &mut RecordingReader<R>) -> Result<ReplayReport, RecordingError> {
    let mut report = ReplayReport::default();
    let mut last = None;
    while let Some(header) = reader.next_header()? {
        if last.as_ref() != Some(header) {
            let (version, format) = (&header.version, header.format);
            writeln!(report.text, "wva {version}, format {format}").unwrap_or_default();
            last = Some(header.clone());
        }
    }
    Ok(report)
}

fn all<R: Read>(
    reader: &mut RecordingReader<R>,
    settings: Option<&DynamicSettings>,
) -> Result<ReplayReport, String> {
    let mut report = ReplayReport::default();
    let (mut cycles, mut differing) = (0_usize, 0_usize);
    let mut span: Option<(WallTime, WallTime)> = None;
    let ended = loop {
        let cycle = match reader.next_cycle() {
            Ok(Some(cycle)) => cycle,
            Ok(None) => break None,
            // What comes before is whole.
            Err(error @ RecordingError::Truncated) if cycles > 0 => break Some(error),
            Err(error) => return Err(error.to_string()),
        };
        let at = cycle.now.wall;
        cycles = cycles.saturating_add(1);
        span = Some((span.map_or(at, |(first, _)| first), at));
        let replayed = repeated(&cycle, settings)?;
        if !replayed.differences.is_empty() {
            differing = differing.saturating_add(1);
            if differing <= MOST {
                differences(&mut report.text, &cycle, &replayed);
            }
        }
    };
    if differing > MOST {
        let more = differing.saturating_sub(MOST);
        writeln!(report.text, "and {more} more cycles that differ").unwrap_or_default();
    }
    let version = reader.header().map_or("?", |header| &header.version);
    let outcome = match differing {
        0 => "every decision is the same".to_owned(),
        differing => format!("{differing} differ"),
    };
    let span = span.map_or_else(String::new, |(first, last)| {
        format!(" from {} to {}", time(first), time(last))
    });
    writeln!(
        report.text,
        "{cycles} cycles{span}, recorded by wva {version}: {outcome}"
    )
    .unwrap_or_default();
    if let Some(note) = ended {
        writeln!(report.text, "note: {note}").unwrap_or_default();
    }
    report.has_differences = differing > 0;
    Ok(report)
}

fn one<R: Read>(
    reader: &mut RecordingReader<R>,
    at: WallTime,
    settings: Option<&DynamicSettings>,
) -> Result<ReplayReport, String> {
    let cycle = cycle_at(reader, Some(at))?;
    let replayed = repeated(&cycle, settings)?;
    let mut report = ReplayReport {
        has_differences: !replayed.differences.is_empty(),
        ..ReplayReport::default()
    };
    if report.has_differences {
        differences(&mut report.text, &cycle, &replayed);
    } else {
        let (cycle, at) = (cycle.snapshot.cycle, time(cycle.now.wall));
        writeln!(
            report.text,
            "cycle {cycle} at {at}: every decision is the same"
        )
        .unwrap_or_default();
    }
    Ok(report)
}

/// The last cycle up to a time, or the last of all.
///
/// # Errors
/// The recording cannot be read, or begins later.
pub(super) fn cycle_at<R: Read>(
    reader: &mut RecordingReader<R>,
    at: Option<WallTime>,
) -> Result<RecordedCycle, String> {
    let mut found = None;
    let mut first = None;
    loop {
        match reader.next_cycle() {
            Ok(Some(cycle)) => {
                let wall = cycle.now.wall;
                first = first.or(Some(wall));
                if at.is_some_and(|at| wall > at) {
                    break;
                }
                found = Some(cycle);
            }
            Ok(None) => break,
            Err(RecordingError::Truncated) if found.is_some() => break,
            Err(error) => return Err(error.to_string()),
        }
    }
    found.ok_or_else(|| match first {
        None => "the recording has no cycle".to_owned(),
        Some(first) => format!(
            "the recording begins at {}; give that time or a later one to --at",
            time(first)
        ),
    })
}

/// Repeats a cycle. What is recorded may be damaged so that no invariant of the planner holds.
///
/// # Errors
/// It cannot be repeated.
pub(super) fn repeated(
    cycle: &RecordedCycle,
    settings: Option<&DynamicSettings>,
) -> Result<ReplayedCycle, String> {
    let place = || format!("cycle {} at {}", cycle.snapshot.cycle, time(cycle.now.wall));
    match catch_unwind(AssertUnwindSafe(|| replay(cycle, settings))) {
        Ok(replayed) => replayed.map_err(|error| format!("{}: {error}", place())),
        Err(_panic) => Err(format!(
            "{} cannot be repeated: the planner does not accept it; the recording is damaged",
            place()
        )),
    }
}

fn differences(text: &mut String, cycle: &RecordedCycle, replayed: &ReplayedCycle) {
    let (number, at) = (cycle.snapshot.cycle, time(cycle.now.wall));
    writeln!(text, "cycle {number} at {at}").unwrap_or_default();
    for difference in &replayed.differences {
        writeln!(text, "  {difference}").unwrap_or_default();
    }
}

pub(super) fn time(at: WallTime) -> String {
    jiff::Timestamp::from_millisecond(at.0)
        .map_or_else(|_| format!("{} ms", at.0), |at| at.to_string())
}
