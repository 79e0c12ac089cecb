//! The last decisions of a recording.

use std::collections::BTreeMap;
use std::io::Read;

use super::time;
use crate::policy::key::ObjectKey;
use wva_base::moment::WallTime;
use wva_recording::{
    RecordedAutoscaler, RecordedCycle, RecordedEntry, RecordingError, RecordingReader,
};

/// The last entries of a recording, or up to a time.
#[derive(Debug, Default)]
pub(in crate::cli) struct LastEntries {
    pub(in crate::cli) cycle: Option<Box<RecordedCycle>>,
    pub(in crate::cli) autoscalers: BTreeMap<ObjectKey, Box<RecordedAutoscaler>>,
    /// Why the rest was not read, where the time asked for comes before it.
    pub(in crate::cli) note: Option<String>,
}

impl LastEntries {
    /// Reads them.
    ///
    /// # Errors
    /// The recording cannot be read up to that time, or begins later.
    pub(in crate::cli) fn read<R: Read>(
        reader: &mut RecordingReader<R>,
        at: Option<WallTime>,
    ) -> Result<Self, String> {
        let mut found = Self::default();
        let mut span: Option<(WallTime, WallTime)> = None;
        let mut is_empty = true;
        loop {
            let entry = match reader.next_entry() {
                Ok(Some(entry)) => entry,
                Ok(None) => break,
                Err(RecordingError::Truncated) if !is_empty => break,
                Err(error) => {
                    let last = span.map(|(_, last)| last);
                    if is_empty || at.zip(last).is_none_or(|(at, last)| last < at) {
                        return Err(unread(&error, last));
                    }
                    found.note = Some(format!("{error}; the recording is not read any further"));
                    break;
                }
            };
            let wall = entry.now().wall;
            let (first, last) = span.unwrap_or((wall, wall));
            span = Some((first.min(wall), last.max(wall)));
            // Earlier ones may follow: several roles record, and a wall clock may be set back.
            if at.is_some_and(|at| wall > at) {
                continue;
            }
            is_empty = false;
            match entry {
                RecordedEntry::Cycle(cycle) => found.cycle = Some(cycle),
                RecordedEntry::Autoscaler(recorded) => {
                    found.autoscalers.insert(recorded.key(), recorded);
                }
            }
        }
        match span {
            _ if !is_empty => Ok(found),
            None => Err("the recording has no cycle".to_owned()),
            Some((first, _)) => Err(format!(
                "the recording begins at {}; give that time or a later one to --at",
                time(first)
            )),
        }
    }

    pub(super) fn all(self) -> impl Iterator<Item = RecordedEntry> {
        let autoscalers = self.autoscalers.into_values();
        let cycle = self.cycle.map(RecordedEntry::Cycle);
        cycle.into_iter().chain(autoscalers.map(RecordedEntry::Autoscaler))
    }
}

/// The time of an unreadable entry is unknown: it may be the one that is asked for.
fn unread(error: &RecordingError, last: Option<WallTime>) -> String {
    last.map_or_else(
        || error.to_string(),
        |last| format!("{error}; up to {} it can be read: give that time to --at", time(last)),
    )
}
