//! Requests that arrive, and tokens that they ask for, over a short and a long window.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::rounding::hundredths;
use crate::signal::JUMP_LOOK;
use crate::throughput::shape::RequestShape;
use wva_base::moment::Moment;

/// Seconds of arrivals that may wait without being a backlog.
const TOLERATED_WAIT: f64 = 2.0;
/// The window of the rate that is measured. Source: the window of every rate that is queried.
const SHORT_WINDOW: Duration = Duration::from_mins(1);
/// Time constant of the smoothed rate, by which it is behind a rate that rises steadily.
pub(super) const LONG_WINDOW: Duration = Duration::from_mins(2);
/// Standard deviations of a Poisson count by which the short window must exceed the long one to count.
const SIGNIFICANT: f64 = 4.0;
/// Requests that leave a queue, to those that arrive, from which on the queue drains.
const DRAINING: f64 = 0.1;
/// For how long requests are taken to wait in a queue in which some did when it was counted last.
const UNSEEN: Duration = Duration::from_mins(10);
/// Work that arrives by counts and the mean request, to what is served and what waits, from which on the requests are
/// taken to be shorter than the mean of the last minutes.
const BALANCE_EXCESS: f64 = 1.5;
/// Variance of a sum over requests to that of their number: sizes vary about as much as their mean.
const SIZE_VARIANCE: f64 = 2.0;

/// A rate over two windows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SmoothedRate {
    /// Over the long window.
    pub smoothed: f64,
    /// Over the short window.
    pub recent: f64,
}

impl SmoothedRate {
    fn new(rate: f64) -> Self {
        Self { smoothed: rate, recent: rate }
    }

    fn after(self, recent: f64, passed: Duration) -> Self {
        let kept = (-passed.as_secs_f64() / LONG_WINDOW.as_secs_f64()).exp();
        Self { smoothed: kept.mul_add(self.smoothed - recent, recent), recent }
    }

    /// The rate since a count, by how much the rate of the last minute changed since then; 0 where that may be
    /// chance. What has left the window arrived at the smoothed rate.
    fn since_count(self, recent: f64, between: Duration) -> f64 {
        let seconds = between.as_secs_f64();
        let change = (recent - self.recent) * SHORT_WINDOW.as_secs_f64() / seconds;
        let rate = self.smoothed + change;
        // Two counts differ.
        let deviation = (2.0 * rate / seconds).sqrt();
        if change > SIGNIFICANT * deviation { rate } else { 0.0 }
    }

    /// The smoothed rate, or a higher one that exceeds it by more than chance does, where the rate is a sum
    /// over `count` requests per second, of so many times the variance of their number.
    fn or_higher(self, higher: f64, count: f64, variance: f64) -> f64 {
        let counted = count * SHORT_WINDOW.as_secs_f64();
        let deviation = self.smoothed * (variance / counted).sqrt();
        if counted > 0.0 && higher > SIGNIFICANT.mul_add(deviation, self.smoothed) {
            higher
        } else {
            self.smoothed
        }
    }
}

/// Requests that wait in replicas.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReplicaQueues {
    /// Their number.
    pub requests: f64,
    /// Replicas that say so.
    pub replicas: u32,
}

/// Requests of one model: how many arrive, and what they are like.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DemandTrack {
    /// When it was last updated.
    pub at: Moment,
    /// Requests per second that arrive.
    pub arrivals: SmoothedRate,
    /// Requests per second that were served while the queue changed as below.
    pub served: f64,
    /// Requests that wait in the router.
    pub queue: f64,
    /// How long before `at` they were counted.
    #[serde(default)]
    pub queue_age: Duration,
    /// Requests per second by which that queue grew since the look before; negative where it shrank.
    pub queue_growth: f64,
    /// The least by which it grew in each of the last two looks; 0 where it did not.
    #[serde(default)]
    pub queue_keeps_growing: f64,
    /// Requests that wait in replicas; `None` where one of them does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<ReplicaQueues>,
    /// Requests in replicas, waiting or running; `None` where one of them does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<f64>,
    /// Requests per second that must have arrived since the look before, by the growth of those in flight;
    /// 0 where that may be chance.
    #[serde(default)]
    pub surge: f64,
    /// When that surge was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surged: Option<Moment>,
    /// Requests per second that arrived since the router was counted before; 0 where that may be chance, and
    /// without a router.
    #[serde(default)]
    pub jump: f64,
    /// When that queue, or those in replicas, were last seen to shrink fast: tokens were generated for requests of
    /// before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drained: Option<Moment>,
    /// The longest time that a replica takes for a mean answer.
    #[serde(default)]
    pub answering: Duration,
    /// Requests per second by which those in replicas and in the router grew, the most of about the last minute.
    #[serde(default)]
    pub growth: f64,
    /// Tokens per second that would be generated if no request had to wait; `None` where no replica says
    /// what it generates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<SmoothedRate>,
    /// The mean request.
    pub shape: Option<RequestShape>,
}

