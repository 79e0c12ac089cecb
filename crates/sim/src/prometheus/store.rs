//! The samples of all series, as long as they are kept.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::labels::{LabelSet, NAME};
use super::number::{is_stale, stale};
use super::promql::SeriesSelector;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) time: i64,
    pub(super) value: f64,
}

impl Point {
    pub(super) fn mark(time: i64) -> Self {
        Self { time, value: stale() }
    }
}

/// Number of a series; never used again for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SeriesId(usize);

#[derive(Debug)]
pub(super) struct StoredSeries {
    pub(super) labels: LabelSet,
    /// The same without the name.
    pub(super) unnamed: LabelSet,
    points: VecDeque<Point>,
}

impl StoredSeries {
    /// The newest sample at or before a time, marks included.
    pub(super) fn newest(&self, until: i64) -> Option<Point> {
        let place = self.points.partition_point(|point| point.time <= until);
        self.points.get(place.checked_sub(1)?).copied()
    }

    /// The samples after `after` and not after `until`, without marks.
    pub(super) fn between(&self, after: i64, until: i64) -> impl Iterator<Item = Point> {
        let start = self.points.partition_point(|point| point.time <= after);
        let end = self.points.partition_point(|point| point.time <= until);
        self.points.range(start..end.max(start)).copied().filter(|point| !is_stale(point.value))
    }
}

#[derive(Debug, Default)]
pub(super) struct SeriesStore {
    /// How long samples are kept, in milliseconds.
    retention: i64,
    /// By number; those that are forgotten leave an empty place.
    series: Vec<Option<StoredSeries>>,
    by_name: BTreeMap<Arc<str>, BTreeMap<LabelSet, SeriesId>>,
}

impl SeriesStore {
    pub(super) fn new(retention: i64) -> Self {
        Self { retention, ..Self::default() }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.series.iter().flatten().count()
    }

    pub(super) fn series(&mut self, labels: &LabelSet) -> SeriesId {
        let name = labels.get(NAME);
        let family = match self.by_name.get_mut(name) {
            Some(family) => family,
            None => self.by_name.entry(Arc::from(name)).or_default(),
        };
        if let Some(id) = family.get(labels) {
            return *id;
        }
        let id = SeriesId(self.series.len());
        let (labels, unnamed) = (labels.clone(), labels.unnamed());
        family.insert(labels.clone(), id);
        let series = StoredSeries { labels, unnamed, points: VecDeque::new() };
        self.series.push(Some(series));
        id
    }

    pub(super) fn holds(&self, id: SeriesId) -> bool {
        self.kept(id).is_some()
    }

    fn kept(&self, SeriesId(place): SeriesId) -> Option<&StoredSeries> {
        self.series.get(place)?.as_ref()
    }

    /// The newest value of a series, if it is kept and has not ended.
    pub(super) fn last(&self, id: SeriesId) -> Option<f64> {
        let last = self.kept(id)?.points.back()?;
        (!is_stale(last.value)).then_some(last.value)
    }

    /// Adds a sample to a series that is kept. A sample that is not newer than the last one is
    /// dropped, as Prometheus does.
    pub(super) fn append(&mut self, SeriesId(place): SeriesId, point: Point) {
        let Some(Some(series)) = self.series.get_mut(place) else {
            return;
        };
        let last = series.points.back();
        if last.is_some_and(|last| last.time >= point.time) {
            return;
        }
        let oldest = point.time.saturating_sub(self.retention);
        let is_over = |first: &mut Point| first.time < oldest;
        while series.points.pop_front_if(is_over).is_some() {}
        series.points.push_back(point);
    }

    /// Forgets series without a sample that is recent enough to be kept.
    pub(super) fn sweep(&mut self, now: i64) {
        let oldest = now.saturating_sub(self.retention);
        let Self { series, by_name, .. } = self;
        by_name.retain(|_, family| {
            family.retain(|_, SeriesId(place)| {
                let Some(kept) = series.get_mut(*place) else {
                    return false;
                };
                let is_over = |one: &mut StoredSeries| {
                    one.points.back().is_none_or(|last| last.time < oldest)
                };
                drop(kept.take_if(is_over));
                kept.is_some()
            });
            !family.is_empty()
        });
    }

    /// The series that a selector chooses, by name in the order of their labels.
    pub(super) fn select(&self, selector: &SeriesSelector) -> Vec<&StoredSeries> {
        let is_chosen = |known: &LabelSet| {
            selector.labels.iter().all(|(label, wanted)| wanted.takes(known.get(label)))
        };
        let is_any = selector.name.is_empty();
        let all = is_any.then(|| self.by_name.values()).into_iter().flatten();
        let named = self.by_name.get(selector.name.as_str()).into_iter();
        named
            .chain(all)
            .flatten()
            .filter(|(known, _)| is_chosen(known))
            .filter_map(|(_, id)| self.kept(*id))
            .collect()
    }
}
