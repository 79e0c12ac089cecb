//! GPU quotas as `limiters[]` states them.

use std::collections::{BTreeMap, BTreeSet};

use serde_yaml::Value;

use super::document::LimiterDocument;
use wva_base::names::check_namespace;
use wva_base::text::shortened;
use wva_policy::gpu::reconcile;
use wva_policy::params::{Limiter, LimiterScope, Quota, Quotas};

/// Largest quota of one accelerator type.
const MAX_QUOTA: i64 = 1_048_576;

/// Most contradictions of one limiter that are reported.
const MAX_TOLD: usize = 8;

/// Namespaces that have a quota and are excluded: the quota does not count.
pub(super) fn contradictions(limiter: &Limiter) -> impl Iterator<Item = String> {
    let quotas = match &limiter.scope {
        LimiterScope::Namespaces(quotas) => Some(quotas),
        LimiterScope::Cluster(_) => None,
    };
    let names = quotas.into_iter().flat_map(BTreeMap::keys);
    let both = names.filter(|name| limiter.exclude.contains(*name));
    both.take(MAX_TOLD).map(|name| {
        format!(
            "namespace {:?} stands in exclude and in namespaceQuotas; it is not limited, remove it \
                 from one of them",
            shortened(name)
        )
    })
}

/// Accelerators that have a quota under each of two spellings: the limiter keeps a pool for each.
pub(super) fn respelt(limiter: &Limiter) -> impl Iterator<Item = String> {
    let scoped: Vec<(String, &Quotas)> = match &limiter.scope {
        LimiterScope::Cluster(quotas) => vec![("quotas".to_owned(), quotas)],
        LimiterScope::Namespaces(namespaces) => (namespaces.iter())
            .map(|(name, quotas)| (format!("namespaceQuotas.{}", shortened(name)), quotas))
            .collect(),
    };
    let respelt = scoped.into_iter().flat_map(|(place, quotas)| {
        let mut spellings = BTreeMap::new();
        quotas.keys().filter_map(move |name| {
            let first = *spellings.entry(name.to_ascii_lowercase()).or_insert(name);
            (first != name).then(|| {
                let (first, name) = (shortened(first), shortened(name));
                format!(
                    "{place}: {first:?} and {name:?} are one type with two quotas, and each \
                     counts the variants that spell it so; remove one of them"
                )
            })
        })
    });
    respelt.take(MAX_TOLD)
}

/// Namespaces of a fleet, each with the accelerators of its variants.
pub type FleetTypes<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// The key of quotas for the namespaces that are not listed.
const OTHER_NAMESPACES: &str = "default";

/// Places of a limiter that concern no variant of a fleet.
pub(crate) fn without_variants(limiter: &Limiter, fleet: &FleetTypes<'_>) -> Vec<String> {
    const REMEDY: &str = "correct its name, or remove it";
    let accelerators: BTreeSet<&str> = fleet.values().flatten().copied().collect();
    let types = |place: &str, quotas: &Quotas| -> Vec<String> {
        let named: BTreeSet<&String> =
            accelerators.iter().filter_map(|name| reconcile(name, quotas)).collect();
        let others = quotas.keys().filter(|kind| !named.contains(kind));
        others
            .map(|kind| {
                format!("{place}: no variant has accelerator {:?}; {REMEDY}", shortened(kind))
            })
            .collect()
    };
    let mut places = Vec::new();
    match &limiter.scope {
        LimiterScope::Cluster(quotas) => places.extend(types("quotas", quotas)),
        LimiterScope::Namespaces(namespaces) => {
            for (name, quotas) in namespaces {
                if name == OTHER_NAMESPACES || fleet.contains_key(name.as_str()) {
                    places.extend(types(&format!("namespaceQuotas.{}", shortened(name)), quotas));
                } else {
                    let name = shortened(name);
                    places.push(format!(
                        "namespaceQuotas: no variant is in namespace {name:?}; {REMEDY}"
                    ));
                }
            }
        }
    }
    let exclude = limiter.exclude.iter();
    let strangers = exclude.filter(|name| !fleet.contains_key(name.as_str()));
    places.extend(strangers.map(|name| {
        let name = shortened(name);
        format!("exclude: no variant is in namespace {name:?}; {REMEDY}")
    }));
    places
}

pub(super) fn judge_limiters(
    documents: Vec<LimiterDocument>,
    faults: &mut Vec<String>,
) -> Vec<Limiter> {
    let mut names = BTreeSet::new();
    let mut limiters = Vec::new();
    for (index, document) in documents.into_iter().enumerate() {
        let name = document.name.clone().unwrap_or_default();
        let place = format!("limiters[{index}]");
        if name.is_empty() {
            faults.push(format!("{place}: a name is required: write one like name: gpus"));
        } else if !names.insert(name.clone()) {
            faults.push(format!("{place}: name {name:?} stands twice: rename one of them"));
        }
        match document.kind.as_deref() {
            Some("quota") => {}
            other => faults.push(format!(
                "{place}: type must be \"quota\", got {:?}",
                other.unwrap_or_default()
            )),
        }
        let scope = judge_scope(&place, &document, faults);
        let exclude = judge_exclude(&place, document.exclude.as_ref(), faults);
        if let Some(scope) = scope {
            limiters.push(Limiter { name, scope, exclude });
        }
    }
    limiters
}

