//! Reads series at instants.

use super::View;
use super::rows::{Row, Steps};
use crate::prometheus::number::is_stale;
use crate::prometheus::promql::Selector;
use crate::prometheus::refusal::QueryRefusal;
use crate::prometheus::store::{Point, StoredSeries};

impl View<'_> {
    pub(super) fn series(
        &self,
        selector: &Selector,
        steps: Steps,
    ) -> Result<Vec<&StoredSeries>, QueryRefusal> {
        let series = self.store.select(selector);
        steps.bound(series.len())?;
        Ok(series)
    }

    /// What is read of the newest sample of each series that is live.
    pub(super) fn live(
        &self,
        selector: &Selector,
        steps: Steps,
        read: impl Fn(Point) -> f64,
    ) -> Result<Vec<Row>, QueryRefusal> {
        let series = self.series(selector, steps)?;
        let rows = series.into_iter().filter_map(|series| {
            let value = |time: i64| {
                let newest = series.newest(time.min(self.visible))?;
                let live = newest.time > time.saturating_sub(self.look_back);
                (live && !is_stale(newest.value)).then(|| read(newest))
            };
            let values: Vec<Option<f64>> = steps.times().map(value).collect();
            values
                .iter()
                .any(Option::is_some)
                .then(|| Row { labels: series.labels.clone(), values })
        });
        Ok(rows.collect())
    }
}