/// What one collection reports about the requests of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DemandObservation {
    /// Requests per second that are accepted; `None` where no source says so.
    pub arrivals: Option<f64>,
    /// Requests per second that replicas complete; `None` where one of them does not say.
    pub completions: Option<f64>,
    /// Requests per second that the router places; `None` where it does not say.
    pub placed: Option<f64>,
    /// Tokens per second that replicas generate; `None` where one of them does not say.
    pub generated: Option<f64>,
    /// Requests in replicas; `None` where one of them does not say.
    pub in_flight: Option<f64>,
    /// Requests in the router; `None` where it is not known.
    pub queue: Option<f64>,
    /// How long ago they were counted.
    pub queue_age: Duration,
    /// Requests that wait in replicas; `None` where one of them does not say.
    pub waiting: Option<ReplicaQueues>,
    /// The mean request; `None` where no replica has served one.
    pub shape: Option<RequestShape>,
    /// The longest time that a replica takes for a mean answer.
    pub answering: Duration,
}

impl DemandTrack {
    /// The track after one more collection; `None` as long as no arrivals were ever known.
    pub fn after(
        before: Option<Self>,
        observation: DemandObservation,
        now: Moment,
    ) -> Option<Self> {
        let Some(known) = before else {
            let rate = observation.arrivals?;
            return Some(Self {
                at: now,
                arrivals: SmoothedRate::new(rate),
                served: observation.completions.unwrap_or(0.0),
                queue: observation.queue.unwrap_or(0.0),
                queue_age: observation.queue_age,
                queue_growth: 0.0,
                queue_keeps_growing: 0.0,
                waiting: observation.waiting,
                in_flight: observation.in_flight,
                surge: 0.0,
                surged: None,
                jump: 0.0,
                drained: None,
                answering: observation.answering,
                growth: 0.0,
                generated: observation.generated.map(SmoothedRate::new),
                shape: observation.shape,
            });
        };
        let passed = now.since(known.at);
        if passed.is_zero() {
            return Some(known);
        }
        let recent = observation.arrivals.unwrap_or(known.arrivals.recent);
        // Once load has gone, the last requests that ended are those with the longest answers.
        let shape = observation.shape.filter(|_| observation.completions != Some(0.0));
        let mut next = Self {
            at: now,
            arrivals: known.arrivals.after(recent, passed),
            served: observation.completions.unwrap_or(0.0),
            queue_age: known.queue_age + passed,
            waiting: observation.waiting,
            in_flight: observation.in_flight,
            answering: observation.answering,
            shape: shape.or(known.shape).or(observation.shape),
            ..known
        };
        next.count(known, observation, now);
        if known.is_draining(now) {
            // Replicas that are seen last have short answers left of those that drain.
            next.answering = next.answering.max(known.answering);
        }
        next.surge = next.surge_since(known.in_flight, observation.generated, passed);
        let is_unseen = observation.queue.is_none();
        if next.empties_replicas(known.waiting, passed)
            || is_unseen && next.empties_unseen(known.in_flight, passed)
        {
            next.drained = Some(now);
        }
        let is_draining = next.is_draining(now);
        if is_draining {
            next.surge = 0.0;
        }
        next.growth = next.growth_since(known, passed);
        if next.in_flight.is_some() {
            next.surged = (next.surge > 0.0).then_some(now);
        }
        if let Some(generated) = observation.generated.filter(|_| !is_draining) {
            let wanted = generated * next.held_back(observation.placed);
            next.generated = Some(
                known
                    .generated
                    .map_or_else(|| SmoothedRate::new(wanted), |known| known.after(wanted, passed)),
            );
        }
        Some(next)
    }

