//! What a scrape leaves in the store.

use std::collections::{BTreeMap, BTreeSet};

use super::counters::Counters;
use super::store::{Point, SeriesId, SeriesStore};
use super::target::ScrapeTarget;
use crate::exposition::{MetricKind, Page};
use crate::number::length;
use wva::signals::exposition::{self as text, SampleLine};

/// Most samples of one page; a page with more fails.
pub(super) const SAMPLES: usize = 10_000;

/// What came of fetching a page.
#[derive(Debug, Clone, Copy)]
pub enum Scraped<'a> {
    /// A page as text.
    Text(&'a str),
    /// The page of a simulated server.
    Page(&'a Page),
    /// No page: the server is gone, or too slow.
    Failed,
}

#[derive(Debug)]
pub(super) struct Scraping {
    pub(super) target: ScrapeTarget,
    pub(super) next: i64,
    /// The series that the page showed last, in its order.
    shown: Vec<Shown>,
    /// The page behind `shown`, where a simulated server showed one: the next one mostly differs from it in nothing
    /// but values.
    drawn: Option<Page>,
    /// Those of its series that have begun anew while what shows them went on.
    pub(super) counters: Counters,
    /// The series about the scrapes themselves, in the order of [`store_report`].
    report: Vec<SeriesId>,
}

#[derive(Debug)]
struct Shown {
    /// Name and labels as they stand on the page.
    text: String,
    id: SeriesId,
}

impl Scraping {
    pub(super) fn begin(target: ScrapeTarget, now: i64) -> Self {
        Self {
            next: target.first(now),
            target,
            shown: Vec::new(),
            drawn: None,
            counters: Counters::default(),
            report: Vec::new(),
        }
    }

    /// Goes on as a target of the same labels.
    pub(super) fn retarget(&mut self, target: ScrapeTarget) {
        if self.target.conflicts != target.conflicts {
            self.drawn = None;
        }
        self.target = target;
    }

    pub(super) fn reset(&mut self, store: &SeriesStore) {
        let kinds = self.drawn.iter().flat_map(Page::samples).map(|sample| sample.kind);
        let shown = self.shown.iter().zip(kinds);
        let counters = shown.filter(|(_, kind)| *kind != MetricKind::Gauge);
        for (shown, _) in counters {
            if let Some(value) = store.last(shown.id) {
                self.counters.reset(shown.id, value);
            }
        }
    }

    pub(super) fn all(&self) -> Vec<SeriesId> {
        let shown = self.shown.iter().map(|shown| shown.id);
        shown.chain(self.report.iter().copied()).collect()
    }
}

/// Stores the samples of a scrape, marks the series that are not on the page any more, and notes how
/// the scrape went.
pub(super) fn take(store: &mut SeriesStore, scraping: &mut Scraping, time: i64, what: Scraped<'_>) {
    if let Scraped::Page(page) = what
        && let Some(scraped) = store_values(store, scraping, time, page)
    {
        return store_report(store, scraping, time, Some(scraped));
    }
    let rendered: Vec<(String, f64)>;
    let lines = match what {
        Scraped::Text(page) => match text::read(page) {
            Ok(lines) => Some(lines),
            Err(invalid) => {
                tracing::debug!(%invalid, target = scraping.target.address, "scrape failed");
                None
            }
        },
        Scraped::Page(page) => {
            let samples = page.samples();
            let samples = samples.map(|sample| (sample.series(), sample.value));
            rendered = samples.collect();
            let lines = rendered.iter().map(|(series, value)| SampleLine {
                series,
                value: *value,
                time: None,
            });
            Some(lines.collect())
        }
        Scraped::Failed => None,
    };
    let scraped = lines
        .filter(|lines: &Vec<SampleLine<'_>>| lines.len() <= SAMPLES)
        .and_then(|lines| store_lines(store, scraping, time, &lines));
    if scraped.is_none() {
        for shown in std::mem::take(&mut scraping.shown) {
            store.append(shown.id, Point::mark(time));
        }
    }
    scraping.drawn = match what {
        Scraped::Page(page) if scraped.is_some() => Some(page.clone()),
        _ => None,
    };
    store_report(store, scraping, time, scraped);
}

/// Stores a page that shows the same series as the last one, which is most of them; says how many there were.
/// `None`, and nothing stored, if it does not.
fn store_values(
    store: &mut SeriesStore,
    scraping: &mut Scraping,
    time: i64,
    page: &Page,
) -> Option<usize> {
    let drawn = scraping.drawn.as_ref()?;
    if !scraping.shown.iter().all(|shown| store.holds(shown.id)) || !drawn.same_series(page) {
        return None;
    }
    let mut shown = scraping.shown.iter();
    page.visit_values(&mut |value| {
        if let Some(shown) = shown.next() {
            let value = scraping.counters.value(shown.id, value);
            store.append(shown.id, Point { time, value });
        }
    });
    Some(scraping.shown.len())
}

/// Stores the samples of a page; says how many there were. `None`, and nothing stored, if the labels
/// of one of them cannot be read.
fn store_lines(
    store: &mut SeriesStore,
    scraping: &mut Scraping,
    time: i64,
    lines: &[SampleLine<'_>],
) -> Option<usize> {
    let mut found = Vec::with_capacity(lines.len());
    let mut next = 0;
    // Pages mostly keep their order, so that it is seldom needed.
    let mut places: Option<BTreeMap<&str, usize>> = None;
    for line in lines {
        let is_same = |shown: &Shown| shown.text == line.series;
        let expected = scraping.shown.get(next).is_some_and(is_same);
        let place = if expected {
            Some(next)
        } else {
            let places = places.get_or_insert_with(|| {
                let shown = scraping.shown.iter().enumerate();
                shown.map(|(place, shown)| (&*shown.text, place)).collect()
            });
            places.get(line.series).copied()
        };
        let known = place.and_then(|place| scraping.shown.get(place));
        found.push(match known {
            Some(known) if store.holds(known.id) => known.id,
            _ => store.series(&scraping.target.labels_of(line.series).ok()?),
        });
        next = place.map_or(next, |place| place + 1);
    }
    let mut before = scraping.shown.iter().zip(lines).zip(&found);
    let changed = lines.len() != scraping.shown.len()
        || before.any(|((shown, line), id)| shown.text != line.series || shown.id != *id);
    for (line, id) in lines.iter().zip(&found) {
        let point = Point {
            time: line.time.unwrap_or(time),
            value: scraping.counters.value(*id, line.value),
        };
        store.append(*id, point);
    }
    if changed {
        // A sample with a time of its own says nothing about whether its series lives.
        let shown: Vec<Shown> = lines
            .iter()
            .zip(&found)
            .filter(|(line, _)| line.time.is_none())
            .map(|(line, id)| Shown { text: line.series.to_owned(), id: *id })
            .collect();
        let present: BTreeSet<SeriesId> = shown.iter().map(|shown| shown.id).collect();
        for shown in std::mem::replace(&mut scraping.shown, shown) {
            if !present.contains(&shown.id) {
                store.append(shown.id, Point::mark(time));
            }
        }
    }
    Some(lines.len())
}

/// What Prometheus notes about a scrape of so many samples, or one that failed, but for its duration and the number of
/// new series.
fn store_report(
    store: &mut SeriesStore,
    scraping: &mut Scraping,
    time: i64,
    scraped: Option<usize>,
) {
    let samples = length(scraped.unwrap_or(0));
    let values = [
        ("up", f64::from(u8::from(scraped.is_some()))),
        ("scrape_samples_scraped", samples),
        ("scrape_samples_post_metric_relabeling", samples),
    ];
    if scraping.report.iter().any(|id| !store.holds(*id)) {
        scraping.report.clear();
    }
    if scraping.report.is_empty() {
        let ids = values.map(|(name, _)| store.series(&scraping.target.report(name)));
        scraping.report = ids.to_vec();
    }
    for (id, (_, value)) in scraping.report.iter().zip(values) {
        store.append(*id, Point { time, value });
    }
}
