//! Which accelerator a variant runs on.

use std::sync::Arc;

use super::object::{NodeExpression, Placement};
use super::snapshot::Accelerator;

/// The label by which AMD's node labeller names the product.
pub(super) const AMD_PRODUCT_NAME: &str = "amd.com/gpu.product-name";

/// The label by which GKE names the GPUs of a node, all of them NVIDIA's.
pub(super) const GKE_ACCELERATOR: &str = "cloud.google.com/gke-accelerator";

/// Node labels that name an accelerator, in the order in which they are asked.
const KEYS: [&str; 3] = ["nvidia.com/gpu.product", AMD_PRODUCT_NAME, GKE_ACCELERATOR];

/// Whether a node label names an accelerator.
pub fn names_accelerator(key: &str) -> bool {
    KEYS.contains(&key)
}

/// The accelerator by node selector, then required, then preferred node affinity of the pods, then
/// by the label of the variant. Of an affinity the first value of an `In` expression counts.
pub fn resolve(placement: &Placement, label: Option<&Arc<str>>) -> Accelerator {
    let selected =
        || KEYS.iter().find_map(|key| placement.selector.get(*key).filter(|name| !name.is_empty()));
    selected()
        .or_else(|| of_affinity(&placement.required))
        .or_else(|| of_affinity(&placement.preferred))
        .or_else(|| label.filter(|name| !name.is_empty()))
        .map_or(Accelerator::Unresolved, |name| Accelerator::Named(Arc::clone(name)))
}

fn of_affinity(expressions: &[NodeExpression]) -> Option<&Arc<str>> {
    KEYS.iter().find_map(|key| {
        expressions
            .iter()
            .filter(|expression| &*expression.key == *key && &*expression.operator == "In")
            .find_map(|expression| expression.values.first().filter(|name| !name.is_empty()))
    })
}
