//! The way from one process to Prometheus, with everything that can be wrong with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use allocations::Owner;
use tokio::time::{sleep, timeout};

use super::active_faults::ActiveFaults;
use super::checker::RequestObserver;
use super::fault::Prom;
use super::process_state::ProcessState;
use super::trace::Misses;
use crate::prometheus::InProcess;
use crate::threads::locked;
use wva::signals::decode::Expected;
use wva::signals::{PromAnswer, PromApi, QueryError, QueryResult, SampleRef};
use wva_base::moment::{Moment, WallTime};
use wva_supervise::Clock;

type Known = BTreeMap<String, QueryResult>;

#[derive(Debug, Clone)]
pub(super) struct PrometheusProxy {
    pub(super) inner: InProcess,
    pub(super) ills: ActiveFaults,
    pub(super) life: ProcessState,
    pub(super) clock: Clock,
    pub(super) observed: PodObservations,
    pub(super) misses: Misses,
    pub(super) listener: RequestObserver,
    pub(super) memory: Arc<Mutex<Memory>>,
}

const ASKED: &str = "prometheus";

#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The first answer to each question since a fault began.
    old: BTreeMap<usize, Known>,
    /// The answer to each question with the most series.
    ghosts: Known,
}

/// What answers said of each pod, and under no name when one last held anything.
#[derive(Debug, Clone, Default)]
pub(super) struct PodObservations(Arc<Mutex<BTreeMap<String, PodAnswers>>>);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PodAnswers {
    pub(super) taken: Duration,
    /// When an answer last held one, be it an answer that was given before.
    pub(super) seen: Duration,
}

impl PodObservations {
    pub(super) fn last(&self, prefix: &str) -> Option<Duration> {
        let table = locked(&self.0);
        let pods = table.iter().filter(|(pod, _)| pod.starts_with(prefix));
        pods.map(|(_, news)| news.taken).max()
    }

    pub(super) fn of(&self, pod: &str) -> Option<PodAnswers> {
        locked(&self.0).get(pod).copied()
    }

    /// Takes in an answer by a clock that is ahead by so many seconds; a repeated one, by none, says nothing
    /// new of a pod but that it is there.
    fn note(&self, promql: &str, answer: &QueryResult, ahead: Option<f64>, now: Moment) {
        let _scope = Owner::NONE.enter();
        let mut table = locked(&self.0);
        if ahead.is_some() && !answer.is_empty() {
            let (taken, seen) = (now.monotonic, now.monotonic);
            table.insert(String::new(), PodAnswers { taken, seen });
        }
        if !holds_times(promql) {
            return;
        }
        for sample in answer.samples().filter(|sample| sample.value.is_finite()) {
            let Some((_, pod)) = sample.labels().find(|(name, _)| &***name == "pod") else {
                continue;
            };
            let news = table.entry(pod.to_string()).or_default();
            news.seen = now.monotonic;
            if let Some(ahead) = ahead {
                let taken = Duration::try_from_secs_f64(sample.value - ahead).unwrap_or_default();
                let taken = WallTime(i64::try_from(taken.as_millis()).unwrap_or(i64::MAX));
                let at = now.monotonic.saturating_sub(now.wall.since(taken));
                news.taken = at.max(news.taken);
            }
        }
    }
}

fn why(failure: &QueryError) -> String {
    match failure {
        QueryError::ServerError { status, .. } => status.to_string(),
        other => other.reason().to_owned(),
    }
}

fn holds_times(promql: &str) -> bool {
    promql.contains("timestamp(")
}

impl PrometheusProxy {
    async fn ask(
        &self,
        promql: &str,
        of: Expected,
        deadline: Duration,
    ) -> Result<QueryResult, QueryError> {
        let answer = timeout(deadline, self.answer(promql, of, deadline)).await;
        answer.unwrap_or(Err(QueryError::Timeout(deadline)))
    }

    async fn answer(
        &self,
        promql: &str,
        of: Expected,
        deadline: Duration,
    ) -> Result<QueryResult, QueryError> {
        if !self.life.is_dead() {
            let _scope = Owner::NONE.enter();
            self.listener.asked();
        }
        self.life.gate().await;
        for (id, fault, _) in self.ills.prometheus() {
            if matches!(fault, Prom::Hang | Prom::Slow(_)) {
                // The process may give up before there is an answer.
                self.ills.hit(id);
            }
            if fault == Prom::Hang {
                self.misses.note(ASKED, "no answer", &[id]);
            }
            if let Some(failure) = self.fail(fault).await {
                self.ills.hit(id);
                self.misses.note(ASKED, &why(&failure), &[id]);
                return Err(failure);
            }
        }
        Owner::NONE.does(self.ills.asked()).await;
        let answer = match of {
            Expected::Vector => self.inner.query(promql, deadline).await,
            Expected::Matrix => self.inner.history(promql, deadline).await,
        };
        let mut answer = answer.inspect_err(|failure| {
            self.misses.note(ASKED, &why(failure), &[]);
        })?;
        self.remember(promql, &answer);
        let mut ahead = 0.0;
        for (id, fault, _) in self.ills.prometheus() {
            ahead += match fault {
                Prom::Ahead(time) => time.as_secs_f64(),
                Prom::Behind(time) => -time.as_secs_f64(),
                _ => 0.0,
            };
            let (bent, hit) = self.bend(fault, promql, answer);
            if hit {
                self.ills.hit(id);
            }
            answer = bent;
        }
        let mut is_repeated = false;
        for (id, fault, _) in self.ills.prometheus() {
            if fault == Prom::Old {
                let old = self.old(id, promql, &answer);
                is_repeated = !is_same(&old, &answer);
                if is_repeated {
                    self.ills.hit(id);
                }
                answer = old;
            }
        }
        self.life.gate().await;
        if of == Expected::Vector {
            let ahead = (!is_repeated).then_some(ahead);
            self.observed.note(promql, &answer, ahead, self.clock.now());
        }
        Ok(answer)
    }

