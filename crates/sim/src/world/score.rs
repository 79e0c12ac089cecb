//! How well a model is served, as its users see it.

use std::collections::VecDeque;
use std::time::Duration;

use super::scenario::Slo;
use crate::number;
use crate::router::{RequestVerdict, Served};

/// How far back a spectator looks.
const WINDOW: Duration = Duration::from_mins(1);
const PERCENTILES_EVERY: Duration = Duration::from_secs(5);
const KEPT: usize = 20_000;

#[derive(Debug, Clone, Copy)]
struct Ended {
    at: Duration,
    /// How many requests are like it.
    requests: u64,
    first_token: Option<Duration>,
    per_token: Option<Duration>,
    /// How many of them kept the promise: all or none.
    good: u64,
}

/// 95th percentiles in milliseconds, and when they were taken.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Percentiles {
    taken: Option<Duration>,
    pub(super) first_token: Option<f64>,
    pub(super) per_token: Option<f64>,
}

#[derive(Debug, Default)]
pub(super) struct Score {
    slo: Slo,
    recent: VecDeque<Ended>,
    /// Requests among `recent`, and the good ones of them.
    recently: (u64, u64),
    arrivals: VecDeque<(Duration, u64)>,
    /// Requests among `arrivals`.
    arriving: u64,
    pub(super) percentiles: Percentiles,
    pub(super) requests: u64,
    pub(super) answered: u64,
    pub(super) failed: u64,
    pub(super) good: u64,
}

impl Score {
    pub(super) fn new(slo: Slo) -> Self {
        Self { slo, ..Self::default() }
    }

    pub(super) fn came_many(&mut self, at: Duration, requests: u64) {
        if requests == 0 {
            return;
        }
        self.requests += requests;
        self.arrivals.push_back((at, requests));
        self.arriving += requests;
        if self.arrivals.len() > KEPT {
            self.forget_arrival();
        }
    }

    pub(super) fn ended(&mut self, served: &Served) {
        let RequestVerdict::Answered(completion) = &served.verdict else {
            return self.failed_many(served.at, 1);
        };
        let first_token = served.time_to_first_token();
        let per_token = completion.time_per_output_token();
        self.answered_many(served.at, 1, first_token, per_token);
    }

    pub(super) fn failed_many(&mut self, at: Duration, requests: u64) {
        if requests == 0 {
            return;
        }
        self.failed += requests;
        self.keep(Ended { at, requests, first_token: None, per_token: None, good: 0 });
    }

    pub(super) fn answered_many(
        &mut self,
        at: Duration,
        requests: u64,
        first_token: Option<Duration>,
        per_token: Option<Duration>,
    ) {
        let is_good = first_token.is_some_and(|first| first <= self.slo.first_token)
            && per_token.is_none_or(|gap| gap <= self.slo.per_token);
        let good = if is_good { requests } else { 0 };
        self.answered += requests;
        self.good += good;
        self.keep(Ended { at, requests, first_token, per_token, good });
    }

    fn keep(&mut self, ended: Ended) {
        self.recently.0 += ended.requests;
        self.recently.1 += ended.good;
        self.recent.push_back(ended);
        if self.recent.len() > KEPT {
            self.forget();
        }
    }

    fn forget(&mut self) {
        if let Some(ended) = self.recent.pop_front() {
            self.recently.0 -= ended.requests;
            self.recently.1 -= ended.good;
        }
    }

    fn forget_arrival(&mut self) {
        if let Some((_, requests)) = self.arrivals.pop_front() {
            self.arriving -= requests;
        }
    }

    pub(super) fn advance(&mut self, now: Duration) {
        let oldest = now.saturating_sub(WINDOW);
        while self.arrivals.front().is_some_and(|(at, _)| *at < oldest) {
            self.forget_arrival();
        }
        while self.recent.front().is_some_and(|ended| ended.at < oldest) {
            self.forget();
        }
        let taken = self.percentiles.taken;
        if taken.is_none_or(|taken| now >= taken.saturating_add(PERCENTILES_EVERY)) {
            self.percentiles = Percentiles {
                taken: Some(now),
                first_token: self.p95(|ended| ended.first_token),
                per_token: self.p95(|ended| ended.per_token),
            };
        }
    }

    /// In milliseconds.
    fn p95(&self, time: impl Fn(&Ended) -> Option<Duration>) -> Option<f64> {
        let is_single = u64::try_from(self.recent.len()).is_ok_and(|all| all == self.recently.0);
        if is_single {
            // The time at the place needs no order of the others.
            let mut times: Vec<Duration> = Vec::with_capacity(self.recent.len());
            times.extend(self.recent.iter().filter_map(time));
            let place = (times.len() * 95).div_ceil(100).checked_sub(1)?;
            let (_, time, _) = times.select_nth_unstable(place);
            return Some(time.as_secs_f64() * 1e3);
        }
        let times = self.recent.iter().filter_map(|ended| Some((time(ended)?, ended.requests)));
        let mut times: Vec<(Duration, u64)> = times.collect();
        let all: u64 = times.iter().map(|(_, requests)| requests).sum();
        times.sort_unstable();
        let mut below = 0;
        let found = times.iter().find(|(_, requests)| {
            below += requests;
            below * 100 >= all * 95
        });
        found.map(|(time, _)| time.as_secs_f64() * 1e3)
    }

    pub(super) fn rate(&self, now: Duration) -> f64 {
        let seconds = WINDOW.min(now).as_secs_f64().max(1.0);
        number::real(self.arriving) / seconds
    }

    /// Share of the window's requests that kept the promise.
    pub(super) fn attainment(&self) -> Option<f64> {
        let (all, good) = self.recently;
        (all > 0).then(|| number::real(good) / number::real(all))
    }

    pub(super) fn ended_and_good(&self) -> (u64, u64) {
        (self.answered.saturating_add(self.failed), self.good)
    }
}
