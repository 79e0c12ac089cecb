//! Single queue with finite room whose service rate depends on the number of requests in it.
//!
//! The textbook birth-death chain: `p(i+1) = p(i)·λ/μ(min(i+1, N))`. With one rate it is the plain
//! M/M/1/K queue.

use serde::Serialize;

/// A weight above this makes all of them be scaled down.
const LARGE: f64 = 1e200;

/// Weights whose sum changes nothing in the last digit of the whole are taken as zero.
const NEGLIGIBLE: f64 = 1e-30;

/// The queue. Rates are per unit of time, and results are in the same unit.
#[derive(Debug, Clone)]
pub(crate) struct BirthDeathQueue {
    rates: Vec<f64>,
    /// Their reciprocals: multiplying is quicker than dividing.
    times: Vec<f64>,
    /// Whether no rate is below the one before it.
    is_rising: bool,
    room: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Equilibrium {
    /// Arrival rate over the highest service rate.
    pub offered_load: f64,
    /// Share of time in which the server works: `1 − p(0)`.
    pub utilisation: f64,
    /// Share of arrivals that find no room: `p(K)`.
    pub blocked: f64,
    /// Mean number worked on.
    pub in_service: f64,
    /// Mean number worked on or waiting.
    pub in_system: f64,
    /// Mean number waiting.
    pub waiting: f64,
    /// Arrivals that find room, per unit of time.
    pub throughput: f64,
    pub response_time: f64,
    pub service_time: f64,
    pub wait_time: f64,
}

/// Sums of the weights of states, which are in proportion to their probabilities.
struct Weights {
    idle: f64,
    all: f64,
    in_service: f64,
    waiting: f64,
    /// The last state so far: in the end the full queue, 0 where that is negligible.
    last: f64,
}

impl Weights {
    /// Whether the last state and all that follow change nothing, if each of them weighs at most
    /// `factor` times the one before it.
    fn is_negligible(&self, factor: f64) -> bool {
        self.last < NEGLIGIBLE * self.all && self.last < NEGLIGIBLE * (1.0 - factor) * self.all
    }

    fn shrink(&mut self) {
        let scale = self.last.recip();
        self.idle *= scale;
        self.all *= scale;
        self.in_service *= scale;
        self.waiting *= scale;
        self.last = 1.0;
    }
}

/// A queue that has no solution.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum QueueError {
    #[error("a queue needs service rates that are finite and above 0")]
    ServiceRate,
    #[error("a queue needs room for one request at least")]
    NoRoom,
    #[error("arrival rate {0} must be finite and at least 0")]
    ArrivalRate(f64),
    /// The load is the arrival rate over the highest service rate.
    #[error("offered load {load} must be below the room of {room} requests")]
    Overload { load: f64, room: u32 },
    #[error("the queue at arrival rate {0} cannot be computed in 64 bits")]
    Range(f64),
}

impl BirthDeathQueue {
    /// A queue with room for `room` requests, which finishes `rates[n−1]` requests per unit of time
    /// while `n` are in it, and the last of them beyond.
    pub(crate) fn new(rates: Vec<f64>, room: u32) -> Result<Self, QueueError> {
        let usable = |rate: &f64| *rate > 0.0 && rate.is_finite();
        if rates.is_empty() || !rates.iter().all(usable) {
            return Err(QueueError::ServiceRate);
        }
        if room == 0 {
            return Err(QueueError::NoRoom);
        }
        Ok(Self {
            times: rates.iter().map(|rate| rate.recip()).collect(),
            is_rising: rates.is_sorted(),
            rates,
            room,
        })
    }

    pub(crate) fn first_rate(&self) -> f64 {
        self.rates.first().copied().unwrap_or(0.0)
    }

    pub(crate) fn full_rate(&self) -> f64 {
        self.rates.last().copied().unwrap_or(0.0)
    }

    /// The queue in equilibrium. Without arrivals the times are those of a lone request.
    pub(crate) fn solve(&self, arrival_rate: f64) -> Result<Equilibrium, QueueError> {
        let Weights { idle, all, in_service, waiting, last } = self.weights(arrival_rate)?;
        let (in_service, waiting, blocked) = (in_service / all, waiting / all, last / all);
        let throughput = arrival_rate * (1.0 - blocked);
        let (service_time, wait_time) = if throughput > 0.0 {
            (in_service / throughput, waiting / throughput)
        } else {
            (self.first_rate().recip(), 0.0)
        };
        let equilibrium = Equilibrium {
            offered_load: arrival_rate / self.full_rate(),
            utilisation: 1.0 - idle / all,
            blocked,
            in_service,
            in_system: in_service + waiting,
            waiting,
            throughput,
            response_time: service_time + wait_time,
            service_time,
            wait_time,
        };
        let all = equilibrium.response_time + equilibrium.in_system + throughput;
        if all.is_finite() { Ok(equilibrium) } else { Err(QueueError::Range(arrival_rate)) }
    }

    fn weights(&self, arrival_rate: f64) -> Result<Weights, QueueError> {
        self.load(arrival_rate)?;
        let mut sums = Weights { idle: 1.0, all: 1.0, in_service: 0.0, waiting: 0.0, last: 1.0 };
        let room = usize::try_from(self.room).unwrap_or(usize::MAX);
        let mut served = 0.0;
        for time in self.times.iter().take(room) {
            served += 1.0;
            let factor = arrival_rate * time;
            sums.last *= factor;
            sums.all += sums.last;
            sums.in_service += served * sums.last;
            if sums.last > LARGE {
                sums.shrink();
            } else if self.is_rising && sums.is_negligible(factor) {
                sums.last = 0.0;
                return Ok(sums);
            }
        }
        let factor = arrival_rate * self.times.last().copied().unwrap_or(0.0);
        let mut waiting = 0.0;
        for _ in self.times.len()..room {
            waiting += 1.0;
            sums.last *= factor;
            sums.all += sums.last;
            sums.in_service += served * sums.last;
            sums.waiting += waiting * sums.last;
            if sums.last > LARGE {
                sums.shrink();
            } else if sums.is_negligible(factor) {
                sums.last = 0.0;
                break;
            }
        }
        Ok(sums)
    }

    fn load(&self, arrival_rate: f64) -> Result<f64, QueueError> {
        if !(0.0..=f64::MAX).contains(&arrival_rate) {
            return Err(QueueError::ArrivalRate(arrival_rate));
        }
        let load = arrival_rate / self.full_rate();
        if load < f64::from(self.room) {
            Ok(load)
        } else {
            Err(QueueError::Overload { load, room: self.room })
        }
    }
}

#[cfg(test)]
#[path = "tests/probabilities.rs"]
mod probabilities;
