//! Answers that were not made for the question: something between here and Prometheus keeps them, and
//! repeats them with the time of their evaluation, by which their samples would be new for ever.

use std::collections::BTreeMap;
use std::time::Duration;

use super::query::QueryName;
use wva_base::moment::Moment;

/// When each answer was evaluated, in seconds by the clock of Prometheus.
pub type Evaluated = BTreeMap<QueryName, f64>;

/// The last evaluations, and when each was seen first.
#[derive(Debug, Default)]
pub struct Evaluations(BTreeMap<QueryName, (f64, Moment)>);

impl Evaluations {
    /// Takes in the evaluations of now, and returns for how long any of them was repeated already: by so
    /// much more its samples are old. Nothing is evaluated twice at the same millisecond. A query that says
    /// nothing now, because it failed or found nothing, stays as it was.
    pub fn repeated_for(&mut self, evaluated: &Evaluated, now: Moment) -> Duration {
        let ages = evaluated.iter().map(|(query, time)| {
            let known = self.0.entry(*query).or_insert((*time, now));
            if known.0.total_cmp(time).is_ne() {
                *known = (*time, now);
            }
            now.since(known.1)
        });
        ages.max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wva_base::moment::WallTime;

    #[test]
    fn a_repeated_evaluation_is_as_old_as_its_first_answer() {
        let mut evaluations = Evaluations::default();
        let mut repeated = |second: u64, usage: Option<f64>, queue: f64| {
            let usage = usage.map(|time| (QueryName::KvUsageAge, time));
            let evaluated = usage.into_iter().chain([(QueryName::QueueLengthAge, queue)]);
            let now = Moment { monotonic: Duration::from_secs(second), wall: WallTime(0) };
            evaluations.repeated_for(&evaluated.collect(), now).as_secs()
        };
        assert_eq!(repeated(0, Some(1_000.0), 1_000.0), 0);
        assert_eq!(repeated(30, Some(1_030.0), 1_030.0), 0);
        assert_eq!(repeated(60, Some(1_030.0), 1_060.0), 30, "one of two");
        assert_eq!(repeated(90, None, 1_090.0), 0, "it was not asked, or failed");
        assert_eq!(repeated(120, Some(1_030.0), 1_120.0), 90);
        assert_eq!(repeated(150, Some(1_031.0), 1_150.0), 0, "behind, and new");
        assert_eq!(repeated(180, Some(500.0), 1_180.0), 0, "its clock was set back");
    }
}
