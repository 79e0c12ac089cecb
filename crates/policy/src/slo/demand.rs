//! Requests that arrive, over a short and a long window.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::throughput::shape::RequestShape;
use wva_base::moment::Moment;

/// The window of the rate that is measured. Source: the window of every rate that is queried.
const SHORT_WINDOW: Duration = Duration::from_mins(1);
/// Time constant of the smoothed rate.
const LONG_WINDOW: Duration = Duration::from_mins(2);
/// Standard deviations of a Poisson count by which the short window must exceed the long one to count.
const SIGNIFICANT: f64 = 4.0;

/// Requests of one model: how many arrive, and what they are like.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DemandTrack {
    /// When it was last updated.
    pub at: Moment,
    /// Requests per second, smoothed.
    pub smoothed: f64,
    /// Requests per second of the short window.
    pub recent: f64,
    /// Requests per second that were served while the router's queue changed as below.
    pub served: f64,
    /// Requests that wait in the router.
    pub queue: f64,
    /// Requests per second by which that queue grew since the look before; negative where it shrank.
    pub queue_growth: f64,
    /// The mean request.
    pub shape: Option<RequestShape>,
}

/// What one collection says of the requests of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DemandObservation {
    /// Requests per second that are accepted; `None` where no source says so.
    pub arrivals: Option<f64>,
    /// Requests per second that replicas complete.
    pub completions: f64,
    /// Requests in the router; `None` where it is not known.
    pub queue: Option<f64>,
    /// The mean request; `None` where no replica has served one.
    pub shape: Option<RequestShape>,
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
                smoothed: rate,
                recent: rate,
                served: observation.completions,
                queue: observation.queue.unwrap_or(0.0),
                queue_growth: 0.0,
                shape: observation.shape,
            });
        };
        let passed = now.since(known.at).as_secs_f64();
        if passed <= 0.0 {
            return Some(known);
        }
        let recent = observation.arrivals.unwrap_or(known.recent);
        let kept = (-passed / LONG_WINDOW.as_secs_f64()).exp();
        let queue = observation.queue.unwrap_or(known.queue);
        Some(Self {
            at: now,
            smoothed: kept.mul_add(known.smoothed - recent, recent),
            recent,
            served: observation.completions,
            queue,
            queue_growth: (queue - known.queue) / passed,
            shape: observation.shape.or(known.shape),
        })
    }

    /// Requests per second to be served: the smoothed rate, or the rate of the last minute, or what is
    /// served while the queue grows, where these exceed it by more than chance does.
    pub fn rate(&self) -> f64 {
        let by_queue = if self.queue_growth > 0.0 {
            self.served + self.queue_growth
        } else {
            0.0
        };
        let highest = self.recent.max(by_queue);
        let deviation = (self.smoothed / SHORT_WINDOW.as_secs_f64()).sqrt();
        if highest > SIGNIFICANT.mul_add(deviation, self.smoothed) {
            highest
        } else {
            self.smoothed
        }
    }
}
