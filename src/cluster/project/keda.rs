//! What triggers of KEDA make of a count, by their thresholds or a formula over them.

use std::sync::Arc;

use super::scaler::{NAMESPACES, VARIANT, is_one, matched};
use crate::api::scaled_object::{ScaledObjectSpec, ScalingModifiers, Trigger};
use crate::api::text::bounded;
use crate::policy::actuation::{Absence, Aim, Input, Published};
use crate::policy::pod_autoscaler::resource_quantity::resource_quantity;
use crate::policy::series::DESIRED;

/// Longest formula that is repeated, in bytes.
const MAX_FORMULA: usize = 40;

/// Whether KEDA takes a switch for false. It parses it as Go does.
pub(super) fn is_off(stated: &str) -> bool {
    ["0", "f", "F", "false", "False", "FALSE"].contains(&stated)
}

pub(super) fn keda_aim(metric_type: Option<&str>, threshold: &str) -> Aim {
    let kind = metric_type.unwrap_or("AverageValue");
    if kind == "AverageValue" && is_one(threshold) {
        Aim::Replicas
    } else {
        Aim::Other(Arc::from(format!("{kind} {threshold}")))
    }
}

/// Whether KEDA takes the target below its minimum, or to zero, while no trigger is active.
pub(super) fn rests(spec: &ScaledObjectSpec) -> bool {
    spec.idle_replica_count.is_some() || spec.min_replica_count.unwrap_or(0) == 0
}

pub(super) fn trigger(trigger: &Trigger, rests: bool) -> Input {
    let field = |name: &str| trigger.metadata.get(name).map(String::as_str);
    let query = match (trigger.kind.as_str(), field("query")) {
        ("prometheus", Some(query)) if query.contains(DESIRED) => query,
        _ => return Input::Other,
    };
    let threshold = field("threshold").unwrap_or("nothing");
    let aim = keda_aim(trigger.metric_type.as_deref(), threshold);
    // A trigger is active above this number, so a count of 1 wakes nothing.
    let hides_one = |stated: &&str| resource_quantity(stated).is_ok_and(|number| number >= 1.0);
    let activation = field("activationThreshold").filter(hides_one);
    let aim = match (aim, activation.filter(|_| rests)) {
        (Aim::Replicas, Some(stated)) => Aim::Other(Arc::from(format!(
            "AverageValue 1 above an activationThreshold of {stated} (remove that)"
        ))),
        (aim, _) => aim,
    };
    Input::Published(Published {
        variant: matched(query, VARIANT),
        namespace: NAMESPACES.iter().find_map(|label| matched(query, label)),
        aim,
        absence: if field("ignoreNullValues").is_some_and(is_off) {
            Absence::Error
        } else {
            Absence::Zero
        },
    })
}

/// What a formula makes of the counts of all triggers, whose thresholds it replaces.
pub(super) fn formula_aim(modifiers: &ScalingModifiers) -> Option<Aim> {
    let formula = modifiers.formula.as_deref();
    let formula = formula.filter(|formula| !formula.is_empty())?;
    let target = modifiers.target.as_deref().unwrap_or("nothing");
    let aim = keda_aim(modifiers.metric_type.as_deref(), target);
    let words = match &aim {
        Aim::Replicas if is_plain(formula) => return Some(Aim::Replicas),
        Aim::Replicas => "AverageValue 1",
        Aim::Other(words) => &**words,
    };
    let formula = bounded(formula, MAX_FORMULA);
    let words = format!("{words} of the formula {formula:?}");
    Some(Aim::Other(Arc::from(words)))
}

/// Whether a formula is one count, or the highest of several.
fn is_plain(formula: &str) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let packed: String = formula.split_whitespace().collect();
    let packed = packed.replace("max(", "(");
    let mut words = packed.split(['(', ')', '[', ']', ',']);
    let is_name = |word: &str| {
        !word.starts_with(|letter: char| letter.is_ascii_digit()) && word.chars().all(is_word)
    };
    let mut calls = packed.match_indices('(');
    let is_call = |at: usize| packed.get(..at).is_some_and(|text| text.ends_with(is_word));
    words.all(is_name) && !calls.any(|(at, _)| is_call(at))
}

/// The same input with another aim.
pub(super) fn aimed(input: Input, aim: &Aim) -> Input {
    let aim = aim.clone();
    match input {
        Input::Published(published) => Input::Published(Published { aim, ..published }),
        Input::ExternalScaler {
            variant, is_asked, ..
        } => Input::ExternalScaler {
            variant,
            aim,
            is_asked,
        },
        Input::Other => Input::Other,
    }
}
