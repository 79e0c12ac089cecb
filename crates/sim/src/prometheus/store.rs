//! The samples of all series, as long as they are kept.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use regex::Regex;

use super::labels::{LabelSet, NAME};
use super::number::{is_stale, stale};
use super::promql::{LabelCondition, Selector, pattern};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) time: i64,
    pub(super) value: f64,
}

impl Point {
    pub(super) fn mark(time: i64) -> Self {
        let value = stale();
        Self { time, value }
    }
}

/// A series: its place, and its number, which is never used again for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SeriesId {
    number: u64,
    place: usize,
}

#[derive(Debug)]
pub(super) struct StoredSeries {
    pub(super) labels: LabelSet,
    number: u64,
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

/// A condition of a selector, with its pattern made once for all series.
struct LabelTest<'s> {
    label: &'s str,
    wanted: &'s LabelCondition,
    like: Option<Regex>,
}

impl<'s> LabelTest<'s> {
    fn of((label, wanted): &'s (String, LabelCondition)) -> Self {
        let like = match wanted {
            LabelCondition::IsLike(text) => pattern(text).ok(),
            LabelCondition::Is(_) | LabelCondition::IsNot(_) => None,
        };
        Self { label, wanted, like }
    }

    fn takes(&self, labels: &LabelSet) -> bool {
        let value = labels.get(self.label);
        match self.wanted {
            LabelCondition::Is(wanted) => value == wanted,
            LabelCondition::IsNot(other) => value != other,
            LabelCondition::IsLike(_) => {
                self.like.as_ref().is_some_and(|like| like.is_match(value))
            }
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct SeriesStore {
    /// How long samples are kept, in milliseconds.
    retention: i64,
    /// By place; a place without a series waits for the next one.
    series: Vec<Option<StoredSeries>>,
    free: Vec<usize>,
    by_name: BTreeMap<Arc<str>, BTreeMap<LabelSet, SeriesId>>,
    next: u64,
}

impl SeriesStore {
    pub(super) fn new(retention: i64) -> Self {
        Self { retention, ..Self::default() }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.series.len().saturating_sub(self.free.len())
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
        let number = self.next;
        self.next += 1;
        let series = StoredSeries { labels: labels.clone(), number, points: VecDeque::new() };
        let free = self.free.pop();
        let place = free.unwrap_or(self.series.len());
        match self.series.get_mut(place) {
            Some(empty) => *empty = Some(series),
            None => self.series.push(Some(series)),
        }
        let id = SeriesId { number, place };
        family.insert(labels.clone(), id);
        id
    }

    fn get(&self, id: SeriesId) -> Option<&StoredSeries> {
        let series = self.series.get(id.place)?.as_ref()?;
        (series.number == id.number).then_some(series)
    }

    pub(super) fn holds(&self, id: SeriesId) -> bool {
        self.get(id).is_some()
    }

    /// The newest value of a series, if it is kept and has not ended.
    pub(super) fn last(&self, id: SeriesId) -> Option<f64> {
        let last = self.get(id)?.points.back()?;
        (!is_stale(last.value)).then_some(last.value)
    }

    /// Adds a sample to a series that is kept. A sample that is not newer than the last one is
    /// dropped, as Prometheus does.
    pub(super) fn append(&mut self, id: SeriesId, point: Point) {
        let place = self.series.get_mut(id.place);
        let series = place.and_then(Option::as_mut);
        let Some(series) = series.filter(|series| series.number == id.number) else {
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
        let Self { series, free, .. } = self;
        for (place, slot) in series.iter_mut().enumerate() {
            let last = slot.as_ref().and_then(|series| series.points.back());
            if slot.is_some() && last.is_none_or(|last| last.time < oldest) {
                *slot = None;
                free.push(place);
            }
        }
        let mut families = std::mem::take(&mut self.by_name);
        families.retain(|_, family| {
            family.retain(|_, id| self.holds(*id));
            !family.is_empty()
        });
        self.by_name = families;
    }

    /// The series that a selector chooses, by name in the order of their labels.
    pub(super) fn select(&self, selector: &Selector) -> Vec<&StoredSeries> {
        let labels = selector.labels.iter();
        let tests: Vec<LabelTest<'_>> = labels.map(LabelTest::of).collect();
        let is_chosen = |known: &LabelSet| tests.iter().all(|test| test.takes(known));
        let named = self.by_name.get(selector.name.as_str()).into_iter();
        let all = self.by_name.values().filter(|_| selector.name.is_empty());
        named
            .chain(all)
            .flatten()
            .filter(|(known, _)| is_chosen(known))
            .filter_map(|(_, id)| self.get(*id))
            .collect()
    }
}
