//! What a plan states about metrics and limits, in addition to the counts.

use std::sync::Arc;

use super::news;
use crate::doctor::observed::observe;
use crate::policy::key::VariantKey;
use crate::policy::plan::{Decision, DecisionOutcome, MetricsState, Plan};
use crate::state::Readers;

/// A plan, and the one that counted before it.
#[derive(Debug)]
pub struct Succession {
    /// The plan that counts now.
    pub plan: Arc<Plan>,
    /// The one before it; itself where it only is shown again.
    pub previous: Option<Arc<Plan>>,
}

impl Succession {
    /// Shows it in the series, and logs what begins with it.
    pub fn show(&self, shared: &Readers) {
        let Self { plan, previous } = self;
        let is_live = |key: &VariantKey| shared.records.get(key).is_some();
        shared.series.expose_plan(plan, is_live);
        for (key, decision) in &plan.decisions {
            // A variant that went since the plan was made has no series any more.
            if !is_live(key) {
                continue;
            }
            let up = matches!(decision.metrics, MetricsState::Available | MetricsState::NoReplicas);
            shared.series.expose_metrics_up(key, up);
            shared.series.expose_freshness(key, &decision.figures);
            shared.series.expose_limits(decision);
            let was = previous.as_ref().and_then(|plan| plan.decisions.get(key));
            let begins = |holds: fn(&Decision) -> bool| holds(decision) && !was.is_some_and(holds);
            if begins(|decision| decision.outcome == DecisionOutcome::SafetyNet) {
                news::log_safety_net(decision);
            }
            if begins(Decision::is_refused_wake) {
                news::log_refused_wake(decision);
            }
        }
        let found = observe(shared);
        shared.series.expose_findings(found.iter().map(|(code, object)| (code.id(), object)));
        let models = i64::try_from(plan.models.len()).unwrap_or(i64::MAX);
        shared.series.engine.models_processed.set(models);
        tracing::debug!(variants = plan.decisions.len(), "plan published");
    }
}