    /// Whether requests became more at once, or wait.
    pub fn jumps(&self) -> bool {
        let in_replicas = self.waiting.map_or(0.0, |queues| queues.requests);
        self.is_backlog(self.queue + in_replicas) || self.surge > 0.0 || self.jump > 0.0
    }

    /// Whether so many requests that wait are a backlog.
    pub fn is_backlog(&self, waiting: f64) -> bool {
        waiting >= 1.0 && waiting > TOLERATED_WAIT * self.rate()
    }

    /// Whether a queue drains, or did within the window of the rates and the time of an answer: replicas are full of
    /// requests of before.
    pub fn is_draining(&self, now: Moment) -> bool {
        let lasts = SHORT_WINDOW + self.answering.min(LONG_WINDOW);
        (self.drained).is_some_and(|at| now.since(at) < lasts)
    }

    /// The growth of all requests since the look before, or what is left of an earlier one within about a window.
    fn growth_since(&self, before: Self, passed: Duration) -> f64 {
        let left = (-passed.as_secs_f64() / SHORT_WINDOW.as_secs_f64()).exp();
        let in_replicas = (self.in_flight.zip(before.in_flight))
            .map_or(0.0, |(now, before)| (now - before) / passed.as_secs_f64());
        let growth = (in_replicas + self.queue_growth).max(before.growth * left);
        // In hundredths, so that records of it stay small.
        hundredths(growth)
    }

    /// The most work that can have arrived, where a replica generates so much and a request is so much work: what is
    /// not served waits or is in replicas. Infinite where either is not known.
    pub fn most_work(&self, served: f64, per_request: f64) -> f64 {
        if self.in_flight.is_some() && self.generated.is_some() {
            BALANCE_EXCESS * self.growth.mul_add(per_request, served)
        } else {
            f64::INFINITY
        }
    }

    /// Takes the router's queue in, unless it is the count that is known.
    fn count(&mut self, before: Self, observation: DemandObservation, now: Moment) {
        let Some(queue) = observation.queue else {
            // What the queue did is not known any more.
            self.jump = 0.0;
            self.queue_growth = 0.0;
            self.queue_keeps_growing = 0.0;
            return;
        };
        let between = self.queue_age.saturating_sub(observation.queue_age);
        if between.is_zero() {
            return;
        }
        // A count that a router gives by itself comes between two readings of the rate.
        let rated = between.max(now.since(before.at));
        self.jump = before.arrivals.since_count(self.arrivals.recent, rated);
        self.queue_growth = (queue - self.queue) / between.as_secs_f64();
        self.queue_keeps_growing = self.queue_growth.min(before.queue_growth).max(0.0);
        self.queue = queue;
        self.queue_age = observation.queue_age;
        if -self.queue_growth > DRAINING * self.arrivals.smoothed {
            self.drained = Some(now);
        }
    }

    /// Whether many fewer requests wait in replicas than before, and not in the router instead. What waited in a
    /// replica that is not seen any more was not served.
    fn empties_replicas(&self, before: Option<ReplicaQueues>, passed: Duration) -> bool {
        let both = before.zip(self.waiting);
        both.is_some_and(|(before, now)| {
            let left = before.requests - now.requests;
            let rate = left / passed.as_secs_f64() - self.queue_growth.max(0.0);
            now.replicas >= before.replicas
                && left > SIGNIFICANT * (before.requests + now.requests).sqrt()
                && rate > DRAINING * self.arrivals.smoothed
        })
    }

    /// Whether replicas take more requests than arrive, and no more of them than waited in a queue that is not seen
    /// any more.
    fn empties_unseen(&self, before: Option<f64>, passed: Duration) -> bool {
        let Some((before, in_flight)) = before.zip(self.in_flight) else {
            return false;
        };
        let beyond = (self.served - self.arrivals.smoothed) * passed.as_secs_f64();
        self.surge > 0.0 && in_flight - before + beyond <= self.queue && self.queue_age < UNSEEN
    }

