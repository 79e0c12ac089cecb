//! Standard conditions: judged without times by the policy, here merged with what is stored.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::text::bounded;
use crate::policy::condition::Condition as Judged;
use wva_base::moment::WallTime;

/// Longest message of a condition, in bytes. The API server allows 32 kB; the status of ten
/// thousand objects should not.
const MESSAGE_LIMIT: usize = 1024;

/// The conditions to store: one for each that was judged, in the order given.
///
/// `lastTransitionTime` moves only when the status differs from the stored one. Conditions of
/// other types are not carried over: their writer keeps them.
pub fn merge(
    stored: &[Condition],
    judged: &[Judged],
    generation: i64,
    now: WallTime,
) -> Vec<Condition> {
    judged
        .iter()
        .map(|new| {
            let since = stored
                .iter()
                .find(|old| old.type_ == new.kind.as_str() && old.status == new.status.as_str())
                .map_or_else(|| time(now), |old| old.last_transition_time.clone());
            Condition {
                type_: new.kind.as_str().to_owned(),
                status: new.status.as_str().to_owned(),
                reason: new.reason.as_str().to_owned(),
                message: bounded(&new.message, MESSAGE_LIMIT),
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

/// Whether a condition says the same as the stored one in other words.
pub fn reworded(stored: &[Condition], merged: &[Condition]) -> bool {
    merged
        .iter()
        .any(|new| stored.iter().any(|old| old.type_ == new.type_ && old.message != new.message))
}

/// A wall-clock time as Kubernetes stores it, whole seconds. Times beyond what a calendar can hold
/// become its end.
pub fn time(at: WallTime) -> Time {
    let fallback = if at.0 < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Time(Timestamp::from_second(at.0.div_euclid(1000)).unwrap_or(fallback))
}

#[cfg(test)]
mod tests {
    use super::{Judged, differ, merge, time};
    use crate::policy::condition::ConditionReason::{
        self, TargetContested, TargetFound, TargetNotFound,
    };
    use crate::policy::condition::ConditionStatus::{self, False, True};
    use crate::policy::condition::ConditionType;
    use wva_base::moment::WallTime;

    fn resolved(status: ConditionStatus, reason: ConditionReason, message: &str) -> Judged {
        Judged { kind: ConditionType::TargetResolved, status, reason, message: message.to_owned() }
    }

    #[test]
    fn transition_time_moves_with_the_status_only() {
        let (early, later, latest) = (WallTime(1_000), WallTime(60_000), WallTime(90_000));
        let first = merge(&[], &[resolved(False, TargetNotFound, "a")], 1, early);
        assert_eq!(first[0].last_transition_time, time(early));

        let same = merge(&first, &[resolved(False, TargetContested, "b")], 2, later);
        assert_eq!(same[0].last_transition_time, time(early));
        assert_eq!((&*same[0].reason, &*same[0].message), ("TargetContested", "b"));
        assert_eq!(same[0].observed_generation, Some(2));

        let changed = merge(&same, &[resolved(True, TargetFound, "c")], 2, latest);
        assert_eq!(changed[0].last_transition_time, time(latest));
    }

    #[test]
    fn only_a_status_or_reason_makes_a_difference() {
        let now = WallTime(0);
        let stored = merge(&[], &[resolved(False, TargetNotFound, "a")], 1, now);
        for (judged, expected) in [
            (resolved(False, TargetNotFound, "other words"), false),
            (resolved(False, TargetContested, "a"), true),
            (resolved(True, TargetNotFound, "a"), true),
        ] {
            let merged = merge(&stored, std::slice::from_ref(&judged), 2, now);
            assert_eq!(differ(&stored, &merged), expected, "{judged:?}");
        }
        assert!(differ(&[], &stored), "a condition that is not stored yet");
    }

    #[test]
    fn a_long_message_is_cut() {
        let long = resolved(True, TargetFound, &"ä".repeat(5_000));
        let merged = merge(&[], &[long], 1, WallTime(0));
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
