//! How many requests per second, over time.

use std::f64::consts::TAU;
use std::time::Duration;

use crate::number;

/// The highest rate that makes sense, in requests per second.
const MAX_RATE: f64 = 100_000.0;
/// Beyond this no request is awaited: ten years.
const HORIZON_SECONDS: f64 = 315_360_000.0;

/// A rate in requests per second, as a function of time from the origin of the load.
#[derive(Debug, Clone, PartialEq)]
pub enum RateProfile {
    /// Always the same.
    Constant {
        /// The rate.
        rate: f64,
    },
    /// One rate, then another.
    Step {
        /// The rate at first.
        before: f64,
        /// The rate from `at` on.
        after: f64,
        /// When it changes.
        at: Duration,
    },
    /// From one rate to another along a straight line.
    Ramp {
        /// The rate up to `start`.
        from: f64,
        /// The rate after the ramp.
        to: f64,
        /// When the ramp begins.
        start: Duration,
        /// How long it takes.
        over: Duration,
    },
    /// A base rate that ends in a peak, over and over.
    Burst {
        /// The rate between peaks.
        base: f64,
        /// The rate of a peak.
        peak: f64,
        /// From the end of one peak to the end of the next.
        every: Duration,
        /// How long a peak lasts; at most `every`.
        length: Duration,
    },
    /// A sine around a mean: a day, or a shorter wave.
    Wave {
        /// The mean rate.
        mean: f64,
        /// How far it goes up and down; at most the mean.
        swing: f64,
        /// From peak to peak.
        period: Duration,
        /// How far into the wave the load begins; it rises through the mean at 0.
        phase: Duration,
    },
    /// One constant rate after another, then nothing.
    Stages(Vec<RateStage>),
}

/// A constant rate for some time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateStage {
    /// How long.
    pub lasts: Duration,
    /// The rate, in requests per second.
    pub rate: f64,
}

impl RateProfile {
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Self::Constant { rate } => in_range("rate", *rate),
            Self::Step { before, after, .. } => {
                in_range("before", *before)?;
                in_range("after", *after)
            }
            Self::Ramp { from, to, over, .. } => {
                in_range("from", *from)?;
                in_range("to", *to)?;
                not_zero("over", *over)
            }
            Self::Burst { base, peak, every, length } => {
                in_range("base", *base)?;
                in_range("peak", *peak)?;
                not_zero("every", *every)?;
                if length > every {
                    return Err(format!(
                        "length is {length:?}, longer than every, {every:?}; shorten the burst"
                    ));
                }
                Ok(())
            }
            Self::Wave { mean, swing, period, .. } => {
                in_range("mean", *mean)?;
                in_range("swing", *swing)?;
                not_zero("period", *period)?;
                if swing > mean {
                    return Err(format!(
                        "swing is {swing}, above the mean of {mean} requests/s; lower it"
                    ));
                }
                Ok(())
            }
            Self::Stages(stages) => {
                stages.iter().try_for_each(|stage| in_range("the rate of a stage", stage.rate))
            }
        }
    }

    /// The rate at a time, in requests per second.
    pub(crate) fn rate(&self, at: Duration) -> f64 {
        let t = at.as_secs_f64();
        match self {
            Self::Constant { rate } => *rate,
            Self::Step { before, .. } if t < self.turning_point() => *before,
            Self::Step { after, .. } => *after,
            Self::Ramp { from, to, start, over } => {
                let done = (t - start.as_secs_f64()) / over.as_secs_f64();
                from + (to - from) * done.clamp(0.0, 1.0)
            }
            Self::Burst { base, peak, every, .. } => {
                let within = t % every.as_secs_f64();
                if within < self.turning_point() { *base } else { *peak }
            }
            Self::Wave { mean, swing, period, phase } => {
                let turns = (t + phase.as_secs_f64()) / period.as_secs_f64();
                mean + swing * (TAU * turns).sin()
            }
            Self::Stages(stages) => {
                let mut left = t;
                for stage in stages {
                    left -= stage.lasts.as_secs_f64();
                    if left < 0.0 {
                        return stage.rate;
                    }
                }
                0.0
            }
        }
    }

    /// Where a step steps and, within its cycle, a burst begins.
    fn turning_point(&self) -> f64 {
        match self {
            Self::Step { at, .. } => at.as_secs_f64(),
            Self::Burst { every, length, .. } => every.saturating_sub(*length).as_secs_f64(),
            _ => 0.0,
        }
    }

    /// Requests expected up to `t` seconds.
    fn expected(&self, t: f64) -> f64 {
        match self {
            Self::Constant { rate } => rate * t,
            Self::Step { before, after, .. } => {
                let at = self.turning_point();
                before * t.min(at) + after * (t - at).max(0.0)
            }
            Self::Ramp { from, to, start, over } => {
                let (start, over) = (start.as_secs_f64(), over.as_secs_f64());
                let on = (t - start).clamp(0.0, over);
                let after = (t - start - over).max(0.0);
                from * (t.min(start) + on) + (to - from) * on * on / (2.0 * over) + to * after
            }
            Self::Burst { base, peak, every, .. } => {
                let (every, quiet) = (every.as_secs_f64(), self.turning_point());
                let cycles = (t / every).floor();
                let within = t - cycles * every;
                cycles * (base * quiet + peak * (every - quiet))
                    + base * within.min(quiet)
                    + peak * (within - quiet).max(0.0)
            }
            Self::Wave { mean, swing, period, phase } => {
                let angle = TAU / period.as_secs_f64();
                let begun = angle * phase.as_secs_f64();
                mean * t - swing / angle * ((angle * t + begun).cos() - begun.cos())
            }
            Self::Stages(stages) => {
                let mut sum = 0.0;
                let mut left = t;
                for stage in stages {
                    let lasts = stage.lasts.as_secs_f64();
                    sum += stage.rate * left.clamp(0.0, lasts);
                    left -= lasts;
                }
                sum
            }
        }
    }

    /// When, after `from` seconds, so many more requests are expected to have come; none if never.
    pub(super) fn after(&self, from: f64, requests: f64) -> Option<f64> {
        let wanted = self.expected(from) + requests;
        let rate = self.rate(number::duration(from));
        let mut reach = if rate > 0.0 { requests / rate } else { 1.0 };
        reach = reach.clamp(1e-6, 60.0);
        let (mut low, mut high) = (from, from + reach);
        while self.expected(high) < wanted {
            if high > HORIZON_SECONDS {
                return None;
            }
            reach *= 2.0;
            (low, high) = (high, high + reach);
        }
        // To a tenth of a microsecond; time is given in whole nanoseconds.
        while high - low > 1e-7 {
            let middle = low + (high - low) / 2.0;
            if middle <= low || middle >= high {
                break;
            }
            if self.expected(middle) < wanted {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(high)
    }
}

fn in_range(field: &str, value: f64) -> Result<(), String> {
    if (0.0..=MAX_RATE).contains(&value) {
        Ok(())
    } else {
        Err(format!("{field} is {value} requests/s; give a rate from 0 to {MAX_RATE}"))
    }
}

fn not_zero(field: &str, time: Duration) -> Result<(), String> {
    if time.is_zero() { Err(format!("{field} is zero; give a longer time")) } else { Ok(()) }
}
