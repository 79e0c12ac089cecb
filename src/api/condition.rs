//! Standard conditions: judged without times, merged with what is stored.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::text::bounded;
use crate::policy::moment::WallTime;

/// Longest message of a condition, in bytes. The API server allows 32 kB; the status of ten
/// thousand objects should not.
const MESSAGE_LIMIT: usize = 1024;

/// Status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// Holds.
    True,
    /// Does not hold.
    False,
    /// Cannot be told.
    Unknown,
}

impl Truth {
    /// The text that Kubernetes stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// One condition as it is judged now, before it meets what is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The type, such as `TargetResolved`.
    pub kind: &'static str,
    /// Whether it holds.
    pub status: Truth,
    /// One word in CamelCase.
    pub reason: &'static str,
    /// The reason in words; cut at 1 kB.
    pub message: String,
}

/// The conditions to store: one for each judgement, in the order given.
///
/// `lastTransitionTime` moves only when the status differs from the stored one. Conditions of
/// other types are not carried over: whoever wrote them keeps them.
pub fn merge(
    stored: &[Condition],
    judged: &[Judgement],
    generation: i64,
    now: WallTime,
) -> Vec<Condition> {
    judged
        .iter()
        .map(|judgement| {
            let since = stored
                .iter()
                .find(|condition| condition.type_ == judgement.kind)
                .filter(|condition| condition.status == judgement.status.as_str())
                .map_or_else(
                    || time(now),
                    |condition| condition.last_transition_time.clone(),
                );
            Condition {
                type_: judgement.kind.to_owned(),
                status: judgement.status.as_str().to_owned(),
                reason: judgement.reason.to_owned(),
                message: bounded(&judgement.message, MESSAGE_LIMIT),
                observed_generation: Some(generation),
                last_transition_time: since,
            }
        })
        .collect()
}

/// Whether storing `merged` over `stored` would change the status or reason of a condition, or add
/// one. Messages and generations alone do not count: they are refreshed with the next real change.
pub fn differ(stored: &[Condition], merged: &[Condition]) -> bool {
    merged.iter().any(|new| {
        !stored.iter().any(|old| {
            old.type_ == new.type_ && old.status == new.status && old.reason == new.reason
        })
    })
}

/// A wall-clock time as Kubernetes stores it, whole seconds. Times beyond what a calendar can hold
/// become its end.
pub fn time(at: WallTime) -> Time {
    let fallback = if at.0 < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    Time(Timestamp::from_second(at.0.div_euclid(1000)).unwrap_or(fallback))
}

#[cfg(test)]
mod tests {
    use super::{Judgement, Truth, differ, merge, time};
    use crate::policy::moment::WallTime;

    fn resolved(status: Truth, reason: &'static str, message: &str) -> Judgement {
        Judgement {
            kind: "TargetResolved",
            status,
            reason,
            message: message.to_owned(),
        }
    }

    #[test]
    fn transition_time_moves_with_the_status_only() {
        let (early, later, latest) = (WallTime(1_000), WallTime(60_000), WallTime(90_000));
        let first = merge(
            &[],
            &[resolved(Truth::False, "TargetNotFound", "a")],
            1,
            early,
        );
        assert_eq!(first[0].last_transition_time, time(early));

        let same = merge(
            &first,
            &[resolved(Truth::False, "TargetNotFound", "b")],
            2,
            later,
        );
        assert_eq!(same[0].last_transition_time, time(early));
        assert_eq!(same[0].message, "b");
        assert_eq!(same[0].observed_generation, Some(2));

        let changed = merge(
            &same,
            &[resolved(Truth::True, "TargetFound", "c")],
            2,
            latest,
        );
        assert_eq!(changed[0].last_transition_time, time(latest));
    }

    #[test]
    fn only_a_status_or_reason_makes_a_difference() {
        let now = WallTime(0);
        let stored = merge(
            &[],
            &[resolved(Truth::False, "TargetNotFound", "a")],
            1,
            now,
        );
        for (judged, expected) in [
            (
                resolved(Truth::False, "TargetNotFound", "other words"),
                false,
            ),
            (resolved(Truth::False, "TargetContested", "a"), true),
            (resolved(Truth::True, "TargetNotFound", "a"), true),
        ] {
            let merged = merge(&stored, std::slice::from_ref(&judged), 2, now);
            assert_eq!(differ(&stored, &merged), expected, "{judged:?}");
        }
        assert!(differ(&[], &stored), "a condition that is not stored yet");
    }

    #[test]
    fn a_long_message_is_cut() {
        let merged = merge(
            &[],
            &[resolved(Truth::True, "TargetFound", &"ä".repeat(5_000))],
            1,
            WallTime(0),
        );
        assert!(merged[0].message.len() <= 1024);
        assert!(merged[0].message.ends_with("..."));
    }

    #[test]
    fn times_are_whole_seconds_and_never_out_of_range() {
        assert_eq!(time(WallTime(1_999)).0.as_second(), 1);
        assert_eq!(time(WallTime(i64::MAX)).0, jiff::Timestamp::MAX);
        assert_eq!(time(WallTime(i64::MIN)).0, jiff::Timestamp::MIN);
    }
}
