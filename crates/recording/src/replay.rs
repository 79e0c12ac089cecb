//! Repeats recorded decisions.

use std::collections::BTreeSet;
use std::fmt;

use super::autoscaler::{RecordedAutoscaler, RecordedAutoscalerDecision};
use super::cycle::{RecordedCycle, RecordedDecision, RecordedDecisions};
use wva_policy::key::{ObjectKey, VariantKey};
use wva_policy::params::DynamicSettings;
use wva_policy::plan;
use wva_policy::plan::Plan;
use wva_policy::pod_autoscaler::{AutoscalerDecision, decide};

/// One cycle, repeated.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayedCycle {
    /// The plan of this program.
    pub plan: Plan,
    /// How it differs from what was recorded.
    pub differences: Vec<DecisionDifference>,
}

/// One decision about a `PodAutoscaler`, repeated.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayedAutoscaler {
    /// The decision of this program; `None` if it refuses the object.
    pub decision: Option<AutoscalerDecision>,
    /// How it differs from what was recorded.
    pub difference: Option<DecisionDifference>,
}

/// One difference between a recorded and a repeated decision.
#[derive(Debug, Clone, PartialEq)]
pub enum DecisionDifference {
    /// A variant is decided differently; `None` where one of the plans lacks it.
    Variant {
        /// The variant.
        key: VariantKey,
        /// What was recorded.
        recorded: Option<Box<RecordedDecision>>,
        /// What this program decides.
        replayed: Option<Box<RecordedDecision>>,
    },
    /// A `PodAutoscaler` is decided differently.
    Autoscaler {
        /// The object.
        key: ObjectKey,
        /// What was recorded.
        recorded: Box<RecordedAutoscalerDecision>,
        /// What this program decides, or why it refuses the object.
        replayed: Result<Box<RecordedAutoscalerDecision>, String>,
    },
    /// Every decision is the same, and figures are not.
    Figures,
}

wva_base::display_of! { DecisionDifference:
    Self::Figures => "the decisions are the same, their figures differ";
    Self::Autoscaler { key, recorded, replayed: Ok(replayed) } =>
        "{key}\n    recorded  {recorded}\n    replayed  {replayed}";
    Self::Autoscaler { key, recorded, replayed: Err(why) } =>
        "{key}\n    recorded  {recorded}\n    replayed  none: {why}";
    Self::Variant { key, recorded, replayed } =>
        "{key}\n    recorded  {}\n    replayed  {}{}",
        shown(recorded.as_deref()),
        shown(replayed.as_deref()),
        (recorded.as_deref().zip(replayed.as_deref()))
            .and_then(|(recorded, replayed)| first_step(recorded, replayed))
            .unwrap_or_default();
}

wva_base::display_of! { RecordedAutoscalerDecision:
    Self { current, desired, reason, .. } => "{current} -> {desired}: {reason}";
}

fn shown(decision: Option<&RecordedDecision>) -> String {
    decision.map_or_else(|| "none".to_owned(), ToString::to_string)
}

/// The first step that differs where count and reason do not show it.
fn first_step(recorded: &RecordedDecision, replayed: &RecordedDecision) -> Option<String> {
    if recorded.to_string() != replayed.to_string() {
        return None;
    }
    let mut pairs = recorded.steps.iter().zip(&replayed.steps);
    let (before, after) = pairs.find(|(before, after)| before != after)?;
    Some(format!(
        "\n    step {}: {} -> {} {}, now {} -> {} {}",
        before.stage.as_str(),
        before.from,
        before.to,
        before.why,
        after.from,
        after.to,
        after.why
    ))
}

impl fmt::Display for RecordedDecision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |count: Option<wva_policy::units::Replicas>| {
            count.map_or_else(|| "-".to_owned(), |count| count.to_string())
        };
        let (current, target) = (count(self.current), count(self.target));
        write!(formatter, "{current} -> {target}")?;
        if let Some(stage) = self.stage {
            write!(formatter, " by {}", stage.as_str())?;
        }
        let mut steps = self.steps.iter().rev();
        let changed = steps.find(|step| step.from != step.to);
        changed.map_or(Ok(()), |step| write!(formatter, ": {}", step.why))
    }
}

/// What a decision is without the words of its steps, which hold thresholds.
fn outcome(decision: &RecordedDecision) -> impl PartialEq + use<> {
    (
        decision.current,
        decision.target,
        decision.outcome,
        decision.stage,
    )
}

/// Repeats one decision, with other settings where they are given.
pub fn replay(
    cycle: &RecordedCycle,
    settings: Option<&DynamicSettings>,
) -> Result<ReplayedCycle, serde_json::Error> {
    let plan = plan(
        &cycle.snapshot,
        &cycle.learned,
        settings.unwrap_or(&cycle.settings),
        cycle.generation,
        cycle.now,
    );
    let replayed = RecordedDecisions::of(&plan)?;
    let recorded = &cycle.decided;
    let keys: BTreeSet<&VariantKey> = recorded
        .variants
        .keys()
        .chain(replayed.variants.keys())
        .collect();
    let mut differences = Vec::new();
    for key in keys {
        let (before, after) = (recorded.variants.get(key), replayed.variants.get(key));
        let is_same = match settings {
            None => before == after,
            Some(_) => before.map(outcome) == after.map(outcome),
        };
        if !is_same {
            differences.push(DecisionDifference::Variant {
                key: key.clone(),
                recorded: before.cloned().map(Box::new),
                replayed: after.cloned().map(Box::new),
            });
        }
    }
    // Figures hold thresholds as well.
    if differences.is_empty() && settings.is_none() && recorded.digest != replayed.digest {
        differences.push(DecisionDifference::Figures);
    }
    Ok(ReplayedCycle { plan, differences })
}

/// Repeats one decision about a `PodAutoscaler`. No setting counts for it.
///
/// # Errors
/// A figure cannot be written as JSON.
pub fn replay_autoscaler(
    recorded: &RecordedAutoscaler,
) -> Result<ReplayedAutoscaler, serde_json::Error> {
    let before = &recorded.decided;
    let differs = |replayed| DecisionDifference::Autoscaler {
        key: recorded.key(),
        recorded: Box::new(before.clone()),
        replayed,
    };
    let policy = match recorded.object.check() {
        Ok(policy) => policy,
        Err(violations) => {
            return Ok(ReplayedAutoscaler {
                decision: None,
                difference: Some(differs(Err(violations.to_string()))),
            });
        }
    };
    let (decision, state) = decide(&policy, &recorded.view(), &recorded.state, recorded.now);
    let replayed = RecordedAutoscalerDecision::of(&decision, &state)?;
    let difference = if replayed == *before {
        None
    } else if replayed.to_string() == before.to_string() {
        Some(DecisionDifference::Figures)
    } else {
        Some(differs(Ok(Box::new(replayed))))
    };
    Ok(ReplayedAutoscaler {
        decision: Some(decision),
        difference,
    })
}
