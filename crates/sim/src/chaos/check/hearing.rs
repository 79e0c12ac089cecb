//! D4, pod by pod: a ready replica that is silent never lets its variant shrink, as it may be under any load.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::InvariantViolation;
use wva::policy::key::VariantKey;
use wva::policy::plan::{Decision, ModelFigures, Plan, PlanStage};
use wva::policy::snapshot::{Readiness, ResolvedTarget, VariantView};
use wva::policy::units::Replicas;

/// The replicas of each variant that a process knows to be ready, as they were when last looked at.
#[derive(Debug, Default)]
pub(crate) struct Ready(BTreeMap<VariantKey, Serving>);

#[derive(Debug, Default)]
struct Serving {
    /// Since when it knows each ready pod to be that.
    pods: BTreeMap<Arc<str>, Duration>,
    /// How many its target says are ready.
    told: Replicas,
}

impl Ready {
    pub(crate) fn note(&mut self, views: &BTreeMap<VariantKey, Arc<VariantView>>, now: Duration) {
        let mut before = std::mem::take(&mut self.0);
        for (key, view) in views {
            let mut pods = ready(view).peekable();
            let Some(target) = view.target.resolved().filter(|_| pods.peek().is_some()) else {
                continue;
            };
            let before = before.remove(key).unwrap_or_default().pods;
            let since = |pod: &Arc<str>| before.get(pod).copied().unwrap_or(now);
            let pods = pods.map(|pod| (Arc::clone(pod), since(pod))).collect();
            let told = serving(target);
            self.0.insert(key.clone(), Serving { pods, told });
        }
    }

    /// A replica that has been known to be ready since before this time, and of which nothing is `heard`, while
    /// fewer are heard than the target says are ready: what tells of pods may be ahead of what tells of their
    /// target.
    pub(crate) fn silent(
        &self,
        view: &VariantView,
        heard: impl Fn(&str) -> bool,
        before: Duration,
    ) -> Option<Arc<str>> {
        let known = self.0.get(&view.key)?;
        let least = serving(view.target.resolved()?).min(known.told);
        let (heard, silent): (Vec<_>, Vec<_>) = ready(view).partition(|pod| heard(pod));
        let count = Replicas(u32::try_from(heard.len()).unwrap_or(u32::MAX));
        let is_known = |pod: &&Arc<str>| known.pods.get(*pod).is_some_and(|since| *since < before);
        let silent = silent.into_iter().find(is_known)?;
        (count < least).then(|| Arc::clone(silent))
    }
}

fn ready(view: &VariantView) -> impl Iterator<Item = &Arc<str>> {
    let pods = view.pods.iter();
    let ready = pods.filter(|pod| pod.readiness == Readiness::Ready);
    ready.map(|pod| &pod.name)
}

fn serving(target: &ResolvedTarget) -> Replicas {
    target.ready.min(target.current)
}

/// D4: a variant is lowered by what its replicas say although one of them says nothing.
pub(crate) fn lowered(
    plan: &Plan,
    silent: &dyn Fn(&VariantKey) -> Option<Arc<str>>,
) -> Option<InvariantViolation> {
    plan.decisions.values().find_map(|decision| {
        let figures = plan.models.get(&decision.model)?;
        if !is_lowered_for_load(decision) || !rests_on_replicas(figures) {
            return None;
        }
        let pod = silent(&decision.key)?;
        let (key, target) = (&decision.key, decision.target?);
        let text = format!("{key} is lowered to {target} although {pod} is ready and silent");
        Some(InvariantViolation::new("D4", text))
    })
}

/// What one stage adds and another takes back is lowered by nobody.
fn is_lowered_for_load(decision: &Decision) -> bool {
    let base = decision.steps.first().map(|step| step.from);
    let mut steps = decision.steps.iter();
    decision.target < base
        && steps.any(|step| {
            step.to < step.from
                && matches!(step.stage, PlanStage::Saturation | PlanStage::Optimizer)
        })
}

