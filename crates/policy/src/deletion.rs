//! Which pods go first when the replica count of a Deployment goes down: those with the least requests.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::key::{ModelKey, TargetKind};
use crate::object::DeletionCost;
use crate::params::DynamicSettings;
use crate::sample_reader::SampleReader;
use crate::signal::Signal;
use crate::snapshot::{MetricsSnapshot, PodView, Readiness, VariantView};
use crate::units::Replicas;
use wva_base::moment::Moment;

/// The cost of a chosen pod: below 0, which is that of every other.
pub const CHOSEN_COST: i32 = -1;

/// A pod that may be chosen.
#[derive(Debug, Clone)]
pub struct DeletionCandidate<'a> {
    /// The pod.
    pub pod: &'a PodView,
    /// What its annotation says.
    pub cost: DeletionCost,
    /// Requests that it works on, and that wait in it.
    pub in_flight: Signal,
}

impl DeletionCandidate<'_> {
    fn is_marked(&self, manager: &str) -> bool {
        matches!(&self.cost, DeletionCost::Chosen(by) if **by == *manager)
    }
}

/// What the pods of all variants are judged by.
#[derive(Debug)]
pub struct DeletionChoice<'a> {
    /// The last collection.
    pub metrics: &'a MetricsSnapshot,
    /// Ages of samples.
    pub settings: &'a DynamicSettings,
    /// The time.
    pub now: Moment,
    /// Our name as an owner of fields.
    pub manager: &'a str,
}

impl DeletionChoice<'_> {
    /// The pods of a variant that are to have [`CHOSEN_COST`] while this count is published. Of other kinds than
    /// Deployments none: the controller of a StatefulSet goes by its numbers.
    pub fn of(
        &self,
        view: &VariantView,
        published: Replicas,
        cost_of: impl Fn(&Arc<str>) -> DeletionCost,
    ) -> BTreeSet<Arc<str>> {
        let target = view.target.resolved();
        let Some(target) = target.filter(|target| target.key.kind == TargetKind::Deployment) else {
            return BTreeSet::new();
        };
        let (bands, reuse) = (&self.settings.freshness, self.settings.cache.reuse);
        let reader = SampleReader::new(self.metrics, bands, reuse, self.now);
        let candidates = view.pods.iter().map(|pod| DeletionCandidate {
            pod,
            cost: cost_of(&pod.name),
            in_flight: in_flight(reader, &view.model, &pod.name),
        });
        let candidates: Vec<_> = candidates.collect();
        // The status of the target may be behind its pods.
        let live = Replicas::from_len(candidates.len());
        let exist = target.current_excluding_surge().min(live);
        let surplus = exist.saturating_sub(published);
        chosen(&candidates, surplus, self.manager)
    }
}

/// Requests that a pod works on, and that wait in it. Known where both numbers are fresh.
fn in_flight(reader: SampleReader<'_>, model: &ModelKey, pod: &str) -> Signal {
    let samples = reader.samples(model).and_then(|pods| pods.get(pod));
    let running = reader.judge(samples.and_then(|pod| pod.running), 0.0..=f64::MAX);
    let waiting = reader.judge(samples.and_then(|pod| pod.queue_length), 0.0..=f64::MAX);
    match (running, waiting) {
        (Signal::KnownZero { age: one }, Signal::KnownZero { age: other }) => {
            let age = one.max(other);
            Signal::KnownZero { age }
        }
        (
            Signal::Known { age: one, .. } | Signal::KnownZero { age: one },
            Signal::Known { age: other, .. } | Signal::KnownZero { age: other },
        ) => Signal::Known {
            value: running.value().unwrap_or(0.0) + waiting.value().unwrap_or(0.0),
            age: one.max(other),
        },
        (Signal::Stale { .. } | Signal::Failed { .. }, _) => running,
        _ => waiting,
    }
}

/// The pods that are to have [`CHOSEN_COST`] while `surplus` replicas more exist than are wanted. A pod that `manager`
/// has chosen before stays chosen: loads change all the time, and each change would be a write.
///
/// Pods that are not ready go first whatever their cost, so that they count and are not chosen. A pod of unknown load
/// is not chosen, which places it behind all others. Where all ready pods go there is nothing to choose, and where
/// something else gave a pod a cost none is chosen.
pub fn chosen(
    candidates: &[DeletionCandidate<'_>],
    surplus: Replicas,
    manager: &str,
) -> BTreeSet<Arc<str>> {
    let is_foreign =
        |one: &DeletionCandidate<'_>| one.cost != DeletionCost::None && !one.is_marked(manager);
    if candidates.iter().any(is_foreign) {
        return BTreeSet::new();
    }
    let surplus = usize::try_from(surplus.0).unwrap_or(usize::MAX);
    let is_ready = |one: &&DeletionCandidate<'_>| one.pod.readiness == Readiness::Ready;
    let ready: Vec<_> = candidates.iter().filter(is_ready).collect();
    let places = surplus.saturating_sub(candidates.len() - ready.len());
    let all_go = places >= ready.len();
    let mut eligible: Vec<_> = (ready.into_iter())
        .filter_map(|one| {
            let is_marked = one.is_marked(manager);
            if all_go && !is_marked {
                return None;
            }
            let load = match one.in_flight {
                Signal::Known { value, .. } => Some(value),
                Signal::KnownZero { .. } => Some(0.0),
                Signal::Stale { .. } | Signal::Failed { .. } => None,
            };
            let load = load.or_else(|| is_marked.then_some(f64::INFINITY))?;
            Some((!is_marked, load, &one.pod.name))
        })
        .collect();
    eligible.sort_by(|one, other| {
        let by_load = one.1.total_cmp(&other.1);
        one.0.cmp(&other.0).then(by_load).then(one.2.cmp(other.2))
    });
    let names = eligible.into_iter().take(places);
    names.map(|(_, _, name)| Arc::clone(name)).collect()
}
