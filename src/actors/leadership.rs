//! Publishes the right to write: for ever without leader election, else as long as the lease is
//! renewed.

use std::sync::Arc;
use std::time::Duration;

use crate::actors::emitter::EmitterMessage;
use crate::actors::mailboxes::Mailboxes;
use crate::actors::optimizer::OptimizerMessage;
use crate::actors::status_writer::StatusWriterMessage;
use crate::cluster::lease::{LeaseApi, LeaseError};
use crate::hooks::ControllerHooks;
use crate::policy::lease::{
    LeaseMove, LeaseProposal, LeaseRules, LeaseState, ProposalKind, claim_end, next_look,
};
use crate::state::LeadershipWriters;
use crate::state::claim::{Claim, ClaimDuration, ClaimReader};
use crate::state::mirrors::Mirrors;
use crate::state::permission_reporter::PermissionReporter;
use wva_supervise::{Actor, ActorResult, Context, Event, Fenced, Generator};

/// Retry periods are shortened by up to this share, so that several replicas do not ask in step.
const SPREAD: f64 = 0.2;
/// Without a lease, until it is seen whether the variants are listed.
const LISTING: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(crate) enum LeadershipMessage {
    /// To itself: time to look at the lease.
    Renew,
}

/// How the right to write is come by.
#[derive(Debug, Clone)]
pub(crate) enum Election {
    /// `LEADER_ELECT=false`: a claim without end, once it is known which objects are variants.
    Off,
    On {
        /// How to take part.
        rules: LeaseRules,
        api: Box<LeaseApi>,
    },
}

#[derive(Debug)]
struct Look {
    /// How long the claim holds, if it is ours.
    hold: ClaimDuration,
    /// When the lease is free, if another instance holds it and it stays as it is.
    free_at: Option<Duration>,
    /// Why it was not renewed, although it is ours by a renewal before.
    trouble: Option<LeaseError>,
}

#[derive(Debug, Clone)]
pub(crate) struct Leadership {
    claim: ClaimReader,
    mirrors: Mirrors,
    writers: Arc<LeadershipWriters>,
    permissions: PermissionReporter,
    election: Election,
    state: LeaseState,
    /// The number of the reading that was asked for since the lease is ours.
    reading: Option<u64>,
    mailboxes: Arc<Mailboxes>,
    generator: Generator,
    hooks: Arc<dyn ControllerHooks>,
}

impl Leadership {
    pub(crate) fn new(
        writers: Arc<LeadershipWriters>,
        mirrors: Mirrors,
        permissions: PermissionReporter,
        election: Election,
        mailboxes: Arc<Mailboxes>,
        generator: Generator,
        hooks: Arc<dyn ControllerHooks>,
    ) -> Self {
        Self {
            claim: ClaimReader::of(&writers.claim),
            mirrors,
            writers,
            permissions,
            election,
            state: LeaseState::default(),
            reading: None,
            mailboxes,
            generator,
            hooks,
        }
    }

    async fn contend(
        state: &mut LeaseState,
        cx: &Context<LeadershipMessage>,
        hooks: &dyn ControllerHooks,
        rules: &LeaseRules,
        api: &LeaseApi,
    ) -> Result<Look, LeaseError> {
        let record = api.read().await?;
        let version = record.as_ref().map(|record| Arc::clone(&record.version));
        let read = record.as_ref();
        let confirmed = read.and_then(|record| state.confirmed(rules, record));
        let is_taken = read.is_some_and(|record| hooks.takes_lease(record, cx.now().wall));
        let mut lease_move = state.observe(rules, record, cx.now());
        if let (LeaseMove::Wait { .. }, Some(version)) = (&lease_move, version)
            && is_taken
        {
            let (kind, transitions) = (ProposalKind::Acquire, 0);
            let proposal = LeaseProposal { kind, transitions };
            lease_move = LeaseMove::Replace { version, proposal };
        }
        if let LeaseMove::Wait { free_at } = lease_move {
            return Ok(Look {
                hold: ClaimDuration::NotOurs,
                free_at: Some(free_at),
                trouble: None,
            });
        }
        let sent = cx.now();
        if let Err(error) = api.carry_out(rules, &lease_move, sent.wall).await {
            state.doubt(rules, sent);
            return match confirmed.filter(|end| *end > cx.now().monotonic) {
                Some(end) => Ok(Look {
                    hold: ClaimDuration::Until(end),
                    free_at: None,
                    trouble: Some(error),
                }),
                None => Err(error),
            };
        }
        let end = hooks.claim_end(claim_end(rules, sent), rules.duration);
        Ok(Look { hold: ClaimDuration::Until(end), free_at: None, trouble: None })
    }

