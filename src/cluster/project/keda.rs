//! What triggers of KEDA make of a count, by their thresholds or a formula over them.

use std::sync::Arc;

use super::promql::{NAME, QueryNode, matchers, parse};
use super::scaler::{NAMESPACES, VARIANT, is_one};
use crate::api::scaled_object::{ScaledObjectSpec, ScalingModifiers, Trigger};
use crate::api::text::bounded;
use crate::policy::pod_autoscaler::resource_quantity::resource_quantity;
use crate::policy::scaler::{Absence, Aim, Input, Published};
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
        ("prometheus", Some(query)) if reads_count(query) => query,
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
    // What the first of the labels selects is the namespace of the count, also where it is not clear.
    let mut namespaces = NAMESPACES.iter().map(|label| wanted(query, label));
    let namespace = namespaces.find(|wanted| *wanted != WantedLabel::Any);
    Input::Published(Published {
        variant: matched(query, VARIANT),
        is_unclear: wanted(query, VARIANT) == WantedLabel::Unclear,
        namespace: namespace.and_then(WantedLabel::one),
        aim,
        absence: if field("ignoreNullValues").is_some_and(is_off) {
            Absence::Error
        } else {
            Absence::Zero
        },
    })
}

/// What a query wants of a label of the count. The clearer one is greater.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum WantedLabel {
    Any,
    /// What a pattern, a join or a rule makes of it is not known.
    Unclear,
    One(Arc<str>),
}

impl WantedLabel {
    fn one(self) -> Option<Arc<str>> {
        match self {
            Self::One(value) => Some(value),
            Self::Any | Self::Unclear => None,
        }
    }
}

/// Whether a selector is of the count, or of a recording rule over it. A pattern may be.
pub(crate) fn is_count(selector: &str) -> bool {
    let Some(matchers) = matchers(selector) else {
        return selector.contains(DESIRED);
    };
    let mut names = matchers.into_iter().filter(|(label, _, _)| *label == NAME);
    names.any(|(_, sign, name)| match sign {
        "=" if !name.contains(':') => name == DESIRED,
        "=" | "=~" => name.contains(DESIRED),
        _ => false,
    })
}

/// Whether a query is of the count, as far as it is read.
fn reads_count(query: &str) -> bool {
    let is_read = |node: QueryNode<'_>| node.selectors().into_iter().any(is_count);
    query.contains(DESIRED) && parse(query).ok().is_none_or(is_read)
}

fn wanted_value(label: &str, sign: &str, value: &str) -> WantedLabel {
    let is_name = |letter: char| letter.is_alphanumeric() || "-_".contains(letter);
    match sign {
        "=" if value.contains('\\') => WantedLabel::Unclear,
        "=" if !value.is_empty() => WantedLabel::One(Arc::from(value)),
        "=~" => match value.trim_matches(['^', '$', '(', ')']) {
            name if !name.is_empty() && name.chars().all(is_name) => {
                WantedLabel::One(Arc::from(name))
            }
            _ => WantedLabel::Unclear,
        },
        // Of several namespaces that a query leaves out, one may be all others.
        "!=" | "!~" if label != VARIANT => WantedLabel::Unclear,
        _ => WantedLabel::Any,
    }
}

fn wanted_by(selector: &str, label: &str) -> WantedLabel {
    let Some(matchers) = matchers(selector) else {
        return WantedLabel::Unclear;
    };
    let of_label = matchers.iter().filter(|(name, _, _)| *name == label);
    let wanted = of_label.map(|(_, sign, value)| wanted_value(label, sign, value));
    // A recording rule may be over one variant.
    let is_rule = |value: &str| value.contains(':') && value.contains(DESIRED);
    let mut names = matchers.iter().filter(|(name, _, _)| *name == NAME);
    match wanted.max().unwrap_or(WantedLabel::Any) {
        WantedLabel::Any if names.any(|(_, _, value)| is_rule(value)) => WantedLabel::Unclear,
        wanted => wanted,
    }
}

fn wanted(query: &str, label: &str) -> WantedLabel {
    let Ok(node) = parse(query) else {
        return WantedLabel::Unclear;
    };
    let selectors = node.selectors().into_iter();
    let (counts, others): (Vec<&str>, Vec<&str>) = selectors.partition(|one| is_count(one));
    let mut all = counts.iter().map(|one| wanted_by(one, label));
    let first = all.next().unwrap_or(WantedLabel::Any);
    let mut others = others.iter().map(|one| wanted_by(one, label));
    let is_any = first == WantedLabel::Any;
    if all.any(|one| one != first) || (is_any && others.any(|one| one != first)) {
        return WantedLabel::Unclear;
    }
    first
}

/// The value that a query wants of a label of the count, where it wants exactly one.
pub(crate) fn matched(query: &str, label: &str) -> Option<Arc<str>> {
    wanted(query, label).one()
}

/// Whether a query selects by a label of the count, be it one value or another condition.
pub(crate) fn selects(query: &str, label: &str) -> bool {
    wanted(query, label) != WantedLabel::Any
}

/// Whether a query selects by a namespace of the count.
pub(crate) fn selects_namespace(query: &str) -> bool {
    NAMESPACES.into_iter().any(|label| selects(query, label))
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
        Input::ExternalScaler { variant, is_asked, .. } => {
            Input::ExternalScaler { variant, aim, is_asked }
        }
        Input::Other => Input::Other,
    }
}
