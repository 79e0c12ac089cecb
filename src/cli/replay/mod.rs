//! `wva replay`: repeats recorded decisions, and shows what differs.

mod last;
#[cfg(test)]
pub(super) mod tests;

use std::fmt::Write as _;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::Parser;
use clap::builder::NonEmptyStringValueParser;
use serde::de::Error as _;

pub(super) use self::last::LastEntries;
use super::bundle::archive;
use super::usage::to_time;
use super::{add_notes, misused, plan, print};
use crate::page::time;
use crate::policy::params::DynamicSettings;
use crate::settings::bundle::{absent_sections, read_bundle};
use crate::version;
use wva_base::moment::WallTime;
use wva_base::text::{counted, printable};
use wva_recording::{
    DecisionDifference, RecordedAutoscaler, RecordedCycle, RecordedEntry, RecordingError,
    RecordingHeader, RecordingReader, ReplayedAutoscaler, ReplayedCycle, replay, replay_autoscaler,
};

/// Most entries whose differences are printed.
const MOST: usize = 200;

/// Repeats recorded decisions with this program, and shows every difference
#[derive(Debug, Parser)]
#[command(
    name = "replay",
    after_help = "Exit code: 0 where every decision is the same, 1 where one differs, 2 where the recording or the \
                  arguments are not accepted."
)]
pub(super) struct ReplayFlags {
    /// A recording: DECISION_RECORD_FILE, what /debug/recording writes, or a bundle
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath, value_parser = NonEmptyStringValueParser::new())]
    file: String,
    /// Settings in place of the recorded ones, as wva plan reads them
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, value_parser = NonEmptyStringValueParser::new())]
    settings: Option<String>,
    /// Only the last cycle up to this time, like 2026-03-01T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = to_time)]
    at: Option<jiff::Timestamp>,
    /// Print which version recorded and whether it is this one, and nothing else
    #[arg(long)]
    version_of: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ReplayReport {
    pub(in crate::cli) text: String,
    has_differences: bool,
}

pub(super) fn run(flags: &ReplayFlags) -> ExitCode {
    match answer(flags) {
        Err(error) => misused([error]),
        Ok(report) => match print(&printable(&report.text)) {
            ExitCode::SUCCESS if report.has_differences => ExitCode::FAILURE,
            code => code,
        },
    }
}

fn answer(flags: &ReplayFlags) -> Result<ReplayReport, String> {
    let settings = flags.settings.as_deref().map(settings).transpose()?;
    let (settings, note) = settings.unzip();
    let mut reader = open(&flags.file)?;
    let placed = |error: &dyn ToString| format!("{}: {}", flags.file, error.to_string());
    if flags.version_of {
        return versions(&mut reader).map_err(|error| placed(&error));
    }
    let report = match flags.at {
        None => all(&mut reader, settings.as_ref()),
        Some(at) => one(&mut reader, WallTime(at.as_millisecond()), settings.as_ref()),
    };
    let mut report = report.map_err(|error| placed(&error))?;
    add_notes(&mut report.text, note);
    Ok(report)
}

/// Reads settings as `wva plan` does. The note names what they leave at its default, whatever was recorded.
fn settings(path: &str) -> Result<(DynamicSettings, String), String> {
    let text = plan::load(path)?;
    let settings = read_bundle(&text).map_err(|errors| {
        let lines = errors.iter().map(|error| format!("{path}: {error}"));
        lines.collect::<Vec<_>>().join("\n")
    })?;
    let absent = absent_sections(&text);
    let absent = match absent.as_slice() {
        [] => String::new(),
        absent => format!(", like the sections {}", absent.join(", ")),
    };
    let note = format!(
        "{path} replaces all recorded settings; what it does not state is at its default{absent}"
    );
    Ok((settings, note))
}

pub(super) fn open(path: &str) -> Result<RecordingReader<Box<dyn Read>>, String> {
    Ok(RecordingReader::new(archive::open(path)?))
}

