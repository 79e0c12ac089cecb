//! Rates of a replica while it was full and had requests waiting: all that it can do.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::average::median;
use super::shape::OutputClass;
use wva_base::moment::Moment;

/// Readings that a statistic needs before it may order replicas.
pub(crate) const MIN_READINGS: usize = 2;
const MAX_READINGS: usize = 20;
/// Length of the rate window of a reading; closer readings share samples.
pub(super) const RATE_WINDOW: Duration = Duration::from_mins(1);

/// Rates in tokens per second, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct RateReadings {
    readings: VecDeque<(Moment, f64)>,
}

impl RateReadings {
    /// Records a rate, unless it shares its rate window with the previous one or is no rate.
    pub(crate) fn record(&mut self, now: Moment, rate: f64) {
        let is_distinct =
            (self.readings.back()).is_none_or(|(at, _)| now.since(*at) >= RATE_WINDOW);
        if is_distinct && rate.is_finite() && rate > 0.0 {
            while self.readings.len() >= MAX_READINGS {
                self.readings.pop_front();
            }
            self.readings.push_back((now, rate));
        }
    }

    pub(crate) fn median(&self) -> Option<f64> {
        median(self.readings.iter().map(|(_, rate)| *rate))
    }
}

/// Readings of one variant by the length of its answers: the rate of a full replica depends on how
/// many requests fit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Rates {
    classes: BTreeMap<OutputClass, RateReadings>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MeasuredRate {
    /// Tokens per second.
    pub rate: f64,
    pub readings: usize,
    /// Whether they are of answers of another length.
    pub is_of_other_class: bool,
}

impl MeasuredRate {
    /// Whether it rests on enough readings of requests like the present ones to order replicas.
    pub fn is_proven(self) -> bool {
        !self.is_of_other_class && self.readings >= MIN_READINGS
    }
}

impl Rates {
    pub(crate) fn record(&mut self, class: OutputClass, now: Moment, rate: f64) {
        self.classes.entry(class).or_default().record(now, rate);
    }

    /// The median of a class; where it has no reading, the least median of another one.
    pub(crate) fn of(&self, class: OutputClass) -> Option<MeasuredRate> {
        let measured = |readings: &RateReadings, is_of_other_class| {
            let (rate, readings) = (readings.median()?, readings.readings.len());
            Some(MeasuredRate { rate, readings, is_of_other_class })
        };
        let own = self.classes.get(&class);
        own.and_then(|readings| measured(readings, false)).or_else(|| {
            self.classes
                .values()
                .filter_map(|readings| measured(readings, true))
                .min_by(|one, other| one.rate.total_cmp(&other.rate))
        })
    }
}
