//! The right to write: a value with an expiry, asked for again at every request.

use std::time::Duration;

use tokio::time::Instant;

use crate::cluster::permit::WritePermit;
use wva_base::moment::Moment;
use wva_supervise::{CellFollower, Reader, Writer};

/// How far ahead a permit reaches whose claim has no end.
const UNLIMITED: Duration = Duration::from_hours(1);

/// What leadership knows about the right to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Grows with every change of hands that this process sees.
    pub term: u64,
    /// How long this process may write.
    pub hold: ClaimDuration,
}

impl Claim {
    /// Before the first look at the lease.
    pub const NONE: Self = Self { term: 0, hold: ClaimDuration::NotOurs };
}

/// How long a claim lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimDuration {
    /// Of another instance, or of none.
    NotOurs,
    /// Ours until this time on the monotonic clock.
    Until(Duration),
    /// Ours: leader election is off.
    Unlimited,
}

impl ClaimDuration {
    /// Whether it lasts at `now`.
    pub fn covers(self, now: Moment) -> bool {
        match self {
            Self::NotOurs => false,
            Self::Until(end) => now.monotonic < end,
            Self::Unlimited => true,
        }
    }
}

/// The claim, for everybody to read.
#[derive(Debug, Clone)]
pub struct ClaimReader(Reader<Claim>);

impl ClaimReader {
    /// Reads what this writes.
    pub fn of(writer: &Writer<Claim>) -> Self {
        Self(writer.reader())
    }

    /// Whether this process may write at `now`.
    pub fn may_write(&self, now: Moment) -> bool {
        self.0.load().hold.covers(now)
    }

    /// The current term.
    pub fn term(&self) -> u64 {
        self.0.load().term
    }

    /// `None` unless the claim outlives a request of this length.
    pub fn permit(&self, now: Moment, request_timeout: Duration) -> Option<WritePermit> {
        let claim = self.0.load();
        let left = match claim.hold {
            ClaimDuration::NotOurs => return None,
            ClaimDuration::Until(end) => end.checked_sub(now.monotonic)?,
            ClaimDuration::Unlimited => UNLIMITED,
        };
        (left > request_timeout).then(|| WritePermit::new(claim.term, Instant::now() + left))
    }

    /// The right to publish events about this process itself.
    pub fn permit_about_itself(&self) -> WritePermit {
        WritePermit::new(self.term(), Instant::now() + UNLIMITED)
    }

    /// Follows the claim; that it runs out is shown by the clock alone.
    pub fn follow(&self) -> CellFollower<Claim> {
        self.0.follow()
    }

    /// The claim as it stands.
    pub fn load(&self) -> Claim {
        *self.0.load()
    }
}