    async fn fail(&self, fault: Prom) -> Option<QueryError> {
        Some(match fault {
            Prom::Down => QueryError::Unreachable("connection refused".to_owned()),
            Prom::Status(401) => QueryError::Unauthorized(String::new()),
            Prom::Status(403) => QueryError::Forbidden(String::new()),
            Prom::Status(status) => QueryError::ServerError { status, message: String::new() },
            Prom::Endless => QueryError::TooLarge(268_435_456),
            Prom::Hang => std::future::pending().await,
            Prom::Slow(time) => {
                sleep(time).await;
                return None;
            }
            _ => return None,
        })
    }

    fn bend(&self, fault: Prom, promql: &str, answer: QueryResult) -> (QueryResult, bool) {
        let is_time = holds_times(promql);
        let seconds = |time: Duration| time.as_secs_f64();
        let shifted = |by: f64| {
            let value = move |value: f64| if is_time { value + by } else { value };
            valued(&answer, by, value)
        };
        let bent = match fault {
            Prom::Empty => QueryResult::default(),
            Prom::Partial => {
                let mut partial = QueryResult::default();
                append(&mut partial, answer.samples().step_by(2), |name| name);
                partial
            }
            Prom::Ghosts => self.haunted(promql, &answer),
            Prom::Doubled => {
                let mut doubled = answer.clone();
                append(&mut doubled, answer.samples(), |name| name);
                doubled
            }
            Prom::NotANumber => valued(&answer, 0.0, |_| f64::NAN),
            Prom::Infinite => valued(&answer, 0.0, |_| f64::INFINITY),
            Prom::Zeros => valued(&answer, 0.0, |value| if is_time { value } else { 0.0 }),
            Prom::WrongLabels => {
                let mut renamed = QueryResult::default();
                append(&mut renamed, answer.samples(), |name| match name {
                    "pod" => "instance",
                    "model_name" => "model",
                    name => name,
                });
                renamed
            }
            Prom::Ahead(time) => shifted(seconds(time)),
            Prom::Behind(time) => shifted(-seconds(time)),
            _ => return (answer, false),
        };
        let hit = !is_same(&bent, &answer);
        (bent, hit)
    }

    /// The answer that was the first since the fault began: of something that stands in front of Prometheus, so
    /// that whatever else is wrong with it was so then.
    fn old(&self, id: usize, promql: &str, answer: &QueryResult) -> QueryResult {
        let mut memory = locked(&self.memory);
        let scope = Owner::NONE.enter();
        let known = memory.old.entry(id).or_default();
        let known = known.entry(promql.to_owned());
        let known = known.or_insert_with(|| answer.clone());
        drop(scope);
        known.clone()
    }

    /// Keeps the answer to each question that has the most series: most of its pods are gone some time later.
    fn remember(&self, promql: &str, answer: &QueryResult) {
        let mut memory = locked(&self.memory);
        let _scope = Owner::NONE.enter();
        match memory.ghosts.get_mut(promql) {
            Some(known) if known.len() >= answer.len() => {}
            Some(known) => *known = answer.clone(),
            None => drop(memory.ghosts.insert(promql.to_owned(), answer.clone())),
        }
    }

    fn haunted(&self, promql: &str, answer: &QueryResult) -> QueryResult {
        let memory = locked(&self.memory);
        let mut haunted = answer.clone();
        if let Some(ghosts) = memory.ghosts.get(promql) {
            let named = |sample: &SampleRef<'_>| -> Vec<(Arc<str>, Arc<str>)> {
                let labels = sample.labels();
                labels.map(|(name, text)| (Arc::clone(name), Arc::clone(text))).collect()
            };
            let living: BTreeSet<_> = answer.samples().map(|sample| named(&sample)).collect();
            let dead = ghosts.samples();
            let dead = dead.filter(|ghost| !living.contains(&named(ghost)));
            append(&mut haunted, dead, |name| name);
        }
        haunted
    }
}

fn is_same(one: &QueryResult, other: &QueryResult) -> bool {
    let is_equal = |one: SampleRef<'_>, other: SampleRef<'_>| {
        (one.time.to_bits(), one.value.to_bits()) == (other.time.to_bits(), other.value.to_bits())
            && one.labels().eq(other.labels())
    };
    let pairs = one.samples().zip(other.samples());
    one.len() == other.len() && pairs.into_iter().all(|(one, other)| is_equal(one, other))
}

fn append<'a>(
    to: &mut QueryResult,
    samples: impl Iterator<Item = SampleRef<'a>>,
    name: impl Fn(&'a str) -> &'a str + Copy,
) {
    for sample in samples {
        let labels = sample.labels();
        let labels = labels.map(|(label, text)| (name(label), &**text));
        to.push(labels, sample.time, sample.value);
    }
}

fn valued(from: &QueryResult, later: f64, value: impl Fn(f64) -> f64) -> QueryResult {
    let mut to = QueryResult::default();
    for sample in from.samples() {
        let labels = sample.labels().map(|(name, text)| (&**name, &**text));
        to.push(labels, sample.time + later, value(sample.value));
    }
    to
}

impl PromApi for PrometheusProxy {
    fn query<'a>(&'a self, promql: &'a str, deadline: Duration) -> PromAnswer<'a> {
        Box::pin(self.ask(promql, Expected::Vector, deadline))
    }

    fn history<'a>(&'a self, promql: &'a str, deadline: Duration) -> PromAnswer<'a> {
        Box::pin(self.ask(promql, Expected::Matrix, deadline))
    }
}
