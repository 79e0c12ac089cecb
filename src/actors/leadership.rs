//! Publishes the right to write: for ever without leader election, else as long as the lease is
//! renewed.

use crate::actors::writes::{Writer, Writes};
use crate::actors::{emitter, optimizer, status_writer};
use crate::claim::{Claim, ClaimReader, Hold};
use crate::cluster::lease::{LeaseApi, LeaseError};
use crate::env::Generator;
use crate::kit::{Address, Behaviour, Context, Occasion, Trouble};
use crate::policy::lease::{LeaseMove, LeaseRules, LeaseState, claim_end};

/// Messages of leadership.
#[derive(Debug)]
pub enum Message {
    /// To itself: time to look at the lease.
    Renew,
}

/// Those who must know at once when the claim changes hands. All of them also ask the claim itself
/// before they write.
#[derive(Debug, Clone)]
pub struct Listeners {
    /// Plans at once on gaining the claim.
    pub optimizer: Address<optimizer::Message>,
    /// Shows and removes series.
    pub emitter: Address<emitter::Message>,
    /// Drops what was intended under another term.
    pub status_writer: Address<status_writer::Message>,
}

/// How the right to write is come by.
#[derive(Debug, Clone)]
pub enum Election {
    /// `LEADER_ELECT=false`: a claim without end.
    Off,
    /// By a lease.
    On {
        /// How to take part.
        rules: LeaseRules,
        /// The lease.
        api: Box<LeaseApi>,
    },
}

/// The pump behind the role.
#[derive(Debug)]
pub struct Leadership {
    claim: ClaimReader,
    writes: Writes,
    election: Election,
    state: LeaseState,
    listeners: Listeners,
    generator: Generator,
}

impl Leadership {
    /// A new life of the role.
    pub fn new(
        claim: ClaimReader,
        writes: Writes,
        election: Election,
        listeners: Listeners,
        generator: Generator,
    ) -> Self {
        Self {
            claim,
            writes,
            election,
            state: LeaseState::default(),
            listeners,
            generator,
        }
    }

    /// One look at the lease: how long the claim holds after it, if it is ours.
    async fn contend(
        state: &mut LeaseState,
        cx: &Context<Message>,
        rules: &LeaseRules,
        api: &LeaseApi,
    ) -> Result<Hold, LeaseError> {
        let record = api.read().await?;
        let lease_move = state.observe(rules, record, cx.now());
        if lease_move == LeaseMove::Wait {
            return Ok(Hold::NotOurs);
        }
        let sent = cx.now();
        api.carry_out(rules, &lease_move, sent.wall).await?;
        Ok(Hold::Until(claim_end(rules, sent)))
    }

    fn publish(&self, cx: &Context<Message>, hold: Hold) -> Result<(), Trouble> {
        let current = self.claim.load();
        if current.hold == hold {
            return Ok(());
        }
        let gained = hold != Hold::NotOurs;
        let changed_hands = self.claim.may_write(cx.now()) != gained;
        let term = current.term + u64::from(changed_hands);
        self.claim.publish(cx.tenure(), Claim { term, hold })?;
        if changed_hands {
            tracing::info!(term, leading = gained, "right to write changed hands");
            // A listener that is not there reads the claim when it comes.
            self.listeners.emitter.hint(emitter::Message::ClaimChanged);
            self.listeners
                .optimizer
                .hint(optimizer::Message::ClaimChanged);
            self.listeners
                .status_writer
                .hint(status_writer::Message::Work);
        }
        Ok(())
    }

    /// A claim that ran out by the clock has changed hands without anybody publishing it.
    fn notice_expiry(&self, cx: &Context<Message>) -> Result<(), Trouble> {
        if matches!(self.claim.load().hold, Hold::Until(_)) && !self.claim.may_write(cx.now()) {
            self.claim.publish(
                cx.tenure(),
                Claim {
                    term: self.claim.term() + 1,
                    hold: Hold::NotOurs,
                },
            )?;
            tracing::warn!("right to write ran out: the lease could not be renewed in time");
            self.listeners.emitter.hint(emitter::Message::ClaimChanged);
        }
        Ok(())
    }
}

impl Behaviour for Leadership {
    type Msg = Message;

    async fn handle(
        &mut self,
        cx: &Context<Message>,
        _occasion: Occasion<Message>,
    ) -> Result<(), Trouble> {
        let (rules, api) = match &self.election {
            Election::Off => return self.publish(cx, Hold::Unlimited),
            Election::On { rules, api } => (rules.clone(), api.clone()),
        };
        self.notice_expiry(cx)?;
        match Self::contend(&mut self.state, cx, &rules, &api).await {
            Ok(hold) => {
                self.writes.worked(Writer::Lease);
                self.publish(cx, hold)?;
            }
            // The claim runs out by itself, so a failure needs no further step.
            Err(error) => {
                self.writes.failed(Writer::Lease, &error.to_string());
                tracing::warn!(%error, "lease not renewed");
            }
        }
        cx.arm(
            self.generator.jitter(rules.retry_period, 0.1),
            Message::Renew,
        );
        Ok(())
    }

    async fn retire(&mut self, cx: &Context<Message>) {
        let Election::On { rules, api } = &self.election else {
            return;
        };
        let ended = Claim {
            term: self.claim.term() + 1,
            hold: Hold::NotOurs,
        };
        if self.claim.publish(cx.tenure(), ended).is_ok()
            && let Err(error) = api.release(rules, cx.now().wall).await
        {
            tracing::warn!(%error, "lease not released; others wait for its duration");
        }
    }
}
