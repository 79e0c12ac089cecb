//! The labels of a series.

use std::sync::Arc;

pub(super) const NAME: &str = "__name__";

/// Label names with values, sorted by name, none of them empty: to Prometheus, an empty label is
/// none. Cheap to clone.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LabelSet(Arc<[Label]>);

type Label = (Arc<str>, Arc<str>);

impl LabelSet {
    /// Labels from pairs; of two values of one name the later counts.
    pub(crate) fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let owned = |(name, value): (&str, &str)| (Arc::from(name), Arc::from(value));
        Self::of(pairs.into_iter().map(owned).collect())
    }

    fn of(mut pairs: Vec<Label>) -> Self {
        // Stable: among equals the order stays, and the last of them is kept.
        pairs.sort_by(|left, right| left.0.cmp(&right.0));
        let mut kept: Vec<Label> = Vec::with_capacity(pairs.len());
        for pair in pairs {
            if kept.last().is_some_and(|last| last.0 == pair.0) {
                kept.pop();
            }
            kept.push(pair);
        }
        kept.retain(|(_, value)| !value.is_empty());
        Self(kept.into())
    }

    /// The value of a label; empty if there is none.
    pub(crate) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(label, _)| **label == *name);
        found.map_or("", |(_, value)| value)
    }

    /// Names with values, in the order of the names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    fn filtered(&self, keep: impl Fn(&str) -> bool) -> Self {
        if self.0.iter().all(|(name, _)| keep(name)) {
            return self.clone();
        }
        Self(self.0.iter().filter(|(name, _)| keep(name)).cloned().collect())
    }

    pub(super) fn only(&self, names: &[String]) -> Self {
        self.filtered(|name| names.iter().any(|kept| kept == name))
    }

    pub(super) fn without(&self, names: &[String]) -> Self {
        self.filtered(|name| names.iter().all(|dropped| dropped != name))
    }

    pub(super) fn unnamed(&self) -> Self {
        self.filtered(|name| name != NAME)
    }

    /// The same labels and this one, which is removed if the value is empty.
    pub(super) fn with(&self, name: &str, value: &str) -> Self {
        let more = (Arc::from(name), Arc::from(value));
        Self::of(self.0.iter().cloned().chain([more]).collect())
    }
}
