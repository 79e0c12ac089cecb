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
pub struct BirthDeathQueue {
    rates: Vec<f64>,
    room: u32,
}

/// A queue in equilibrium.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Equilibrium {
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
    /// Mean time from arrival to departure.
    pub response_time: f64,
    /// Mean time of being worked on.
    pub service_time: f64,
    /// Mean time of waiting.
    pub wait_time: f64,
}

/// A queue that has no solution.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum QueueError {
    /// No service rate, or one that is not positive.
    #[error("a queue needs service rates that are finite and above 0")]
    ServiceRate,
    /// No room at all.
    #[error("a queue needs room for one request at least")]
    NoRoom,
    /// The arrival rate is negative or not finite.
    #[error("arrival rate {0} must be finite and at least 0")]
    ArrivalRate(f64),
    /// So many arrivals that the queue is full all the time.
    #[error("offered load {load} must be below the room of {room} requests")]
    Overload {
        /// Arrival rate over the highest service rate.
        load: f64,
        /// Requests that find room.
        room: u32,
    },
    /// Numbers too large or too small for 64 bits.
    #[error("the queue at arrival rate {0} cannot be computed in 64 bits")]
    Range(f64),
}

impl BirthDeathQueue {
    /// A queue with room for `room` requests, which finishes `rates[n−1]` requests per unit of time
    /// while `n` are in it, and the last of them beyond.
    ///
    /// # Errors
    /// If a rate is not above zero or there is no room.
    pub fn new(rates: Vec<f64>, room: u32) -> Result<Self, QueueError> {
        let usable = |rate: &f64| *rate > 0.0 && rate.is_finite();
        if rates.is_empty() || !rates.iter().all(usable) {
            return Err(QueueError::ServiceRate);
        }
        if room == 0 {
            return Err(QueueError::NoRoom);
        }
        Ok(Self { rates, room })
    }

    /// Service rate with one request.
    pub fn first_rate(&self) -> f64 {
        self.rates.first().copied().unwrap_or(0.0)
    }

    /// Service rate with as many requests as can be worked on.
    pub fn full_rate(&self) -> f64 {
        self.rates.last().copied().unwrap_or(0.0)
    }

    /// Probability of 0, 1, … requests in the queue. States at the end that are so rare that they
    /// change nothing are left out.
    ///
    /// # Errors
    /// See [`QueueError`].
    pub fn probabilities(&self, arrival_rate: f64) -> Result<Vec<f64>, QueueError> {
        let load = self.load(arrival_rate)?;
        let mut weights = vec![1.0];
        let mut weight = 1.0;
        let mut sum = 1.0;
        let waiting = std::iter::repeat(self.full_rate());
        let room = usize::try_from(self.room).unwrap_or(usize::MAX);
        for (served, rate) in self
            .rates
            .iter()
            .copied()
            .chain(waiting)
            .take(room)
            .enumerate()
        {
            weight *= arrival_rate / rate;
            sum += weight;
            weights.push(weight);
            if weight > LARGE {
                for earlier in &mut weights {
                    *earlier /= weight;
                }
                sum /= weight;
                weight = 1.0;
            }
            // Beyond the batch, weights fall by the same factor each.
            if served >= self.rates.len() && weight < NEGLIGIBLE * (1.0 - load) * sum {
                break;
            }
        }
        for weight in &mut weights {
            *weight /= sum;
        }
        Ok(weights)
    }

    /// The queue in equilibrium. Without arrivals the times are those of a lone request.
    ///
    /// # Errors
    /// See [`QueueError`].
    pub fn solve(&self, arrival_rate: f64) -> Result<Equilibrium, QueueError> {
        let probabilities = self.probabilities(arrival_rate)?;
        let servers = u32::try_from(self.rates.len()).unwrap_or(u32::MAX);
        let (mut in_service, mut waiting) = (0.0, 0.0);
        for (count, probability) in (0_u32..).zip(&probabilities) {
            in_service += f64::from(count.min(servers)) * probability;
            waiting += f64::from(count.saturating_sub(servers)) * probability;
        }
        let full = u32::try_from(probabilities.len()).is_ok_and(|states| states > self.room);
        let last = probabilities.last().copied().unwrap_or(0.0);
        let blocked = if full { last } else { 0.0 };
        let throughput = arrival_rate * (1.0 - blocked);
        let (service_time, wait_time) = if throughput > 0.0 {
            (in_service / throughput, waiting / throughput)
        } else {
            (self.first_rate().recip(), 0.0)
        };
        let equilibrium = Equilibrium {
            offered_load: arrival_rate / self.full_rate(),
            utilisation: 1.0 - probabilities.first().copied().unwrap_or(1.0),
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
        if all.is_finite() {
            Ok(equilibrium)
        } else {
            Err(QueueError::Range(arrival_rate))
        }
    }

    fn load(&self, arrival_rate: f64) -> Result<f64, QueueError> {
        if !(0.0..=f64::MAX).contains(&arrival_rate) {
            return Err(QueueError::ArrivalRate(arrival_rate));
        }
        let load = arrival_rate / self.full_rate();
        if load < f64::from(self.room) {
            Ok(load)
        } else {
            Err(QueueError::Overload {
                load,
                room: self.room,
            })
        }
    }
}
