//! Lets the pods with the least requests go first: annotates them while fewer replicas are published than exist, and
//! takes the annotation back when the scale-down is off or done.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};

use crate::actors::permission_reporter::PermissionReporter;
use crate::cluster::autoscaler::{AutoscalerApi, AutoscalerWriteError, PodMark};
use crate::cluster::mirror::ObjectKey;
use crate::cluster::status::is_manager;
use crate::policy::deletion::DeletionChoice;
use crate::policy::key::VariantKey;
use crate::policy::object::{DeletionCost, Lifecycle};
use crate::policy::ownership::Ownership;
use crate::policy::snapshot::VariantView;
use crate::state::Readers;
use crate::state::requests::RequestReporter;
use wva_base::moment::Moment;
use wva_supervise::{Actor, ActorError, Context, Event};

/// From one round to the next: counts fall, and pods go, without a new decision.
const ROUND: Duration = Duration::from_secs(5);
/// Least time between two rounds: many decisions are one round.
const PAUSE: Duration = Duration::from_secs(1);
const IN_FLIGHT: usize = 8;
/// Most pods of one round. With the longest request it stays below the limit on silence.
const AT_A_TIME: usize = 64;
/// How long nothing is written after a write that is not allowed.
const DENIED_PAUSE: Duration = Duration::from_mins(1);

/// Messages of the pod marker.
#[derive(Debug)]
pub enum PodMarkerMessage {
    /// Something was published.
    Published,
    /// To itself: time for the next round.
    Round {
        /// Only the newest timer counts.
        timer_epoch: u64,
    },
}

/// The pump behind the role. The pods themselves hold what it did, so that it has nothing to lose.
#[derive(Debug)]
pub struct PodMarker {
    shared: Readers,
    requests: Arc<RequestReporter>,
    permissions: PermissionReporter,
    api: AutoscalerApi,
    last: Option<Moment>,
    /// The last pod of the round before.
    reached: Option<ObjectKey>,
    /// Until when the API server is left alone.
    spared: Option<Moment>,
    timer_epoch: u64,
}

impl PodMarker {
    /// A new life of the role.
    pub fn new(
        shared: Readers,
        requests: Arc<RequestReporter>,
        permissions: PermissionReporter,
        api: AutoscalerApi,
    ) -> Self {
        Self {
            shared,
            requests,
            permissions,
            api,
            last: None,
            reached: None,
            spared: None,
            timer_epoch: 0,
        }
    }

    /// Pods that are not as they are to be. None before this term has a plan: what an earlier one has chosen may be
    /// right, and nothing is known yet of variants that are not on the board.
    fn differences(&self, now: Moment) -> Vec<(ObjectKey, PodMark)> {
        let term = self.shared.claim.term();
        let plan = self.shared.plan.load();
        let is_planned = plan.as_ref().as_ref().is_some_and(|one| one.term == term);
        let is_known = is_planned && self.shared.records.term() == term;
        if !is_known || !self.shared.claim.may_write(now) || !self.shared.mirrors.pods.synced() {
            return Vec::new();
        }
        let mut chosen = BTreeSet::new();
        let mut undecided = BTreeSet::new();
        let board = self.shared.board.snapshot();
        for (key, view) in &board {
            match self.chosen(key, view, now) {
                Some(names) => chosen.extend(names.iter().map(|name| pod_key(view, name))),
                None => undecided.extend(pod_keys(view)),
            }
        }
        // No other controller publishes these variants, so that the mark of one is left from a former name of ours.
        let ours = LazyCell::new(|| {
            let alone = (board.iter())
                .filter(|(key, _)| self.shared.standing(key) == Ownership::Alone)
                .flat_map(|(_, view)| pod_keys(view));
            alone.collect::<BTreeSet<_>>()
        });
        let pods = self.shared.mirrors.pods.all().into_iter();
        let live = pods.filter(|(_, pod)| pod.lifecycle == Lifecycle::Live);
        let differences = live.filter_map(|(key, pod)| match &pod.deletion_cost {
            DeletionCost::None if chosen.contains(&key) => Some((key, PodMark::Chosen)),
            DeletionCost::Chosen(by) if **by == *self.api.manager => {
                let stays = chosen.contains(&key) || undecided.contains(&key);
                (!stays).then_some((key, PodMark::Removed))
            }
            DeletionCost::Chosen(by) if is_manager(by) => {
                let is_left = ours.contains(&key) && !undecided.contains(&key);
                is_left.then_some((key, PodMark::Removed))
            }
            DeletionCost::None | DeletionCost::Chosen(_) | DeletionCost::Foreign => None,
        });
        differences.collect()
    }

