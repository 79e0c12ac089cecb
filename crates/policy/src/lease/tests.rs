use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::{
    LeaseMove, LeaseProposal, LeaseRecord, LeaseRules, LeaseState, ProposalKind, claim_end,
    next_look,
};
use wva_base::moment::{Moment, WallTime};

fn rules(identity: &str) -> LeaseRules {
    LeaseRules {
        identity: Arc::from(identity),
        duration: Duration::from_mins(1),
        renew_deadline: Duration::from_secs(50),
        retry_period: Duration::from_secs(10),
    }
}

fn at(seconds: u64) -> Moment {
    Moment { monotonic: Duration::from_secs(seconds), wall: WallTime(0) }
}

fn record(holder: &str, version: &str, transitions: u32) -> LeaseRecord {
    LeaseRecord {
        holder: Arc::from(holder),
        duration: Duration::from_mins(1),
        transitions,
        acquired: Some(WallTime(7)),
        renewed: Some(WallTime(8)),
        version: Arc::from(version),
    }
}

fn replace(version: &str, kind: ProposalKind, transitions: u32) -> LeaseMove {
    LeaseMove::Replace {
        version: Arc::from(version),
        proposal: LeaseProposal { kind, transitions },
    }
}

/// Waiting for a record that was seen first at `since`, in seconds.
fn waiting(since: u64) -> LeaseMove {
    let free_at = Duration::from_secs(since) + rules("b").duration + Duration::from_nanos(1);
    LeaseMove::Wait { free_at }
}

#[test]
fn an_absent_record_is_created() {
    let proposal = LeaseProposal { kind: ProposalKind::Acquire, transitions: 0 };
    assert_eq!(
        LeaseState::default().observe(&rules("a"), None, at(0)),
        LeaseMove::Create(proposal)
    );
}

#[test]
fn another_holder_is_respected_until_its_record_stood_still_for_its_duration() {
    let mut state = LeaseState::default();
    // First seen at 100 s: however old the record says it is, the clock starts here.
    assert_eq!(state.observe(&rules("b"), Some(record("a", "1", 3)), at(100)), waiting(100));
    assert_eq!(state.observe(&rules("b"), Some(record("a", "1", 3)), at(160)), waiting(100));
    // It renews at 150 s: the wait begins anew.
    assert_eq!(state.observe(&rules("b"), Some(record("a", "2", 3)), at(161)), waiting(161));
    assert_eq!(state.observe(&rules("b"), Some(record("a", "2", 3)), at(221)), waiting(161));
    assert_eq!(
        state.observe(&rules("b"), Some(record("a", "2", 3)), at(222)),
        replace("2", ProposalKind::Acquire, 4)
    );
}

#[test]
fn a_released_record_is_taken_at_once_and_our_own_is_renewed() {
    let mut state = LeaseState::default();
    assert_eq!(
        state.observe(&rules("b"), Some(record("", "5", 1)), at(0)),
        replace("5", ProposalKind::Acquire, 2)
    );
    assert_eq!(
        state.observe(&rules("b"), Some(record("b", "6", 2)), at(10)),
        replace("6", ProposalKind::Renew { acquired: Some(WallTime(7)) }, 2,)
    );
    assert_eq!(state.seen.map(|seen| seen.record.holder).as_deref(), Some("b"));
}

#[test]
fn a_record_that_is_gone_binds_as_long_as_one_that_stands_still() {
    let create = LeaseMove::Create(LeaseProposal { kind: ProposalKind::Acquire, transitions: 0 });
    for (holder, gone_at, expected) in [
        // Deleted while its holder may write.
        ("a", 101, waiting(100)),
        ("a", 160, waiting(100)),
        ("a", 161, create.clone()),
        // No holder has it, or it was ours.
        ("", 101, create.clone()),
        ("b", 101, create.clone()),
    ] {
        let mut state = LeaseState::default();
        state.observe(&rules("b"), Some(record(holder, "1", 3)), at(100));
        let found = state.observe(&rules("b"), None, at(gone_at));
        assert_eq!(found, expected, "held by {holder:?}, gone at {gone_at} s");
    }
    // Its holder makes it anew, and is respected like before.
    let mut state = LeaseState::default();
    state.observe(&rules("b"), Some(record("a", "1", 3)), at(100));
    assert_eq!(state.observe(&rules("b"), None, at(110)), waiting(100));
    let anew = Some(record("a", "7", 0));
    assert_eq!(state.observe(&rules("b"), anew, at(120)), waiting(120));
}

