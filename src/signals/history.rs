//! What engines did before this process began: one query, asked once, whose answer is read as if it
//! were that many collections.

use std::collections::BTreeMap;
use std::time::Duration;

use super::client::PromApi;
use super::collect::{Collection, CollectionSettings, Results};
use super::error::QueryError;
use super::promql::RangeWindow;
use super::query::{PART, QueryName, QueryScope, RECORDED, SOURCE, history_text};
use super::result::{QueryResult, SampleRef};
use crate::policy::snapshot::MetricsSnapshot;
use wva_base::moment::WallTime;

/// Steps of a history, at most: twice what a window of observations holds, since not every moment is
/// one to learn from.
const STEPS: u32 = 40;

/// Shortest step: half the length of the windows of rates.
const SHORTEST: Duration = Duration::from_secs(30);

/// A history reaches back this far at most, as observations do; a longer interval has fewer steps.
const LONGEST: Duration = Duration::from_mins(30);

/// Asks what engines did recently, at steps like those of the loop. Each step is a snapshot with the
/// time at which it would have been collected, by the clock of Prometheus, oldest first.
pub async fn history(
    api: &dyn PromApi,
    settings: &CollectionSettings,
    interval: Duration,
) -> Result<Vec<(WallTime, MetricsSnapshot)>, QueryError> {
    let scope = QueryScope::new(&settings.freshness, settings.namespace.clone());
    let step = interval.max(SHORTEST);
    let range = step.saturating_mul(STEPS).min(LONGEST);
    let promql = history_text(&scope, RangeWindow::of(range), RangeWindow::of(step));
    let answer = api.history(&promql, settings.deadline).await?;
    let mut steps: BTreeMap<i64, Vec<SampleRef<'_>>> = BTreeMap::new();
    for sample in answer.samples() {
        if let Some(time) = milliseconds(sample.time) {
            steps.entry(time).or_default().push(sample);
        }
    }
    let steps = steps.into_iter().map(|(time, samples)| {
        let collection = Collection::of(results(&samples), &settings.freshness, Duration::ZERO);
        (WallTime(time), collection.of_the_past())
    });
    Ok(steps.collect())
}

fn milliseconds(seconds: f64) -> Option<i64> {
    let time = Duration::try_from_secs_f64(seconds).ok()?;
    i64::try_from(time.as_millis()).ok()
}

/// The answers that the queries would have had at one step. What was scraped was new.
fn results(samples: &[SampleRef<'_>]) -> Results {
    let mut results: Results = BTreeMap::new();
    let known = |text: &str| RECORDED.into_iter().find(|query| query.as_str() == text);
    let aged = QueryName::KvUsageAge.terms();
    for sample in samples {
        let labels = || sample.labels().map(|(name, text)| (&**name, &**text));
        let Some(query) = sample.label(PART).and_then(|text| known(text)) else {
            continue;
        };
        let own = labels().filter(|(name, _)| *name != PART);
        add(&mut results, query, own, (sample.time, sample.value));
        let is_dated = sample
            .label(SOURCE)
            .is_some_and(|source| aged.iter().any(|term| term.name == &**source));
        if is_dated {
            let of_pod = labels().filter(|(name, _)| !RANK_OR_PART.contains(name));
            let when = (sample.time, sample.time);
            add(&mut results, QueryName::KvUsageAge, of_pod, when);
        }
    }
    results
}

/// Labels that the times of a page do not have.
const RANK_OR_PART: [&str; 3] = ["engine", "dp_rank", PART];

fn add<'a>(
    results: &mut Results,
    query: QueryName,
    labels: impl Iterator<Item = (&'a str, &'a str)>,
    (time, value): (f64, f64),
) {
    let result = results.entry(query).or_insert_with(|| Ok(QueryResult::default()));
    if let Ok(result) = result {
        result.push(labels, time, value);
    }
}
