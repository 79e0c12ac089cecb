//! Chance, drawn from a seed.

use std::time::Duration;

use wva_supervise::Generator;

#[derive(Debug, Clone)]
pub(super) struct Dice(Generator);

impl Dice {
    pub(super) fn new(generator: Generator) -> Self {
        Self(generator)
    }

    /// A number below this one; 0 where it is 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        let drawn = self.0.next_u64() >> 1;
        drawn.checked_rem(end).unwrap_or(0)
    }

    pub(super) fn place(&mut self, length: usize) -> usize {
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        usize::try_from(self.below(length)).unwrap_or(0)
    }

    pub(super) fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.place(of.len()))
    }

    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A time from a range; short ones are as likely as long ones on a logarithmic scale.
    pub(super) fn time(&mut self, from: Duration, to: Duration) -> Duration {
        let [from, to] = [from, to].map(|time| time.as_secs_f64().max(1e-3));
        let share = crate::number::real(self.below(1_000_000)) / 1e6;
        whole_millis(from * (to / from).powf(share))
    }

    pub(super) fn gap(&mut self, mean: Duration) -> Duration {
        let share = (crate::number::real(self.below(1_000_000)) + 1.0) / 1_000_001.0;
        let seconds = -share.ln() * mean.as_secs_f64();
        whole_millis(seconds)
    }
}

fn whole_millis(seconds: f64) -> Duration {
    let millis = Duration::from_secs_f64(seconds).as_millis();
    Duration::from_millis(millis.try_into().unwrap_or(1))
}
