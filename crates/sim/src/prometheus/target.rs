//! What is scraped, and when.

use std::collections::BTreeMap;
use std::time::Duration;

use super::labels::{LabelSet, NAME};
use super::number::milliseconds;
use crate::number;
use wva::signals::exposition as text;

/// A page that is scraped on an interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScrapeTarget {
    /// Its labels after relabelling: `job`, `instance`, `namespace`, `pod` and the like. They are its
    /// identity.
    pub labels: BTreeMap<String, String>,
    /// Where the page is, for the one that fetches it.
    pub address: String,
    /// Time between two scrapes.
    pub interval: Duration,
    /// Whose label counts when the page has one of the target's.
    pub conflicts: Conflicts,
}

/// What becomes of a label of a page that the target has as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflicts {
    /// It is kept as `exported_<name>`, the target's counts: `honor_labels: false`.
    Exported,
    /// It counts, the target's is dropped: `honor_labels: true`.
    Honored,
}

/// Number of a target; never used again for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TargetId(pub(super) u64);

impl ScrapeTarget {
    /// The time between two scrapes, at least a millisecond.
    pub(super) fn step(&self) -> i64 {
        milliseconds(self.interval).max(1)
    }

    /// The first time of a scrape at or after `now`. Every target has an offset of its own within
    /// the interval, so that not all are scraped at once.
    pub(super) fn first(&self, now: i64) -> i64 {
        let step = self.step();
        let spread = i64::try_from(self.hash() >> 1).unwrap_or_default() % step;
        let ahead = (spread - now).rem_euclid(step);
        now.saturating_add(ahead)
    }

    fn hash(&self) -> u64 {
        let bytes = self.labels.iter().flat_map(|(name, value)| {
            let name = name.bytes().chain([0xff]);
            name.chain(value.bytes()).chain([0xff])
        });
        number::hash(number::HASH_OF_NOTHING, bytes)
    }

    pub(super) fn labels_of(&self, series: &str) -> Result<LabelSet, &'static str> {
        let named = text::labels(series)?;
        let own: BTreeMap<&str, &str> = named
            .labels
            .iter()
            .map(|(name, value)| (*name, &**value))
            .filter(|(_, value)| !value.is_empty())
            .collect();
        let target = self.labels.iter().map(|(name, value)| (name.clone(), &**value));
        let mut all: BTreeMap<String, &str> = target.collect();
        match self.conflicts {
            Conflicts::Honored => {
                // An empty label of the page drops the target's, too.
                let page = named.labels.iter();
                all.extend(page.map(|(name, value)| ((*name).to_owned(), &**value)));
            }
            Conflicts::Exported => {
                for (name, value) in &own {
                    let mut name = (*name).to_owned();
                    if self.labels.contains_key(&name) {
                        while all.contains_key(&name) || own.contains_key(&*name) {
                            name.insert_str(0, "exported_");
                        }
                    }
                    all.insert(name, value);
                }
            }
        }
        all.insert(NAME.to_owned(), named.name);
        Ok(LabelSet::new(all.iter().map(|(name, value)| (&**name, *value))))
    }

    pub(super) fn report(&self, name: &str) -> LabelSet {
        let pairs = self.labels.iter().map(|(name, value)| (&**name, &**value));
        LabelSet::new(pairs.chain([(NAME, name)]))
    }
}
