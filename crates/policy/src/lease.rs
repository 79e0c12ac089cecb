//! Leader election as a pure state machine, by the rule of client-go: the clock of another machine
//! is never believed. We note when *we* saw the record change; one that has been still for its own
//! duration is free.

use std::sync::Arc;
use std::time::Duration;

use wva_base::moment::{Moment, WallTime};

/// A record is free once it has stood still for longer than its duration.
const JUST_AFTER: Duration = Duration::from_nanos(1);

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
    /// When it changed hands last, by the clock of its holder.
    pub acquired: Option<WallTime>,
    /// When it was written last, by the clock of its writer.
    pub renewed: Option<WallTime>,
    /// Version of the object, for a full replacement that fails if anybody else was faster.
    pub version: Arc<str>,
}

/// What to write, if anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseMove {
    /// There is no record: create one.
    Create(LeaseProposal),
    /// Replace the record that has this version.
    Replace {
        /// Version that must still be the newest.
        version: Arc<str>,
        /// What to write.
        proposal: LeaseProposal,
    },
    /// Another holder has it.
    Wait {
        /// Until this monotonic time, if it stays as it is.
        free_at: Duration,
    },
}

/// A record to be written by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseProposal {
    /// Whether the record changes hands by this.
    pub kind: ProposalKind,
    /// How often it will have changed hands.
    pub transitions: u32,
}

/// Whether a proposal takes or keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProposalKind {
    /// The record was of another holder, or of none.
    Acquire,
    /// The record is ours.
    Renew {
        /// Since when.
        acquired: Option<WallTime>,
    },
}

/// What this process has seen of the record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaseState {
    seen: Option<Seen>,
    /// When records were sent whose storage was not confirmed.
    doubted: Vec<Moment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    record: LeaseRecord,
    /// Monotonic time at which we saw this version first.
    since: Duration,
}

impl Seen {
    /// From when on others may take the record, if it stays as it is.
    fn free_at(&self) -> Duration {
        self.since + self.record.duration + JUST_AFTER
    }
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
            return self.observe_nothing(rules, now);
        };
        let known = self.seen.take();
        let seen = known.filter(|seen| seen.record.version == record.version);
        let seen = seen.unwrap_or_else(|| Seen { record: record.clone(), since: now.monotonic });
        let free_at = seen.free_at();
        self.seen = Some(seen);
        let version = Arc::clone(&record.version);
        if record.holder == rules.identity {
            let proposal = LeaseProposal {
                kind: ProposalKind::Renew { acquired: record.acquired },
                transitions: record.transitions,
            };
            LeaseMove::Replace { version, proposal }
        } else if record.holder.is_empty() || now.monotonic >= free_at {
            let transitions = record.transitions.saturating_add(1);
            LeaseMove::Replace {
                version,
                proposal: LeaseProposal { kind: ProposalKind::Acquire, transitions },
            }
        } else {
            LeaseMove::Wait { free_at }
        }
    }

    /// A record that was deleted, or is not part of a restored backup, binds as long as if it stood
    /// still: its holder may write until then, and makes it anew at its next look.
    fn observe_nothing(&mut self, rules: &LeaseRules, now: Moment) -> LeaseMove {
        let bound = self.seen.as_ref().filter(|seen| {
            let holder = &seen.record.holder;
            !holder.is_empty() && *holder != rules.identity && now.monotonic < seen.free_at()
        });
        if let Some(seen) = bound {
            return LeaseMove::Wait { free_at: seen.free_at() };
        }
        self.seen = None;
        LeaseMove::Create(LeaseProposal { kind: ProposalKind::Acquire, transitions: 0 })
    }

    /// Takes note that a record was sent, and that it may have been stored or not.
    pub fn doubt(&mut self, rules: &LeaseRules, sent: Moment) {
        // What would confirm no claim any more need not be known.
        let lasts = |doubted: &Moment| claim_end(rules, *doubted) > sent.monotonic;
        self.doubted.retain(lasts);
        self.doubted.push(sent);
    }

    /// Until when we hold the record by what was read: it is ours, as we sent it without an answer. As
    /// safe as an answer, since others count from the same record, which was stored after it was sent.
    pub fn confirmed(&self, rules: &LeaseRules, record: &LeaseRecord) -> Option<Duration> {
        let is_ours = record.holder == rules.identity;
        let mut doubted = self.doubted.iter().filter(|_| is_ours);
        let sent = doubted.find(|sent| record.renewed == Some(sent.wall))?;
        Some(claim_end(rules, *sent))
    }
}

/// When to look again, after a look that began at `began`: a retry period later, or as soon as the
/// record that is waited for is free. With requests that take half a retry period at most, a record is
/// taken over within its duration, two retry periods and the request that takes it: a period and a
/// read until its last version is seen, a read after its end.
pub fn next_look(retry_period: Duration, began: Moment, free_at: Option<Duration>) -> Duration {
    let regular = began.monotonic + retry_period;
    free_at.map_or(regular, |free_at| free_at.min(regular))
}

/// Until when a claim lasts that was written by a request sent at `sent`. Counted from the sending:
/// others count from the moment they see the record, which is never earlier.
pub fn claim_end(rules: &LeaseRules, sent: Moment) -> Duration {
    sent.monotonic + rules.renew_deadline
}

#[cfg(test)]
mod tests;
