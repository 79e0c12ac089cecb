//! Settings that bounds of the judge follow, as a process has had them in force lately.

use std::collections::VecDeque;
use std::time::Duration;

use wva::policy::params::DynamicSettings;

/// How long they are remembered: the longest interval.
const REMEMBERED: Duration = Duration::from_hours(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::chaos) struct Span {
    pub(crate) interval: Duration,
    pub(crate) fresh: Duration,
    pub(crate) usable: Duration,
}

impl Span {
    fn of(settings: &DynamicSettings) -> Self {
        Self {
            interval: settings.interval,
            fresh: settings.freshness.fresh,
            usable: settings.freshness.unavailable,
        }
    }

    fn max(self, other: Self) -> Self {
        Self {
            interval: self.interval.max(other.interval),
            fresh: self.fresh.max(other.fresh),
            usable: self.usable.max(other.usable),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Spans {
    all: VecDeque<(Duration, Span)>,
    pub(crate) beat_since: Duration,
}

impl Spans {
    pub(crate) fn note(&mut self, settings: &DynamicSettings, now: Duration) {
        let span = Span::of(settings);
        match self.all.back_mut() {
            Some((until, last)) if *last == span => *until = now,
            last => {
                if last.is_none_or(|(_, last)| last.interval != span.interval) {
                    self.beat_since = now;
                }
                self.all.push_back((now, span));
            }
        }
        self.all.retain(|(until, _)| now.saturating_sub(*until) <= REMEMBERED);
    }

    /// The longest of each that was in force since then; the last ones at least.
    pub(crate) fn widest(&self, from: Duration) -> Option<Span> {
        let (_, last) = self.all.back()?;
        let since = self.all.iter().filter(|(until, _)| *until >= from);
        Some(since.fold(*last, |widest, (_, span)| widest.max(*span)))
    }

    pub(crate) fn shortest_interval(&self, from: Duration) -> Option<Duration> {
        let since = self.all.iter().filter(|(until, _)| *until >= from);
        since.map(|(_, span)| span.interval).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wva::settings::bundle::read_bundle;

    #[test]
    fn what_was_in_force_counts_for_as_long_as_is_asked_for() {
        let seconds = Duration::from_secs;
        let mut settings = read_bundle("").unwrap();
        let mut spans = Spans::default();
        assert_eq!(spans.widest(seconds(0)), None);
        for (at, interval, fresh) in [(10, 30, 60), (20, 30, 60), (21, 90, 20), (40, 5, 20)] {
            settings.interval = seconds(interval);
            settings.freshness.fresh = seconds(fresh);
            spans.note(&settings, seconds(at));
        }
        let wide = |from| {
            let widest = spans.widest(seconds(from)).unwrap();
            (widest.interval.as_secs(), widest.fresh.as_secs())
        };
        assert_eq!(wide(20), (90, 60));
        assert_eq!(wide(21), (90, 20));
        assert_eq!(wide(22), (5, 20));
        assert_eq!(spans.shortest_interval(seconds(0)), Some(seconds(5)));
        assert_eq!(spans.beat_since, seconds(40));
    }
}
