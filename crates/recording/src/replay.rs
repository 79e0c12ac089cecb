//! Repeats recorded decisions.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::autoscaler::{RecordedAutoscaler, RecordedAutoscalerDecision};
use super::cycle::{RecordedCycle, RecordedDecision, RecordedDecisions, figures};
use wva_policy::key::{ObjectKey, VariantKey};
use wva_policy::params::DynamicSettings;
use wva_policy::plan;
use wva_policy::plan::Plan;
use wva_policy::pod_autoscaler::{AutoscalerDecision, decide};

/// Most figures that are named.
const MOST_NAMED: usize = 8;
/// Most letters of a figure that are shown.
const SHOWN: usize = 60;

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
    Figures {
        /// The first ones, with both values, as far as they were recorded.
        named: Vec<String>,
    },
}

wva_base::display_of! { DecisionDifference:
    Self::Figures { named } => "the decisions are the same, their figures differ{}{}",
        if named.is_empty() { "" } else { "\n    " },
        named.join("\n    ");
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

/// Names figures below a path that differ, until there are enough.
fn name_differing(path: &str, before: &Value, after: &Value, named: &mut Vec<String>) {
    if before == after || named.len() >= MOST_NAMED {
        return;
    }
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let fields: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for name in fields {
                let [before, after] = [old, new].map(|of| of.get(name).unwrap_or(&Value::Null));
                name_differing(&format!("{path} {name}"), before, after, named);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (place, (before, after)) in old.iter().zip(new).enumerate() {
                name_differing(&format!("{path} {place}"), before, after, named);
            }
        }
        _ => {
            let (before, after) = (shortened(before), shortened(after));
            named.push(format!("{path}: recorded {before}, replayed {after}"));
        }
    }
}

fn shortened(figure: &Value) -> String {
    let text = figure.to_string();
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// What a decision is without the words of its steps, which hold thresholds.
fn outcome(decision: &RecordedDecision) -> impl PartialEq + use<> {
    (decision.current, decision.target, decision.outcome, decision.stage)
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
    let keys: BTreeSet<&VariantKey> =
        recorded.variants.keys().chain(replayed.variants.keys()).collect();
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
        let mut named = Vec::new();
        for object in figures(&plan) {
            let (object, after) = object?;
            if let Some(before) = recorded.figures.get(&object) {
                name_differing(&object, before, &after, &mut named);
            }
        }
        differences.push(DecisionDifference::Figures { named });
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
        let steps = |decision: &RecordedAutoscalerDecision| serde_json::to_value(&decision.steps);
        let mut named = Vec::new();
        let path = format!("{} steps", recorded.key());
        name_differing(&path, &steps(before)?, &steps(&replayed)?, &mut named);
        Some(DecisionDifference::Figures { named })
    } else {
        Some(differs(Ok(Box::new(replayed))))
    };
    Ok(ReplayedAutoscaler { decision: Some(decision), difference })
}
