//! Whether processes hear of what was changed.

use super::Checker;

impl Checker {
    /// Whether a process that lives has been told of what changed at one kind after a version.
    pub(in crate::chaos) fn was_told(&self, (plural, version): (&str, u64)) -> bool {
        let bench = self.bench();
        let mut seats = bench.seats.values();
        seats.any(|seat| seat.watches.told(plural) > version)
    }
}