    /// What is served and what more is in flight than before. A count of requests varies by its square root.
    /// While they are not known, the surge stays what it was, for as long as a window.
    fn surge_since(&self, before: Option<f64>, generated: Option<f64>, passed: Duration) -> f64 {
        let Some(in_flight) = self.in_flight else {
            let is_recent = (self.surged).is_some_and(|at| self.at.since(at) < SHORT_WINDOW);
            return if is_recent { self.surge } else { 0.0 };
        };
        let Some(before) = before else { return 0.0 };
        let seconds = passed.as_secs_f64();
        // Requests with longer answers are served for a while before one of them is complete.
        let by_tokens = (generated.zip(self.shape))
            .map_or(0.0, |(tokens, shape)| tokens / shape.output.max(1.0));
        let served = self.served.max(by_tokens);
        let rate = served + (in_flight - before) / seconds + self.queue_growth.max(0.0);
        let by_count = self.arrivals.smoothed / SHORT_WINDOW.as_secs_f64();
        let deviation = ((before + in_flight) / (seconds * seconds) + by_count).sqrt();
        if rate > SIGNIFICANT.mul_add(deviation, self.arrivals.smoothed) { rate } else { 0.0 }
    }

    /// Requests that arrive for each one that is placed, as long as some wait; else 1. A replica that has just
    /// started counts from its first scrape on: what does not stay in the queue was placed as well. Completions
    /// would not do: while load rises they are behind what is generated.
    fn held_back(&self, placed: Option<f64>) -> f64 {
        let arrivals = self.arrivals.recent;
        let placed = placed.map(|placed| placed.max(arrivals - self.queue_growth));
        let placed = placed.filter(|placed| *placed > 0.0 && self.queue >= 1.0);
        placed.map_or(1.0, |placed| (arrivals / placed).max(1.0))
    }

    /// While a queue drains, what is served arrived before.
    fn highest(&self) -> f64 {
        let by_queue = if self.queue_growth > 0.0 && !self.is_draining(self.at) {
            self.served + self.queue_growth
        } else {
            0.0
        };
        self.arrivals.recent.max(by_queue)
    }

    /// With a count of the router's queue since the last look, which raises the rate alone. It is taken to have grown
    /// for as long as between two looks at least: what comes within seconds is no rate.
    #[must_use]
    pub fn with_count(mut self, queue: Option<f64>, age: Duration, now: Moment) -> Self {
        let between = (now.since(self.at) + self.queue_age).saturating_sub(age);
        if let Some(queue) = queue.filter(|_| !between.is_zero()) {
            let growth = (queue - self.queue) / between.max(JUMP_LOOK).as_secs_f64();
            self.queue_growth = self.queue_growth.max(growth);
            self.growth = self.growth.max(growth);
        }
        self
    }

    /// Requests per second to be served: the smoothed rate, or the rate of the last minute, or what is
    /// served while the queue grows, where these exceed it by more than chance does.
    pub fn rate(&self) -> f64 {
        (self.arrivals).or_higher(self.highest(), self.arrivals.smoothed, 1.0)
    }

    /// One standard deviation of the work that arrives over the long window, as a share of it.
    pub fn noise(&self) -> f64 {
        (SIZE_VARIANCE / (self.rate() * 2.0 * LONG_WINDOW.as_secs_f64())).sqrt()
    }

    /// The most of them that the short or the long window says.
    pub fn generated_at_most(&self) -> f64 {
        (self.generated).map_or(0.0, |rate| rate.recent.max(rate.smoothed))
    }

    /// Tokens per second to be generated, by what replicas generate; 0 where that is not known. It follows
    /// answers that grow longer at once, where the mean answer takes minutes.
    pub fn generated(&self) -> f64 {
        self.generated
            .map_or(0.0, |rate| rate.or_higher(rate.recent, self.arrivals.smoothed, SIZE_VARIANCE))
    }
}
