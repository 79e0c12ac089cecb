//! The planning cycle: from what is known to one decision per variant.

use std::collections::BTreeMap;

use super::bounds::{Bounds, ZeroPolicy};
use super::draft::Draft;
use super::key::{ModelKey, VariantKey};
use super::learned::Learned;
use super::moment::Moment;
use super::plan::{Decision, MetricsState, Outcome, Plan, TargetProblem, VariantFigures};
use super::safety_net;
use super::saturation::{self, Analysis, Listener};
use super::snapshot::{ClusterSnapshot, ResolvedTarget, TargetView, VariantView};
use super::transition::Transitions;
use crate::settings::DynamicSettings;

/// Decides a count for every variant of the snapshot. Models are independent of each other: one
/// that cannot be analysed is kept by the safety net and costs the others nothing.
pub fn plan(
    snapshot: &ClusterSnapshot,
    learned: &Learned,
    settings: &DynamicSettings,
    generation: u64,
    now: Moment,
) -> Plan {
    let cycle = Cycle {
        learned,
        settings,
        listener: Listener::new(
            &snapshot.metrics,
            &settings.freshness,
            settings.cache.reuse,
            now,
        ),
        now,
    };
    let mut plan = Plan {
        cycle: snapshot.cycle,
        generation,
        at: now,
        decisions: BTreeMap::new(),
        models: BTreeMap::new(),
    };
    for (model, group) in group_by_model(snapshot) {
        let policy = ZeroPolicy::from(settings.may_go_to_zero(model));
        cycle.plan_resolved(model, &group, policy, &mut plan);
        for view in group.others {
            let decision = plan_other(view, policy);
            plan.decisions.insert(view.key.clone(), decision);
        }
    }
    plan
}

/// The variants of one model.
#[derive(Debug, Default)]
struct Group<'a> {
    /// With a resolved target.
    resolved: Vec<(&'a VariantView, &'a ResolvedTarget)>,
    /// Without one.
    others: Vec<&'a VariantView>,
}

impl<'a> Group<'a> {
    /// Variants that may have replicas nobody sees; nothing of the model shrinks meanwhile.
    fn unseen(&self) -> Vec<&'a VariantKey> {
        let is_unseen = |target: &TargetView| {
            matches!(
                target,
                TargetView::Unknown { .. } | TargetView::Malformed { .. }
            )
        };
        self.others
            .iter()
            .filter(|view| is_unseen(&view.target))
            .map(|view| &view.key)
            .collect()
    }
}

fn group_by_model(snapshot: &ClusterSnapshot) -> BTreeMap<&ModelKey, Group<'_>> {
    let mut groups: BTreeMap<&ModelKey, Group<'_>> = BTreeMap::new();
    for view in snapshot.variants.values() {
        let group = groups.entry(&view.model).or_default();
        match view.target.resolved() {
            Some(target) => group.resolved.push((view, target)),
            None => group.others.push(view),
        }
    }
    groups
}

/// What every stage of one cycle reads.
#[derive(Debug, Clone, Copy)]
struct Cycle<'a> {
    learned: &'a Learned,
    settings: &'a DynamicSettings,
    listener: Listener<'a>,
    now: Moment,
}

impl Cycle<'_> {
    /// Analysis or safety net, then bounds.
    fn plan_resolved(
        &self,
        model: &ModelKey,
        group: &Group<'_>,
        policy: ZeroPolicy,
        plan: &mut Plan,
    ) {
        if group.resolved.is_empty() {
            return;
        }
        let (analysis, figures) = self.analyze(model, group);
        let mut drafts = self.drafts(group, figures, policy);
        if let Some(state) = self.unusable(&drafts) {
            safety_net::hold(&mut drafts, state);
        } else {
            saturation::decide(&mut drafts, &analysis, &group.unseen());
            plan.models.insert(model.clone(), analysis.figures);
        }
        for draft in drafts {
            let decision = draft.finish();
            plan.decisions.insert(decision.key.clone(), decision);
        }
    }

    fn analyze(&self, model: &ModelKey, group: &Group<'_>) -> (Analysis, Vec<VariantFigures>) {
        let members: Vec<&VariantView> = group.resolved.iter().map(|(view, _)| *view).collect();
        let thresholds = self.settings.saturation.resolve(model);
        saturation::analyze(&members, self.listener, &thresholds)
    }

    fn drafts<'a>(
        &self,
        group: &Group<'a>,
        figures: Vec<VariantFigures>,
        policy: ZeroPolicy,
    ) -> Vec<Draft<'a>> {
        group
            .resolved
            .iter()
            .zip(figures)
            .map(|((view, target), figures)| {
                let transitions = Transitions::of(
                    view,
                    target,
                    &figures,
                    self.learned.reporting.get(&view.key),
                    &self.settings.transition_limits,
                    self.now,
                );
                let bounds = Bounds::effective(&view.bounds, policy);
                Draft::new(view, target, figures, transitions, bounds)
            })
            .collect()
    }

    /// Why a model cannot be analysed; `None` if it can.
    fn unusable(&self, drafts: &[Draft<'_>]) -> Option<MetricsState> {
        if self.listener.has_failed() {
            Some(MetricsState::QueryFailed)
        } else if self.listener.has_expired() {
            Some(MetricsState::Stale)
        } else if drafts.iter().any(|draft| draft.figures.reporting > 0) {
            None
        } else if drafts.iter().any(|draft| draft.figures.outdated > 0) {
            Some(MetricsState::Stale)
        } else {
            Some(MetricsState::Missing)
        }
    }
}

/// The decision for a variant without a resolved target.
fn plan_other(view: &VariantView, policy: ZeroPolicy) -> Decision {
    let unmanaged = |problem| safety_net::unpublished(view, problem, Outcome::Unmanaged);
    match &view.target {
        TargetView::Resolved(_) | TargetView::Unknown { .. } => {
            let bounds = Bounds::effective(&view.bounds, policy);
            safety_net::hold_unseen(view, TargetProblem::Unknown, Some(&bounds))
        }
        TargetView::Malformed { .. } => {
            safety_net::hold_unseen(view, TargetProblem::Malformed, None)
        }
        TargetView::NotFound { .. } => unmanaged(TargetProblem::NotFound),
        TargetView::Contested { .. } => unmanaged(TargetProblem::Contested),
        TargetView::UnsupportedKind { .. } => unmanaged(TargetProblem::UnsupportedKind),
    }
}
