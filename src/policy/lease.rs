//! Leader election as a pure state machine, by the rule of client-go: the clock of another machine
//! is never believed. We note when *we* saw the record change; one that has been still for its own
//! duration is free.

use std::sync::Arc;
use std::time::Duration;

use super::moment::Moment;

/// How this process takes part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRules {
    /// Unique name of this process.
    pub identity: Arc<str>,
    /// How long a record that stands still keeps others out.
    pub duration: Duration,
    /// How long a claim lasts after the request that renewed it was sent. Shorter than `duration`:
    /// the holder must fall silent before anybody else may begin.
    pub renew_deadline: Duration,
    /// Time between attempts.
    pub retry_period: Duration,
}

/// What a lease object says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Identity of the holder; empty when released.
    pub holder: Arc<str>,
    /// How long it keeps others out.
    pub duration: Duration,
    /// How often it changed hands.
    pub transitions: u32,
    /// Version of the object, for a full replacement that fails if anybody else was faster.
    pub version: Arc<str>,
}

/// What to write, if anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseMove {
    /// There is no record: create one.
    Create(Proposal),
    /// Replace the record that has this version.
    Replace {
        /// Version that must still be the newest.
        version: Arc<str>,
        /// What to write.
        proposal: Proposal,
    },
    /// Somebody else holds it.
    Wait,
}

/// A record to be written by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proposal {
    /// Whether the record changes hands by this.
    pub kind: ProposalKind,
    /// How often it will have changed hands.
    pub transitions: u32,
}

/// Whether a proposal takes or keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProposalKind {
    /// The record was somebody else's, or nobody's.
    Acquire,
    /// The record is ours.
    Renew,
}

/// What this process has seen of the record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaseState {
    seen: Option<Seen>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    record: LeaseRecord,
    /// Monotonic time at which we saw this version first.
    since: Duration,
}

impl LeaseState {
    /// Takes in what was read and says what to write.
    pub fn observe(
        &mut self,
        rules: &LeaseRules,
        record: Option<LeaseRecord>,
        now: Moment,
    ) -> LeaseMove {
        let Some(record) = record else {
            self.seen = None;
            return LeaseMove::Create(Proposal {
                kind: ProposalKind::Acquire,
                transitions: 0,
            });
        };
        let known = self
            .seen
            .as_ref()
            .is_some_and(|seen| seen.record.version == record.version);
        if !known {
            self.seen = Some(Seen {
                record: record.clone(),
                since: now.monotonic,
            });
        }
        let still_for = self.seen.as_ref().map_or(Duration::ZERO, |seen| {
            now.monotonic.saturating_sub(seen.since)
        });
        let version = Arc::clone(&record.version);
        if record.holder == rules.identity {
            let proposal = Proposal {
                kind: ProposalKind::Renew,
                transitions: record.transitions,
            };
            LeaseMove::Replace { version, proposal }
        } else if record.holder.is_empty() || still_for > record.duration {
            let transitions = record.transitions.saturating_add(1);
            LeaseMove::Replace {
                version,
                proposal: Proposal {
                    kind: ProposalKind::Acquire,
                    transitions,
                },
            }
        } else {
            LeaseMove::Wait
        }
    }

    /// Who holds the record, as far as we know.
    pub fn holder(&self) -> Option<&str> {
        self.seen.as_ref().map(|seen| &*seen.record.holder)
    }
}

/// Until when a claim lasts that was written by a request sent at `sent`. Counted from the sending:
/// others count from the moment they see the record, which is never earlier.
pub fn claim_end(rules: &LeaseRules, sent: Moment) -> Duration {
    sent.monotonic + rules.renew_deadline
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::{
        LeaseMove, LeaseRecord, LeaseRules, LeaseState, Proposal, ProposalKind, claim_end,
    };
    use crate::policy::moment::{Moment, WallTime};

    fn rules(identity: &str) -> LeaseRules {
        LeaseRules {
            identity: Arc::from(identity),
            duration: Duration::from_mins(1),
            renew_deadline: Duration::from_secs(50),
            retry_period: Duration::from_secs(10),
        }
    }

    fn at(seconds: u64) -> Moment {
        Moment {
            monotonic: Duration::from_secs(seconds),
            wall: WallTime(0),
        }
    }

    fn record(holder: &str, version: &str, transitions: u32) -> LeaseRecord {
        LeaseRecord {
            holder: Arc::from(holder),
            duration: Duration::from_mins(1),
            transitions,
            version: Arc::from(version),
        }
    }

    fn replace(version: &str, kind: ProposalKind, transitions: u32) -> LeaseMove {
        LeaseMove::Replace {
            version: Arc::from(version),
            proposal: Proposal { kind, transitions },
        }
    }

    #[test]
    fn an_absent_record_is_created() {
        let proposal = Proposal {
            kind: ProposalKind::Acquire,
            transitions: 0,
        };
        assert_eq!(
            LeaseState::default().observe(&rules("a"), None, at(0)),
            LeaseMove::Create(proposal)
        );
    }

    #[test]
    fn another_holder_is_respected_until_its_record_stood_still_for_its_duration() {
        let mut state = LeaseState::default();
        // First seen at 100 s: however old the record says it is, the clock starts here.
        assert_eq!(
            state.observe(&rules("b"), Some(record("a", "1", 3)), at(100)),
            LeaseMove::Wait
        );
        assert_eq!(
            state.observe(&rules("b"), Some(record("a", "1", 3)), at(160)),
            LeaseMove::Wait
        );
        // It renews at 150 s: the wait begins anew.
        assert_eq!(
            state.observe(&rules("b"), Some(record("a", "2", 3)), at(161)),
            LeaseMove::Wait
        );
        assert_eq!(
            state.observe(&rules("b"), Some(record("a", "2", 3)), at(221)),
            LeaseMove::Wait
        );
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
            replace("6", ProposalKind::Renew, 2)
        );
        assert_eq!(state.holder(), Some("b"));
    }

    #[test]
    fn the_holder_falls_silent_before_anybody_else_may_begin() {
        // Sent at 0, applied and seen by the other at the same instant at the earliest.
        let end = claim_end(&rules("a"), at(0));
        let mut other = LeaseState::default();
        assert_eq!(
            other.observe(&rules("b"), Some(record("a", "1", 0)), at(0)),
            LeaseMove::Wait
        );
        let last_moment = Moment {
            monotonic: end,
            wall: WallTime(0),
        };
        assert_eq!(
            other.observe(&rules("b"), Some(record("a", "1", 0)), last_moment),
            LeaseMove::Wait
        );
    }
}
