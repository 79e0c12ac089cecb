//! Counters that begin anew while the server that shows them goes on, as if it had counted anew since the scrape
//! before.
//!
//! What Prometheus makes of them across the reset is what it would have made without: only a fall is taken for a
//! reset, so one begins anew when it has grown by less than it showed before.

use std::collections::BTreeMap;

use super::store::SeriesId;

#[derive(Debug, Default)]
pub(super) struct Counters {
    known: BTreeMap<SeriesId, Counter>,
    falls: u64,
}

#[derive(Debug)]
struct Counter {
    shown: f64,
    stored: f64,
    /// Whether it has yet to begin anew.
    waits: bool,
}

impl Counters {
    pub(super) fn reset(&mut self, id: SeriesId, stored: f64) {
        let counter =
            self.known.entry(id).or_insert(Counter { shown: stored, stored, waits: true });
        counter.waits = true;
    }

    /// What has not begun anew by now does not.
    pub(super) fn spare(&mut self) {
        for counter in self.known.values_mut() {
            counter.waits = false;
        }
    }

    /// How many have fallen by beginning anew since this was last asked.
    pub(super) fn take_falls(&mut self) -> u64 {
        std::mem::take(&mut self.falls)
    }

    pub(super) fn value(&mut self, id: SeriesId, shown: f64) -> f64 {
        let Some(counter) = self.known.get_mut(&id) else {
            return shown;
        };
        // It may have been restarted, too.
        let is_anew = shown < counter.shown;
        let grown = if is_anew { shown } else { shown - counter.shown };
        let falls = (is_anew || counter.waits) && grown < counter.stored;
        if falls && !is_anew {
            self.falls += 1;
        }
        counter.waits &= !falls;
        counter.shown = shown;
        counter.stored = if falls { grown } else { counter.stored + grown };
        counter.stored
    }
}
