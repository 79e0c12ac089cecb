//! Writes the status of VariantAutoscalings: only what differs, at most eight at once.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use crate::actors::emitter::Settled;
use crate::actors::facts::Facts;
use crate::actors::intents::{Intent, Intents};
use crate::actors::status;
use crate::cluster::status::{StatusApi, StatusError, Written, apply_status};
use crate::env::Generator;
use crate::kit::{Behaviour, Context, Doorbell, Occasion, Trouble};
use crate::policy::backoff::Backoff;
use crate::policy::key::VariantKey;
use crate::policy::moment::Moment;
use crate::policy::units::Replicas;

/// Writes in flight.
const IN_FLIGHT: usize = 8;
/// Delays between attempts at one object.
const RETRY: Backoff = Backoff {
    base: Duration::from_secs(1),
    cap: Duration::from_mins(1),
};
/// Delay after an object was found changed: the watch brings the new version.
const OUTDATED: Duration = Duration::from_millis(100);
/// An apply takes one request, rarely up to five.
const REQUESTS: u32 = 5;

/// Messages of the status writer.
#[derive(Debug)]
pub enum Message {
    /// Something is in the set of intents.
    Work,
    /// To itself: a delayed intent is due.
    Due {
        /// Only the newest timer counts.
        epoch: u64,
    },
}

/// The pump behind the role.
#[derive(Debug)]
pub struct StatusWriter {
    facts: Facts,
    intents: Intents<VariantKey>,
    settled: Doorbell<Settled>,
    api: StatusApi,
    generator: Generator,
    term: u64,
    epoch: u64,
}

/// What became of one intent.
#[derive(Debug)]
enum Outcome {
    /// Nothing differs, or nothing is there to write to.
    Nothing,
    /// Stored, with this count.
    Written(Written, Option<Replicas>),
    /// Not stored.
    Failed(StatusError),
    /// Not ours to store.
    NoClaim,
}

impl StatusWriter {
    /// A new life of the role.
    pub fn new(
        facts: Facts,
        intents: Intents<VariantKey>,
        settled: Doorbell<Settled>,
        api: StatusApi,
        generator: Generator,
    ) -> Self {
        Self {
            facts,
            intents,
            settled,
            api,
            generator,
            term: 0,
            epoch: 0,
        }
    }

    /// Everything that was published; what is in the objects already is found out one by one.
    fn full_pass(&self) {
        for key in self.facts.records.snapshot().into_keys() {
            self.intents.add(key);
        }
    }

    async fn work(&mut self, cx: &Context<Message>) {
        let term = self.facts.claim.term();
        if term != self.term {
            self.term = term;
            self.intents.clear();
            self.full_pass();
        }
        loop {
            let batch = self.intents.take_due(cx.now(), IN_FLIGHT);
            if batch.is_empty() {
                break;
            }
            let this = &*self;
            let outcomes: Vec<_> = batch
                .into_iter()
                .map(|(key, intent)| async move { (this.write(cx.now(), &key).await, key, intent) })
                .collect::<FuturesUnordered<_>>()
                .collect()
                .await;
            for (outcome, key, intent) in outcomes {
                self.settle(cx.now(), outcome, key, intent);
            }
        }
        if let Some(due) = self.intents.next_due() {
            self.epoch += 1;
            cx.arm(due.since(cx.now()), Message::Due { epoch: self.epoch });
        }
    }

    async fn write(&self, now: Moment, key: &VariantKey) -> Outcome {
        let record = self.facts.records.get(key);
        let object = self.facts.mirrors.managed(key);
        let Some((record, object)) = record.zip(object) else {
            return Outcome::Nothing;
        };
        let Some(patch) = status::patch(&record, &object, now.wall) else {
            return Outcome::Nothing;
        };
        let Some(permit) = self.facts.claim.permit(now, self.api.timeout * REQUESTS) else {
            return Outcome::NoClaim;
        };
        match apply_status(permit, &self.api, &patch, &BTreeSet::new()).await {
            Ok(written) => Outcome::Written(written, record.values.map(|values| values.desired)),
            Err(error) => Outcome::Failed(error),
        }
    }

    fn settle(&mut self, now: Moment, outcome: Outcome, key: VariantKey, intent: Intent) {
        let count = |result: &str| {
            self.facts
                .series
                .process
                .status_writes
                .with_label_values(&[result])
                .inc();
        };
        let error = match outcome {
            Outcome::Nothing => {
                return self.settled.ring(Settled { key, stored: None });
            }
            // The intent is dropped: whoever leads next computes its own.
            Outcome::NoClaim => return count("no-claim"),
            Outcome::Written(written, stored) => {
                self.settled.ring(Settled {
                    key: key.clone(),
                    stored,
                });
                if !written.rivals.is_empty() {
                    tracing::warn!(variant = %key, rivals = ?written.rivals, "another controller writes this object too; give each its own CONTROLLER_INSTANCE");
                }
                return count("written");
            }
            Outcome::Failed(error) => error,
        };
        let failures = intent.failures.saturating_add(1);
        let delay = match &error {
            StatusError::Gone(_) | StatusError::Expired(_) => return count("dropped"),
            StatusError::Outdated(_) if failures < 5 => OUTDATED,
            StatusError::Retry {
                after: Some(after), ..
            } => RETRY
                .delay(usize::try_from(failures).unwrap_or(usize::MAX))
                .max(*after),
            _ => RETRY.delay(usize::try_from(failures).unwrap_or(usize::MAX)),
        };
        count("failed");
        let delay = self.generator.jitter(delay, 0.2);
        if !matches!(error, StatusError::Outdated(_)) {
            self.settled.ring(Settled {
                key: key.clone(),
                stored: None,
            });
            tracing::warn!(variant = %key, %error, failures, retry_in = ?delay, "status not written");
        }
        let mut not_before = now;
        not_before.monotonic += delay;
        self.intents.put_back(
            key,
            Intent {
                failures,
                not_before: Some(not_before),
            },
        );
    }
}

impl Behaviour for StatusWriter {
    type Msg = Message;

    async fn handle(
        &mut self,
        cx: &Context<Message>,
        occasion: Occasion<Message>,
    ) -> Result<(), Trouble> {
        match occasion {
            Occasion::Wake => self.full_pass(),
            Occasion::Message(Message::Due { epoch }) if epoch != self.epoch => return Ok(()),
            Occasion::Message(Message::Due { .. } | Message::Work) => {}
        }
        self.work(cx).await;
        Ok(())
    }

    async fn retire(&mut self, cx: &Context<Message>) {
        self.work(cx).await;
    }
}