/// Whether saturation alone was asked, which rests on what every replica says of itself. The queueing model hears
/// of requests from routers.
fn rests_on_replicas(figures: &ModelFigures) -> bool {
    figures.queueing.is_none() && figures.throughput.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::scale_to_zero::tests::plan;
    use wva::policy::actuation::Scalers;
    use wva::policy::capacity::CapacityUnit;
    use wva::policy::key::{ModelKey, TargetKey, TargetKind};
    use wva::policy::snapshot::{
        Accelerator, DeclaredBounds, GenerationState, PodView, ReplicaTemplate, RouterPresence,
        TargetView,
    };
    use wva::policy::throughput::ThroughputReport;
    use wva::policy::units::Cost;
    use wva_base::moment::WallTime;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    /// A variant of three pods whose target says that so many are ready, of which `unready` is not.
    fn view(told: u32, unready: Option<&str>) -> VariantView {
        let pods = ["a", "b", "c"].map(|name| PodView {
            name: Arc::from(name),
            readiness: if unready == Some(name) {
                Readiness::NotReady
            } else {
                Readiness::Ready
            },
            created: WallTime(0),
            ready_since: None,
            node: None,
        });
        VariantView {
            key: VariantKey::new("n", "v"),
            uid: Arc::default(),
            generation: 1,
            model: ModelKey::new("n", "m"),
            cost: Cost::DEFAULT,
            accelerator: Accelerator::Unresolved,
            bounds: DeclaredBounds::default(),
            desired: None,
            target: TargetView::Resolved(ResolvedTarget {
                key: TargetKey::new("n", TargetKind::Deployment, "v"),
                current: Replicas(3),
                surge: Replicas::ZERO,
                ready: Replicas(told),
                generation: GenerationState::Observed,
            }),
            pods: Arc::from(pods),
            pending_since: None,
            unapplied_since: None,
            notes: Arc::from([]),
            scalers: Scalers::Unknown,
            router: RouterPresence::Possible,
            template: ReplicaTemplate::default(),
        }
    }

    #[test]
    fn a_ready_replica_that_was_known_before_and_is_not_heard_is_silent() {
        let mut known = Ready::default();
        let silent = |known: &Ready, view: &VariantView, heard: &str, before| {
            let found = known.silent(view, |pod| heard.contains(pod), seconds(before));
            found.map(|pod| pod.to_string())
        };
        let whole = view(3, None);
        assert_eq!(silent(&known, &whole, "", 99), None, "never looked at");
        let key = whole.key.clone();
        let note = |known: &mut Ready, view: &VariantView, at| {
            known.note(&[(key.clone(), Arc::new(view.clone()))].into(), seconds(at));
        };
        note(&mut known, &view(3, Some("b")), 10);
        note(&mut known, &whole, 20);
        assert_eq!(silent(&known, &whole, "abc", 30), None);
        assert_eq!(silent(&known, &whole, "ac", 30).as_deref(), Some("b"));
        assert_eq!(silent(&known, &whole, "ac", 20), None, "ready since then");
        assert_eq!(silent(&known, &whole, "b", 15).as_deref(), Some("a"));
        let restarted = view(3, Some("b"));
        assert_eq!(
            silent(&known, &restarted, "ac", 30),
            None,
            "not ready any more"
        );
        let behind = view(2, None);
        assert_eq!(
            silent(&known, &behind, "ac", 30),
            None,
            "its target says two"
        );
        assert_eq!(silent(&known, &behind, "c", 30).as_deref(), Some("a"));
        note(&mut known, &behind, 40);
        assert_eq!(
            silent(&known, &whole, "ac", 50),
            None,
            "it said two just now"
        );
        note(&mut known, &whole, 41);
        assert_eq!(silent(&known, &whole, "ac", 50).as_deref(), Some("b"));
    }

    #[test]
    fn what_is_lowered_for_load_needs_every_replica_to_be_heard() {
        let told = |stage: PlanStage, to: u32, figures: Option<ModelFigures>, is_silent: bool| {
            let mut plan = plan(&[("v", "m", 3, to)]);
            for step in (plan.decisions.values_mut()).flat_map(|one| &mut one.steps) {
                step.stage = stage;
            }
            let of_model = figures.map(|figures| (ModelKey::new("n", "m"), figures));
            plan.models.extend(of_model);
            let silent = |_: &VariantKey| is_silent.then(|| Arc::from("v-1"));
            lowered(&plan, &silent).map(|found| found.to_string())
        };
        let asked = || Some(ModelFigures::default());
        let text = "D4: n/v is lowered to 2 although v-1 is ready and silent";
        for stage in [PlanStage::Saturation, PlanStage::Optimizer] {
            assert_eq!(told(stage, 2, asked(), false), None);
            assert_eq!(told(stage, 2, asked(), true).as_deref(), Some(text));
            assert_eq!(told(stage, 3, asked(), true), None, "it stays");
            assert_eq!(told(stage, 4, asked(), true), None, "it grows");
            assert_eq!(told(stage, 2, None, true), None, "nobody was asked");
        }
        for stage in [PlanStage::Bounds, PlanStage::Zero, PlanStage::Limit] {
            assert_eq!(told(stage, 2, asked(), true), None, "{stage:?}");
        }
        let by_rates = ModelFigures {
            throughput: Some(ThroughputReport {
                arrivals: None,
                router_queue: 0.0,
                output_tokens: None,
                input_tokens: None,
                queue_demand: 0.0,
                demand: None,
                undemanded_for: None,
                is_prefill_masked: false,
                unit: CapacityUnit::Replicas,
                roles: BTreeMap::new(),
                variants: BTreeMap::new(),
            }),
            ..ModelFigures::default()
        };
        assert_eq!(told(PlanStage::Optimizer, 2, Some(by_rates), true), None);
    }
}