/// Namespaces of a list; as elsewhere, one of digits needs no quotes.
fn judge_exclude(
    place: &str,
    written: Option<&Value>,
    faults: &mut Vec<String>,
) -> BTreeSet<String> {
    let listed = match written {
        None => return BTreeSet::new(),
        Some(Value::Sequence(listed)) => listed,
        Some(other) => {
            faults.push(format!(
                "{place}.exclude must be a list of namespaces, got {}: write one like \
                 [kube-system]",
                shown(other)
            ));
            return BTreeSet::new();
        }
    };
    let names = listed.iter().enumerate().filter_map(|(index, name)| {
        let text = match name {
            Value::String(text) => Some(text.clone()),
            Value::Number(_) | Value::Bool(_) => Some(shown(name)),
            _ => None,
        };
        if text.is_none() {
            faults.push(format!(
                "{place}.exclude[{index}] must be a namespace, got {}: write one like \
                 kube-system",
                shown(name)
            ));
        }
        text
    });
    names.collect()
}

/// The fields of a mapping; an empty one may be written as nothing.
fn fields<'a>(
    place: &str,
    written: &'a Value,
    example: &str,
    faults: &mut Vec<String>,
) -> BTreeMap<String, &'a Value> {
    match written {
        Value::Mapping(mapping) => (mapping.iter())
            .map(|(name, value)| match name {
                Value::String(name) => (name.clone(), value),
                Value::Null => (String::new(), value),
                other => (shown(other), value),
            })
            .collect(),
        Value::Null => BTreeMap::new(),
        other => {
            faults.push(format!(
                "{place} must be a mapping, got {}: write one like {example}",
                shown(other)
            ));
            BTreeMap::new()
        }
    }
}

/// Names every quota whose accelerator type no variant has, or that is outside its range.
fn judge_quotas(
    place: &str,
    written: &BTreeMap<String, &Value>,
    faults: &mut Vec<String>,
) -> Quotas {
    let mut quotas = Quotas::new();
    for (accelerator, value) in written {
        let bare = accelerator.trim();
        if bare.is_empty() {
            faults.push(format!(
                "{place}: quota of {accelerator:?} needs an accelerator type: write one, for example \
                 H100"
            ));
        } else if bare != accelerator {
            faults.push(format!(
                "{place}: quota of {accelerator:?} has blanks around its accelerator type: write {bare:?}"
            ));
        }
        match quota(value) {
            Some(quota) => {
                quotas.insert(accelerator.clone(), quota);
            }
            None => faults.push(format!(
                "{place}: quota of {accelerator:?} must be -1 (unlimited) or 0 to {MAX_QUOTA}, \
                 got {}",
                refused(value)
            )),
        }
    }
    quotas
}

fn judge_scope(
    place: &str,
    document: &LimiterDocument,
    faults: &mut Vec<String>,
) -> Option<LimiterScope> {
    let quotas = (document.quotas.as_ref()).map(|written| {
        let quotas = fields(&format!("{place}.quotas"), written, "{H100: 4}", faults);
        judge_quotas(place, &quotas, faults)
    });
    let namespaces = (document.namespace_quotas.as_ref()).map(|written| {
        let place = format!("{place}.namespaceQuotas");
        let namespaces = fields(&place, written, "{default: {H100: 4}}", faults).into_iter();
        let judged = namespaces.map(|(name, written)| {
            if let Err(error) = check_namespace(&name) {
                faults.push(format!("{place}: {error}: write a valid name, or default"));
            }
            let place = format!("{place}.{name}");
            let quotas = fields(&place, written, "{H100: 4}", faults);
            (name, judge_quotas(&place, &quotas, faults))
        });
        judged.collect()
    });
    match (document.scope.as_deref(), quotas, namespaces) {
        (Some("cluster"), Some(quotas), None) => Some(LimiterScope::Cluster(quotas)),
        (Some("namespace"), None, Some(namespaces)) => Some(LimiterScope::Namespaces(namespaces)),
        (Some("cluster"), _, _) => {
            faults.push(format!("{place}: scope cluster needs quotas and no namespaceQuotas"));
            None
        }
        (Some("namespace"), _, _) => {
            faults.push(format!("{place}: scope namespace needs namespaceQuotas and no quotas"));
            None
        }
        (other, _, _) => {
            faults.push(format!(
                "{place}: scope must be \"cluster\" or \"namespace\", got {:?}",
                other.unwrap_or_default()
            ));
            None
        }
    }
}

fn quota(value: &Value) -> Option<Quota> {
    match value.as_i64()? {
        -1 => Some(Quota::Unlimited),
        number @ 0..=MAX_QUOTA => u32::try_from(number).ok().map(Quota::AtMost),
        _ => None,
    }
}

/// A quota that is not accepted, with the remedy where it is no whole number.
fn refused(value: &Value) -> String {
    match value {
        Value::Number(number) if !number.is_f64() => number.to_string(),
        _ => format!("{}: write a whole number without quotes", shown(value)),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        Value::Bool(switch) => switch.to_string(),
        Value::String(text) => format!("{:?}", shortened(text)),
        Value::Null => "nothing".to_owned(),
        Value::Sequence(_) => "a list".to_owned(),
        Value::Mapping(_) | Value::Tagged(_) => "a mapping".to_owned(),
    }
}
