//! What a status says besides the count, against what who leads has recorded.

use std::collections::BTreeMap;

use super::{ProcessChecker, STORED};
use crate::chaos::check::InvariantViolation;
use crate::chaos::conditions::unlike_the_record;
use crate::chaos::surroundings::{Surroundings, is_declaring};
use wva::policy::key::VariantKey;
use wva::policy::ownership::Ownership;
use wva::policy::record::PublishedRecord;
use wva_base::moment::Moment;

impl ProcessChecker {
    /// E6: the conditions and the accelerator that are stored are those that are recorded.
    pub(super) fn unreported(
        &mut self,
        now: Moment,
        around: &Surroundings,
    ) -> Vec<InvariantViolation> {
        let shared = &self.door.shared;
        let views = shared.board.snapshot();
        // What an earlier life has stored stays until there is a decision, and of what another controller holds
        // only that it does is stated.
        let is_to_be_stated = |key: &VariantKey, record: &PublishedRecord| {
            let view = views.get(key);
            view.is_some_and(|view| view.target.resolved().is_some())
                && !record.awaits_decision()
                && !matches!(record.standing, Ownership::Behind { .. })
        };
        let records = shared.records.snapshot();
        let stated = records
            .iter()
            .filter(|(key, record)| is_to_be_stated(key, record));
        let unlike = stated.filter_map(|(key, record)| {
            let stored = around.variants.get(key)?;
            // It has no status, and says the same by events.
            if is_declaring(&stored.object) {
                return None;
            }
            let (what, text) = unlike_the_record(&stored.object, record)?;
            // Whatever it is instead, it is the same that is not stated.
            Some((format!("{what} of {key}"), text))
        });
        let unlike: BTreeMap<String, String> = unlike.collect();
        let (odd, times) = (unlike.keys().cloned().collect(), self.led(now));
        let lasting = self
            .patience
            .lasting("unreported", odd, times, STORED)
            .into_iter();
        let text = |what: String| {
            let words = unlike.get(&what).map_or("", String::as_str);
            format!("{what} is not what is recorded: {words}")
        };
        lasting
            .map(|what| InvariantViolation::new("E6", text(what)))
            .collect()
    }
}