/// The versions that recorded, each once in a row, and whether this is one of them.
fn versions<R: Read>(reader: &mut RecordingReader<R>) -> Result<ReplayReport, RecordingError> {
    let mut report = ReplayReport::default();
    let named = |one: &RecordingHeader| {
        let (version, format, learned) = (&one.version, one.format, one.learned);
        format!("wva {version}, format {format}, learned state {learned}")
    };
    let own = RecordingHeader::of(version::shown());
    let mut last = None;
    loop {
        let header = match reader.next_header() {
            Ok(Some(header)) => header,
            Ok(None) => break,
            // What comes before is whole.
            Err(error @ RecordingError::Truncated) if last.is_some() => {
                writeln!(report.text, "note: {error}").unwrap_or_default();
                break;
            }
            Err(error) => return Err(error),
        };
        if last.as_ref() != Some(header) {
            let compared = if *header == own {
                "as this program".to_owned()
            } else {
                format!("this program differs: {}", named(&own))
            };
            writeln!(report.text, "{}; {compared}", named(header)).unwrap_or_default();
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
    let (mut cycles, mut autoscalers, mut differing) = (0_usize, 0_usize, 0_usize);
    let mut span: Option<(WallTime, WallTime)> = None;
    let ended = loop {
        let entry = match reader.next_entry() {
            Ok(Some(entry)) => entry,
            Ok(None) => break None,
            // What comes before is whole.
            Err(error @ RecordingError::Truncated) if span.is_some() => break Some(error),
            Err(error) => return Err(error.to_string()),
        };
        let at = entry.now().wall;
        span = Some((span.map_or(at, |(first, _)| first), at));
        let count = match &entry {
            RecordedEntry::Cycle(_) => &mut cycles,
            RecordedEntry::Autoscaler(_) => &mut autoscalers,
        };
        *count = count.saturating_add(1);
        let (place, differences) = compared(&entry, settings)?;
        if !differences.is_empty() {
            differing = differing.saturating_add(1);
            if differing <= MOST {
                write_differences(&mut report.text, &place, &differences);
            }
        }
    };
    if differing > MOST {
        let more = differing.saturating_sub(MOST);
        writeln!(report.text, "and {more} more that differ").unwrap_or_default();
    }
    if span.is_none() {
        return Err(
            "the recording has no cycle; name one of a controller that has decided".to_owned()
        );
    }
    let version = reader.header().map_or("?", |header| &header.version);
    let outcome = match differing {
        0 => "every decision is the same".to_owned(),
        differing => format!("{differing} differ"),
    };
    let span = span.map_or_else(String::new, |(first, last)| {
        format!(" from {} to {}", time(first), time(last))
    });
    let autoscalers = match autoscalers {
        0 => String::new(),
        count => format!(", {} on PodAutoscalers", counted(count, "decision")),
    };
    writeln!(
        report.text,
        "{}{autoscalers}{span}, recorded by wva {version}: {outcome}",
        counted(cycles, "cycle"),
    )
    .unwrap_or_default();
    add_notes(&mut report.text, ended);
    report.has_differences = differing > 0;
    Ok(report)
}

fn one<R: Read>(
    reader: &mut RecordingReader<R>,
    at: WallTime,
    settings: Option<&DynamicSettings>,
) -> Result<ReplayReport, String> {
    let mut report = ReplayReport::default();
    let mut last = LastEntries::read(reader, Some(at))?;
    let note = last.note.take();
    for entry in last.all() {
        let (place, differences) = compared(&entry, settings)?;
        if differences.is_empty() {
            writeln!(report.text, "{place}: every decision is the same").unwrap_or_default();
        } else {
            report.has_differences = true;
            write_differences(&mut report.text, &place, &differences);
        }
    }
    add_notes(&mut report.text, note);
    Ok(report)
}

fn cycle_place(cycle: &RecordedCycle) -> String {
    let (number, at) = (cycle.snapshot.cycle, time(cycle.now.wall));
    format!("cycle {number} at {at}")
}

fn autoscaler_place(recorded: &RecordedAutoscaler) -> String {
    format!("{} at {}", recorded.key(), time(recorded.now.wall))
}

/// Repeats a cycle.
///
/// # Errors
/// It cannot be repeated.
pub(super) fn repeated(
    cycle: &RecordedCycle,
    settings: Option<&DynamicSettings>,
) -> Result<ReplayedCycle, String> {
    guarded(|| replay(cycle, settings)).map_err(|why| format!("{} {why}", cycle_place(cycle)))
}

/// Repeats a decision on a `PodAutoscaler`.
///
/// # Errors
/// It cannot be repeated.
pub(super) fn repeated_autoscaler(
    recorded: &RecordedAutoscaler,
) -> Result<ReplayedAutoscaler, String> {
    let replayed = guarded(|| replay_autoscaler(recorded));
    replayed.map_err(|why| format!("{} {why}", autoscaler_place(recorded)))
}

/// What is recorded may be damaged so that no invariant of the decision core holds.
fn guarded<T>(repeat: impl FnOnce() -> Result<T, serde_json::Error>) -> Result<T, String> {
    let refused = "the planner does not accept it; the recording is damaged";
    let replayed = catch_unwind(AssertUnwindSafe(repeat));
    let replayed = replayed.unwrap_or_else(|_panic| Err(serde_json::Error::custom(refused)));
    replayed.map_err(|error| format!("cannot be repeated: {error}"))
}

/// Where an entry is, and how this program decides differently.
fn compared(
    entry: &RecordedEntry,
    settings: Option<&DynamicSettings>,
) -> Result<(String, Vec<DecisionDifference>), String> {
    Ok(match entry {
        RecordedEntry::Cycle(cycle) => (cycle_place(cycle), repeated(cycle, settings)?.differences),
        RecordedEntry::Autoscaler(recorded) => {
            let difference = repeated_autoscaler(recorded)?.difference;
            (autoscaler_place(recorded), difference.into_iter().collect())
        }
    })
}

fn write_differences(text: &mut String, place: &str, differences: &[DecisionDifference]) {
    writeln!(text, "{place}").unwrap_or_default();
    for difference in differences {
        writeln!(text, "  {difference}").unwrap_or_default();
    }
}