    /// Whether the claim may be published. A new leader reads first what its predecessor stored last:
    /// a watch may be behind that, and what is shown would fall back. While the
    /// objects cannot be read, no replica leads, and the lease is kept. Scalers that declare no variant, since annotations are not taken or
    /// their kind may not be listed, are not waited for.
    async fn is_up_to_date(
        &mut self,
        cx: &Context<LeadershipMessage>,
        hold: ClaimDuration,
        patience: Duration,
    ) -> bool {
        let leads_on = self.claim.may_write(cx.now());
        if hold == ClaimDuration::NotOurs || leads_on || self.hooks.leads_without_reading() {
            self.reading = None;
            return true;
        }
        let number = *self.reading.get_or_insert_with(|| self.writers.relists.asked() + 1);
        let mirrors = &self.mirrors;
        let needed = || {
            [
                true,
                !mirrors.is_dispensable(&mirrors.horizontal_pod_autoscalers),
                !mirrors.is_dispensable(&mirrors.scaled_objects),
            ]
        };
        let relists = &self.writers.relists;
        let read = relists.ask(number, patience, needed()).await;
        let mut all = read.into_iter().zip(needed());
        let is_read = all.all(|(is_read, is_needed)| is_read || !is_needed);
        if !is_read {
            tracing::warn!(
                "leads only once VariantAutoscalings and annotated scalers are listed, which has taken longer than {patience:?}"
            );
        }
        is_read
    }

    fn publish(&self, cx: &Context<LeadershipMessage>, hold: ClaimDuration) -> ActorResult {
        let current = self.claim.load();
        if current.hold == hold {
            return Ok(());
        }
        let gained = hold != ClaimDuration::NotOurs;
        let changed_hands = self.claim.may_write(cx.now()) != gained;
        let term = current.term + u64::from(changed_hands);
        self.write(cx, Claim { term, hold })?;
        if changed_hands {
            tracing::info!(term, leading = gained, "right to write changed hands");
            // All of them also ask the claim before they write, and read it when they come.
            let addresses = &self.mailboxes.addresses;
            addresses.emitter.hint(EmitterMessage::ClaimChanged);
            addresses.optimizer.hint(OptimizerMessage::ClaimChanged);
            addresses.status_writer.hint(StatusWriterMessage::Work);
        }
        Ok(())
    }

    fn write(&self, cx: &Context<LeadershipMessage>, claim: Claim) -> Result<(), Fenced> {
        self.writers.claim.publish(cx.epoch(), Arc::new(claim))
    }

    fn failed(&self, error: &LeaseError) {
        self.writers.requests.failed(&error.to_string());
        tracing::warn!(%error, "lease not renewed");
        if error.is_forbidden() {
            self.permissions.report("Lead", error);
        }
    }

    /// A claim that ran out by the clock has changed hands without anybody publishing it.
    fn notice_expiry(&self, cx: &Context<LeadershipMessage>) -> ActorResult {
        if matches!(self.claim.load().hold, ClaimDuration::Until(_))
            && !self.claim.may_write(cx.now())
        {
            let ended = Claim { term: self.claim.term() + 1, hold: ClaimDuration::NotOurs };
            self.write(cx, ended)?;
            tracing::warn!("right to write ran out: the lease could not be renewed in time");
            let emitter = &self.mailboxes.addresses.emitter;
            emitter.hint(EmitterMessage::ClaimChanged);
        }
        Ok(())
    }
}

impl Actor for Leadership {
    type Msg = LeadershipMessage;

    async fn handle(&mut self, cx: &Context<Self::Msg>, _event: Event<Self::Msg>) -> ActorResult {
        let (rules, api) = match &self.election {
            Election::Off if self.mirrors.knows_variants() => {
                return self.publish(cx, ClaimDuration::Unlimited);
            }
            Election::Off => {
                cx.arm(LISTING, LeadershipMessage::Renew);
                return Ok(());
            }
            Election::On { rules, api } => (rules.clone(), api.clone()),
        };
        self.notice_expiry(cx)?;
        let began = cx.now();
        let free_at = match Self::contend(&mut self.state, cx, &*self.hooks, &rules, &api).await {
            Ok(look) => {
                match look.trouble {
                    None => self.writers.requests.worked(),
                    Some(error) => self.failed(&error),
                }
                if self.is_up_to_date(cx, look.hold, rules.retry_period / 2).await {
                    self.publish(cx, look.hold)?;
                }
                look.free_at
            }
            // The claim runs out by itself, so a failure needs no further step. Another instance may lead meanwhile.
            Err(error) => {
                self.reading = None;
                self.failed(&error);
                None
            }
        };
        // Retry-After of the API server is not honoured here: a lease that is not renewed in time is lost, and the
        // next leader reads everything anew. The requests of a retry period are what every replica costs it at any
        // time, and they are no more while it refuses them.
        let retry_period = self.generator.shorten(rules.retry_period, SPREAD);
        let next = next_look(retry_period, began, free_at);
        let wait = next.saturating_sub(cx.now().monotonic);
        cx.arm(wait, LeadershipMessage::Renew);
        Ok(())
    }

    async fn retire(&mut self, cx: &Context<LeadershipMessage>) {
        let Election::On { rules, api } = &self.election else {
            return;
        };
        let ended = Claim { term: self.claim.term() + 1, hold: ClaimDuration::NotOurs };
        if self.write(cx, ended).is_ok()
            && !self.hooks.keeps_lease()
            && let Err(error) = api.release(rules, cx.now().wall).await
        {
            tracing::warn!(%error, "lease not released; others wait for its duration");
        }
    }
}

#[cfg(test)]
mod tests;
