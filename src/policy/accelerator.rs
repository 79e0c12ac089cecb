//! Which accelerator a variant runs on.

use std::sync::Arc;

use super::object::{NodeExpression, Placement};
use super::snapshot::Accelerator;

/// Node labels that name an accelerator, in the order in which they are asked.
const KEYS: [&str; 3] = [
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
];

/// Whether a node label names an accelerator.
pub fn names_accelerator(key: &str) -> bool {
    KEYS.contains(&key)
}

/// The accelerator by node selector, then required, then preferred node affinity of the pods, then
/// by the label of the variant. Of an affinity the first value of an `In` expression counts.
pub fn resolve(placement: &Placement, label: Option<&Arc<str>>) -> Accelerator {
    let selected = || {
        KEYS.iter()
            .find_map(|key| placement.selector.get(*key).filter(|name| !name.is_empty()))
    };
    selected()
        .or_else(|| of_affinity(&placement.required))
        .or_else(|| of_affinity(&placement.preferred))
        .or_else(|| label.filter(|name| !name.is_empty()))
        .map_or(Accelerator::Unresolved, |name| {
            Accelerator::Named(Arc::clone(name))
        })
}

fn of_affinity(expressions: &[NodeExpression]) -> Option<&Arc<str>> {
    KEYS.iter().find_map(|key| {
        expressions
            .iter()
            .filter(|expression| &*expression.key == *key && &*expression.operator == "In")
            .find_map(|expression| expression.values.first().filter(|name| !name.is_empty()))
    })
}
