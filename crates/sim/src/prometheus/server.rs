//! The server: which targets it has, what is due, which faults it has, and its answers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::eval::{QueryValue, View};
use super::number::milliseconds;
use super::promql::{Query, parse};
use super::refusal::QueryRefusal;
use super::scrape::{self, Scraped, Scraping};
use super::store::{Point, SeriesId, SeriesStore};
use super::target::{ScrapeTarget, TargetId};
use crate::threads::locked;
use wva_base::moment::WallTime;

const PARSED: usize = 64;

/// How far back an instant selector looks, as of the real server.
const LOOK_BACK: Duration = Duration::from_mins(5);
/// As far as the queries of a controller reach.
const RETENTION: Duration = Duration::from_mins(15);

#[derive(Debug, Default)]
struct Faults {
    lag: i64,
    gap: Option<i64>,
    is_down: bool,
}

/// The marks of a target that is gone. Prometheus writes them late, in case it comes back.
#[derive(Debug)]
struct Farewell {
    written: i64,
    /// Which time they bear: that of the scrape that did not happen any more.
    time: i64,
    series: Vec<SeriesId>,
}

/// A Prometheus without a clock, tasks or connections: its owner fetches the pages that are
/// due and says what time it is.
#[derive(Debug)]
pub struct Prometheus {
    /// How long samples are kept, in milliseconds.
    retention: i64,
    store: SeriesStore,
    targets: BTreeMap<TargetId, Scraping>,
    farewells: Vec<Farewell>,
    faults: Faults,
    /// How many counters have fallen so far.
    pub(crate) falls: u64,
    next_target: u64,
    next_sweep: i64,
    /// Expressions that were asked for lately: a controller sends the same ones again and again.
    parsed: Mutex<BTreeMap<String, Arc<Query>>>,
}

impl Default for Prometheus {
    /// A server that keeps as much as the queries of a controller reach.
    fn default() -> Self {
        Self::new(RETENTION)
    }
}

impl Prometheus {
    /// A server without targets and samples, which it keeps for so long.
    pub fn new(retention: Duration) -> Self {
        let retention = milliseconds(retention);
        Self {
            store: SeriesStore::new(retention),
            retention,
            targets: BTreeMap::new(),
            farewells: Vec::new(),
            faults: Faults::default(),
            falls: 0,
            next_target: 0,
            next_sweep: i64::MIN,
            parsed: Mutex::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn series(&self) -> usize {
        self.store.len()
    }

    /// Takes over the whole set of targets, as service discovery finds it. Those that are there
    /// already go on, those that are missing end.
    pub fn set_targets(&mut self, targets: Vec<ScrapeTarget>, WallTime(now): WallTime) {
        let mut known: BTreeMap<_, _> = std::mem::take(&mut self.targets)
            .into_iter()
            .map(|(id, scraping)| (scraping.target.labels.clone(), (id, scraping)))
            .collect();
        for target in targets {
            if let Some((id, mut scraping)) = known.remove(&target.labels) {
                if scraping.target.interval != target.interval {
                    scraping.next = target.first(now);
                }
                scraping.retarget(target);
                self.targets.insert(id, scraping);
            } else {
                let id = TargetId(self.next_target);
                self.next_target += 1;
                self.targets.insert(id, Scraping::begin(target, now));
            }
        }
        let gone = known.into_values();
        self.farewells.extend(gone.map(|(_, scraping)| Farewell::of(&scraping)));
    }

    /// A target that is being scraped.
    pub fn target(&self, id: TargetId) -> Option<&ScrapeTarget> {
        self.targets.get(&id).map(|scraping| &scraping.target)
    }

    pub(crate) fn next_event(&self) -> Option<WallTime> {
        let scrapes = self.targets.values().map(|scraping| scraping.next);
        let marks = self.farewells.iter().map(|farewell| farewell.written);
        scrapes.chain(marks).min().map(WallTime)
    }

    /// The targets that are to be scraped now, each with the time that its samples bear. A target
    /// whose time has passed more than once is scraped once.
    pub fn due(&mut self, WallTime(now): WallTime) -> Vec<(TargetId, WallTime)> {
        self.write_marks(now);
        if now >= self.next_sweep {
            self.store.sweep(now);
            self.next_sweep = now.saturating_add(self.retention / 4);
        }
        let suspended = self.faults.gap.is_some_and(|until| now < until);
        let mut due = Vec::new();
        for (id, scraping) in &mut self.targets {
            if scraping.next > now {
                continue;
            }
            let step = scraping.target.step();
            let time = now - (now - scraping.next).rem_euclid(step);
            scraping.next = time.saturating_add(step);
            if !suspended {
                due.push((*id, WallTime(time)));
            }
        }
        due
    }

    fn write_marks(&mut self, now: i64) {
        let store = &mut self.store;
        self.farewells.retain(|farewell| {
            let waits = farewell.written > now;
            if !waits {
                for id in &farewell.series {
                    store.append(*id, Point::mark(farewell.time));
                }
            }
            waits
        });
    }

    /// Takes what came of a scrape that was due at that time. A page that cannot be read, or is too
    /// large, counts as none. Nothing happens if the target is gone meanwhile.
    pub fn scraped(&mut self, id: TargetId, WallTime(time): WallTime, what: Scraped<'_>) {
        if let Some(scraping) = self.targets.get_mut(&id) {
            scrape::take(&mut self.store, scraping, time, what);
            self.falls += scraping.counters.take_falls();
        }
    }

    pub(crate) fn query(
        &self,
        promql: &str,
        WallTime(now): WallTime,
    ) -> Result<QueryValue, QueryRefusal> {
        let query = self.parsed(promql)?;
        let view = View {
            store: &self.store,
            look_back: milliseconds(LOOK_BACK),
            visible: now.saturating_sub(self.faults.lag),
        };
        view.answer(&query, now)
    }

    fn parsed(&self, promql: &str) -> Result<Arc<Query>, QueryRefusal> {
        let mut parsed = locked(&self.parsed);
        if let Some(known) = parsed.get(promql) {
            return Ok(Arc::clone(known));
        }
        let expression = Arc::new(parse(promql)?);
        if parsed.len() >= PARSED {
            parsed.clear();
        }
        parsed.insert(promql.to_owned(), Arc::clone(&expression));
        Ok(expression)
    }

    /// Lets answers know nothing that is newer than this; nothing is late with zero.
    pub(crate) fn set_lag(&mut self, lag: Duration) {
        self.faults.lag = milliseconds(lag);
    }

    /// Lets nothing be scraped until then: no samples, and no marks of failed scrapes either.
    pub(crate) fn set_gap(&mut self, until: Option<WallTime>) {
        self.faults.gap = until.map(|WallTime(until)| until);
    }

    /// Lets all counters of simulated servers begin anew, each at the first scrape from now on by which that can be
    /// seen; or lets those be that have not until now.
    pub(crate) fn set_reset(&mut self, begins: bool) {
        for scraping in self.targets.values_mut() {
            if begins {
                scraping.reset(&self.store);
            } else {
                scraping.counters.spare();
            }
        }
    }

    pub(crate) fn set_down(&mut self, is_down: bool) {
        self.faults.is_down = is_down;
    }

    pub(crate) fn is_down(&self) -> bool {
        self.faults.is_down
    }
}

impl Farewell {
    /// Prometheus lets two more scrapes and a tenth of an interval pass.
    fn of(scraping: &Scraping) -> Self {
        let step = scraping.target.step();
        Self {
            time: scraping.next,
            written: scraping.next.saturating_add(step + step / 10),
            series: scraping.all(),
        }
    }
}