#[test]
fn the_holder_falls_silent_before_anybody_else_may_begin() {
    // Sent at 0, applied and seen by the other at the same instant at the earliest.
    let end = claim_end(&rules("a"), at(0));
    let mut other = LeaseState::default();
    assert_eq!(other.observe(&rules("b"), Some(record("a", "1", 0)), at(0)), waiting(0));
    let last_moment = Moment { monotonic: end, wall: WallTime(0) };
    assert_eq!(other.observe(&rules("b"), Some(record("a", "1", 0)), last_moment), waiting(0));
}

#[test]
fn what_was_sent_and_never_answered_is_ours_once_it_is_read() {
    let sent = |seconds: u64, wall: i64| Moment {
        monotonic: Duration::from_secs(seconds),
        wall: WallTime(wall),
    };
    let stored = |holder: &str, wall: i64| LeaseRecord {
        renewed: Some(WallTime(wall)),
        ..record(holder, "9", 0)
    };
    let a = rules("a");
    let mut state = LeaseState::default();
    assert_eq!(state.confirmed(&a, &stored("a", 100)), None, "nothing sent");
    state.doubt(&a, sent(10, 100));
    state.doubt(&a, sent(20, 200));
    let until = |seconds: u64| Some(Duration::from_secs(seconds));
    assert_eq!(state.confirmed(&a, &stored("a", 100)), until(60));
    assert_eq!(state.confirmed(&a, &stored("a", 200)), until(70));
    // What it was before, and what another writer sent in the same millisecond.
    assert_eq!(state.confirmed(&a, &stored("a", 99)), None);
    assert_eq!(state.confirmed(&a, &stored("b", 200)), None);
    // A clock that goes back gives two of them one time: the earlier one binds for less.
    state.doubt(&a, sent(30, 200));
    assert_eq!(state.confirmed(&a, &stored("a", 200)), until(70));
    // Of what can confirm nothing any more nothing is kept.
    state.doubt(&a, sent(60, 600));
    assert_eq!(state.confirmed(&a, &stored("a", 100)), None);
    assert_eq!(state.confirmed(&a, &stored("a", 600)), until(110));
}

#[test]
fn a_look_comes_when_the_record_is_free_and_a_retry_later_at_the_latest() {
    let seconds = Duration::from_secs;
    for (free_at, expected) in [(None, 20), (Some(15), 15), (Some(25), 20)] {
        assert_eq!(
            next_look(seconds(10), at(10), free_at.map(seconds)),
            seconds(expected),
            "{free_at:?}"
        );
    }
}

/// A follower whose looks begin at `first`, before a holder that renews at `died` and never again;
/// `draws` are the times of its reads, and what its retry periods are shortened by, in thousandths of
/// the most. Answers when it sends the request that takes over, all in milliseconds.
fn taken_over(first: u64, died: u64, draws: &[(u64, u64)]) -> u64 {
    let rules = rules("b");
    let retry = u64::try_from(rules.retry_period.as_millis()).unwrap();
    let mut state = LeaseState::default();
    let mut began = first;
    for (read, early) in draws.iter().cycle() {
        // The server answers what it holds when the read begins: no record is seen later.
        let version = if began < died { "1" } else { "2" };
        let answered = moment(began + retry / 2 * read / 1000);
        let record = Some(record("a", version, 0));
        match state.observe(&rules, record, answered) {
            LeaseMove::Wait { free_at } => {
                let retry = Duration::from_millis(retry - retry / 5 * early / 1000);
                let next = next_look(retry, moment(began), Some(free_at)).max(answered.monotonic);
                // A timer has a resolution of a millisecond, and is never early.
                began = u64::try_from(next.as_nanos().div_ceil(1_000_000)).unwrap();
            }
            LeaseMove::Replace { .. } => {
                return u64::try_from(answered.monotonic.as_millis()).unwrap();
            }
            LeaseMove::Create(_) => panic!("there is a record"),
        }
    }
    unreachable!("a cycle does not end")
}

fn moment(millis: u64) -> Moment {
    Moment { monotonic: Duration::from_millis(millis), wall: WallTime(0) }
}

proptest! {
    #[test]
    fn a_takeover_comes_within_the_bound_and_never_early(
        first in 0_u64..20_000,
        died in 20_000_u64..40_000,
        draws in prop::collection::vec((0_u64..=1000, 0_u64..=1000), 1..20),
    ) {
        let waited = taken_over(first, died, &draws) - died;
        let rules = rules("b");
        let bound = rules.duration + 2 * rules.retry_period + Duration::from_millis(2);
        prop_assert!(Duration::from_millis(waited) <= bound, "{waited} ms");
        prop_assert!(Duration::from_millis(waited) >= rules.duration, "{waited} ms");
    }
}
