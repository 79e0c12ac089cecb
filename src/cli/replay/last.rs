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
}

impl LastEntries {
    /// Reads them.
    ///
    /// # Errors
    /// The recording cannot be read, or begins later.
    pub(in crate::cli) fn read<R: Read>(
        reader: &mut RecordingReader<R>,
        at: Option<WallTime>,
    ) -> Result<Self, String> {
        let mut found = Self::default();
        let mut first: Option<WallTime> = None;
        let mut is_empty = true;
        loop {
            let entry = match reader.next_entry() {
                Ok(Some(entry)) => entry,
                Ok(None) => break,
                Err(RecordingError::Truncated) if !is_empty => break,
                Err(error) => return Err(error.to_string()),
            };
            let wall = entry.now().wall;
            first = Some(first.map_or(wall, |first| first.min(wall)));
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
        match first {
            _ if !is_empty => Ok(found),
            None => Err("the recording has no cycle".to_owned()),
            Some(first) => Err(format!(
                "the recording begins at {}; give that time or a later one to --at",
                time(first)
            )),
        }
    }

    pub(super) fn all(self) -> impl Iterator<Item = RecordedEntry> {
        let autoscalers = self.autoscalers.into_values();
        let cycle = self.cycle.map(RecordedEntry::Cycle);
        cycle
            .into_iter()
            .chain(autoscalers.map(RecordedEntry::Autoscaler))
    }
}
