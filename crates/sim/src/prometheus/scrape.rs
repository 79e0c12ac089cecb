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
    /// The page behind `shown`, where a simulated server showed one.
    drawn: Option<Drawn>,
    /// Those of its series that have begun anew while what shows them went on.
    pub(super) counters: Counters,
    /// The series about the scrapes themselves, in the order of [`Report::values`].
    report: Vec<SeriesId>,
}

/// A page of a simulated server: the next one mostly differs from it in nothing but values.
#[derive(Debug)]
struct Drawn {
    page: Page,
    kinds: Vec<MetricKind>,
}

#[derive(Debug)]
struct Shown {
    /// Name and labels as they stand on the page.
    text: String,
    id: SeriesId,
}

/// What Prometheus notes about a scrape, but for its duration and the number of new series.
#[derive(Debug, Clone, Copy, Default)]
struct Report {
    up: bool,
    scraped: usize,
}

impl Report {
    fn values(self) -> [(&'static str, f64); 3] {
        [
            ("up", f64::from(u8::from(self.up))),
            ("scrape_samples_scraped", length(self.scraped)),
            ("scrape_samples_post_metric_relabeling", length(self.scraped)),
        ]
    }
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
        let kinds = self.drawn.iter().flat_map(|drawn| &drawn.kinds);
        let shown = self.shown.iter().zip(kinds);
        let counters = shown.filter(|(_, kind)| **kind != MetricKind::Gauge);
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
        && let Some(report) = store_values(store, scraping, time, page)
    {
        return store_report(store, scraping, time, report);
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
    let stored = lines
        .filter(|lines: &Vec<SampleLine<'_>>| lines.len() <= SAMPLES)
        .and_then(|lines| store_lines(store, scraping, time, &lines));
    let report = if let Some(scraped) = stored {
        Report { up: true, scraped }
    } else {
        for shown in std::mem::take(&mut scraping.shown) {
            store.append(shown.id, Point::mark(time));
        }
        Report::default()
    };
    scraping.drawn = match what {
        Scraped::Page(page) if report.up => Some(Drawn::of(page)),
        _ => None,
    };
    store_report(store, scraping, time, report);
}

impl Drawn {
    fn of(page: &Page) -> Self {
        Self { kinds: page.samples().map(|sample| sample.kind).collect(), page: page.clone() }
    }
}

/// Stores a page that shows the same series as the last one, which is most of them. `None`, and
/// nothing stored, if it does not.
fn store_values(
    store: &mut SeriesStore,
    scraping: &mut Scraping,
    time: i64,
    page: &Page,
) -> Option<Report> {
    let drawn = scraping.drawn.as_ref()?;
    let known = scraping.shown.len() == drawn.kinds.len()
        && scraping.shown.iter().all(|shown| store.holds(shown.id))
        && drawn.page.same_series(page);
    if !known {
        return None;
    }
    let mut shown = scraping.shown.iter();
    page.visit_values(&mut |value| {
        if let Some(shown) = shown.next() {
            let value = scraping.counters.value(shown.id, value);
            store.append(shown.id, Point { time, value });
        }
    });
    Some(Report { up: true, scraped: scraping.shown.len() })
}

/// Stores the samples of a page; says how many there were. `None`, and nothing stored, if the labels
/// of one of them cannot be read.
fn store_lines(
    store: &mut SeriesStore,
    scraping: &mut Scraping,
    time: i64,
    lines: &[SampleLine<'_>],
) -> Option<usize> {
    let mut memory = Memory::of(&scraping.shown);
    let mut found = Vec::with_capacity(lines.len());
    for line in lines {
        let id = if let Some(id) = memory.recall(line.series, store) {
            id
        } else {
            store.series(&scraping.target.labels_of(line.series).ok()?)
        };
        found.push(id);
    }
    let changed = !memory.in_order || lines.len() != scraping.shown.len();
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

fn store_report(store: &mut SeriesStore, scraping: &mut Scraping, time: i64, report: Report) {
    let values = report.values();
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

/// Which series the texts of the last page were. Pages mostly keep their order.
struct Memory<'s> {
    shown: &'s [Shown],
    next: usize,
    in_order: bool,
    places: Option<BTreeMap<&'s str, usize>>,
}

impl<'s> Memory<'s> {
    fn of(shown: &'s [Shown]) -> Self {
        Self { shown, next: 0, in_order: true, places: None }
    }

    /// The series of a text, if it was on the last page and is still kept.
    fn recall(&mut self, text: &str, store: &SeriesStore) -> Option<SeriesId> {
        let expected = self.shown.get(self.next);
        let found = if expected.is_some_and(|shown| shown.text == text) {
            expected
        } else {
            self.in_order = false;
            let shown = self.shown;
            let places = self.places.get_or_insert_with(|| {
                let places = shown.iter().enumerate();
                places.map(|(place, shown)| (&*shown.text, place)).collect()
            });
            let place = *places.get(text)?;
            self.next = place;
            shown.get(place)
        };
        self.next += 1;
        let id = found?.id;
        let kept = store.holds(id);
        self.in_order &= kept;
        kept.then_some(id)
    }
}
