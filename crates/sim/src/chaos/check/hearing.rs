//! D4, pod by pod: a ready replica that is silent never lets its variant shrink, as it may be under any load.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::InvariantViolation;
use wva::policy::key::VariantKey;
use wva::policy::plan::{Decision, ModelFigures, Plan, PlanStage};
use wva::policy::snapshot::{Readiness, ResolvedTarget, VariantView};
use wva::policy::units::Replicas;

#[derive(Debug, Default)]
pub(crate) struct Ready(BTreeMap<VariantKey, Serving>);

#[derive(Debug, Default)]
struct Serving {
    pods: BTreeMap<Arc<str>, Duration>,
    stated: Replicas,
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
            let stated = serving(target);
            self.0.insert(key.clone(), Serving { pods, stated });
        }
    }

    /// A replica that has been known to be ready since before this time, and for which `speaks` does not hold, while
    /// fewer speak than the target says are ready: what is known of pods may be ahead of what is known of their
    /// target.
    pub(crate) fn silent(
        &self,
        view: &VariantView,
        speaks: impl Fn(&str) -> bool,
        before: Duration,
    ) -> Option<Arc<str>> {
        let known = self.0.get(&view.key)?;
        let least = serving(view.target.resolved()?).min(known.stated);
        let (speaking, silent): (Vec<_>, Vec<_>) = ready(view).partition(|pod| speaks(pod));
        let count = Replicas(u32::try_from(speaking.len()).unwrap_or(u32::MAX));
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

/// What one stage adds and another takes back is not lowered.
fn is_lowered_for_load(decision: &Decision) -> bool {
    let base = decision.steps.first().map(|step| step.from);
    let mut steps = decision.steps.iter();
    decision.target < base
        && steps.any(|step| {
            step.to < step.from
                && matches!(step.stage, PlanStage::Saturation | PlanStage::Optimizer)
        })
}

/// Whether neither the queueing model, which learns of requests from routers, nor throughput was asked: the others rest on
/// what every replica reports about itself.
fn rests_on_replicas(figures: &ModelFigures) -> bool {
    figures.queueing.is_none() && figures.throughput.is_none()
}