    /// The pods of a variant that are to go first; `None` while its count is not decided.
    fn chosen(
        &self,
        key: &VariantKey,
        view: &VariantView,
        now: Moment,
    ) -> Option<BTreeSet<Arc<str>>> {
        let target = view.target.resolved()?;
        let published = self.shared.records.decided(key, &view.uid)?;
        // Most of the time nothing is to go, and no sample needs to be read.
        if target.current_excluding_surge() <= published {
            return Some(BTreeSet::new());
        }
        let (metrics, settings) = (self.shared.metrics.load(), self.shared.settings.load());
        let choice = DeletionChoice {
            metrics: &metrics,
            settings: &settings.generation.dynamic,
            now,
            manager: &self.api.manager,
        };
        let names = choice.of(view, published, |name| {
            let pod = self.shared.mirrors.pods.get(&pod_key(view, name));
            pod.map_or(DeletionCost::None, |pod| pod.deletion_cost.clone())
        });
        Some(names)
    }

    async fn round(&mut self, now: Moment) {
        self.last = Some(now);
        let is_spared = |until: Moment| now.monotonic < until.monotonic;
        if self.spared.is_some_and(is_spared) {
            return;
        }
        let due = turn(self.differences(now), self.reached.as_ref());
        self.reached = due.last().map(|(pod, _)| pod.clone());
        let this = &*self;
        let write = async |(pod, mark): (ObjectKey, PodMark)| {
            let now = this.shared.clock.now();
            let Some(permit) = this.shared.permit(now, this.api.timeout) else {
                return (pod, Err(AutoscalerWriteError::Expired));
            };
            let written = match this.shared.mirrors.pods.get(&pod) {
                Some(found) => this.api.mark_pod(permit, &found, mark).await,
                None => Err(AutoscalerWriteError::Gone),
            };
            (pod, written)
        };
        let outcomes: BTreeMap<_, _> = stream::iter(due.into_iter().map(write))
            .buffer_unordered(IN_FLIGHT)
            .collect()
            .await;
        for (pod, outcome) in outcomes {
            match outcome {
                Ok(()) => self.requests.worked(),
                Err(error) => self.failed(now, &pod, &error),
            }
        }
    }

    /// The next round finds what is left to do.
    fn failed(&mut self, now: Moment, pod: &ObjectKey, error: &AutoscalerWriteError) {
        let asked = self.shared.hooks.retry_after(error.retry_after());
        self.spared = self.spared.max(asked.map(|asked| now.later(asked)));
        if error.concerns_everything() {
            self.requests.failed(&error.to_string());
        }
        match error {
            // The next round sees what became of it.
            AutoscalerWriteError::Gone
            | AutoscalerWriteError::Outdated
            | AutoscalerWriteError::Expired => return,
            AutoscalerWriteError::Denied { .. } => {
                self.permissions.tell("Write", error);
                self.spared = self.spared.max(Some(now.later(DENIED_PAUSE)));
            }
            _ => {}
        }
        tracing::warn!(namespace = &*pod.namespace, pod = &*pod.name, %error, "deletion cost of a pod not written");
    }

    fn arm(&mut self, cx: &Context<PodMarkerMessage>, after: Duration) {
        self.timer_epoch += 1;
        let timer_epoch = self.timer_epoch;
        cx.arm(after, PodMarkerMessage::Round { timer_epoch });
    }
}

/// The pods of a round: those after the last one of the round before come first, so that pods that are refused do not keep
/// the others from their turn.
fn turn(
    mut differences: Vec<(ObjectKey, PodMark)>,
    reached: Option<&ObjectKey>,
) -> Vec<(ObjectKey, PodMark)> {
    differences.sort_by(|one, other| one.0.cmp(&other.0));
    let done = differences.partition_point(|(pod, _)| reached.is_some_and(|last| pod <= last));
    differences.rotate_left(done);
    differences.truncate(AT_A_TIME);
    differences
}

fn pod_keys(view: &VariantView) -> impl Iterator<Item = ObjectKey> {
    view.pods.iter().map(|pod| pod_key(view, &pod.name))
}

fn pod_key(view: &VariantView, name: &Arc<str>) -> ObjectKey {
    let namespace = Arc::clone(&view.key.namespace);
    ObjectKey::new(namespace, Arc::clone(name))
}

impl Actor for PodMarker {
    type Msg = PodMarkerMessage;

    async fn handle(
        &mut self,
        cx: &Context<PodMarkerMessage>,
        event: Event<PodMarkerMessage>,
    ) -> Result<(), ActorError> {
        match event {
            Event::Message(PodMarkerMessage::Round { timer_epoch })
                if timer_epoch != self.timer_epoch =>
            {
                return Ok(());
            }
            Event::Message(PodMarkerMessage::Published) => {
                let since = self.last.map(|last| cx.now().since(last));
                if let Some(rest) = since.and_then(|since| PAUSE.checked_sub(since)) {
                    self.arm(cx, rest);
                    return Ok(());
                }
            }
            Event::Started | Event::Message(PodMarkerMessage::Round { .. }) => {}
        }
        self.round(cx.now()).await;
        self.arm(cx, ROUND);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
