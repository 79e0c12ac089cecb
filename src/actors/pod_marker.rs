//! Lets the pods with the least requests go first: annotates them while fewer replicas are published than exist, and
//! takes the annotation back when the scale-down is off or done.

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::actors::rounds::RoundWork;
use crate::cluster::autoscaler::{AutoscalerWriteError, PodMark};
use crate::cluster::mirror::ObjectKey;
use crate::cluster::permit::WriteApi;
use crate::cluster::status::is_manager;
use crate::policy::deletion::DeletionChoice;
use crate::policy::key::VariantKey;
use crate::policy::object::{DeletionCost, Lifecycle};
use crate::policy::ownership::Ownership;
use crate::policy::snapshot::VariantView;
use crate::state::Readers;
use wva_base::moment::Moment;

/// What its rounds write.
#[derive(Debug, Clone)]
pub(crate) struct PodMarks {
    shared: Readers,
    api: WriteApi,
}

impl PodMarks {
    pub(crate) fn new(shared: Readers, api: WriteApi) -> Self {
        Self { shared, api }
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
}

impl RoundWork for PodMarks {
    type Object = ObjectKey;
    type Change = PodMark;

    const ABOUT: &str = "deletion cost of a pod";
    const REQUESTS: u32 = 1;
    const PAUSE: Duration = Duration::from_secs(1);

    /// Counts fall, and pods go.
    fn until_next(&self) -> Duration {
        Duration::from_secs(5)
    }

    /// Pods that are not as they are to be. None before this term has a plan: what an earlier one has chosen may be
    /// right, and nothing is known yet of variants that are not on the board.
    fn differences(&mut self, now: Moment) -> Vec<(ObjectKey, PodMark)> {
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

    async fn write(&self, pod: &ObjectKey, mark: PodMark) -> Result<(), AutoscalerWriteError> {
        let now = self.shared.clock.now();
        let permit = self.shared.permit(now, self.api.timeout);
        let permit = permit.ok_or(AutoscalerWriteError::Expired)?;
        let found = self.shared.mirrors.pods.get(pod);
        let found = found.ok_or(AutoscalerWriteError::Gone)?;
        self.api.mark_pod(permit, &found, mark).await
    }
}

fn pod_keys(view: &VariantView) -> impl Iterator<Item = ObjectKey> {
    view.pods.iter().map(|pod| pod_key(view, &pod.name))
}

fn pod_key(view: &VariantView, name: &Arc<str>) -> ObjectKey {
    let namespace = Arc::clone(&view.key.namespace);
    ObjectKey::new(namespace, Arc::clone(name))
}

#[cfg(test)]
mod tests;
