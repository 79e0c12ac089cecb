//! Which accelerator a variant runs on.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The accelerator of a variant, the value of the `accelerator_type` label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Accelerator {
    /// Read from the target's node selector, its node affinity or the object's label.
    Named(Arc<str>),
    /// Nowhere stated.
    Unresolved,
}

impl Accelerator {
    /// The label value; `unresolved` where nothing is stated.
    pub fn label(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::Unresolved => "unresolved",
        }
    }
}

/// The part of a pod template's placement that can name an accelerator. Keys that
/// [`names_accelerator`] does not know need not be kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placement {
    /// `nodeSelector`.
    pub selector: BTreeMap<Arc<str>, Arc<str>>,
    /// Expressions of the required node affinity, in order.
    pub required: Vec<NodeExpression>,
    /// Expressions of the preferred node affinity, in order.
    pub preferred: Vec<NodeExpression>,
}

/// One `matchExpressions` entry of a node affinity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeExpression {
    /// Label of the node.
    pub key: Arc<str>,
    /// `In`, `Exists` and so on.
    pub operator: Arc<str>,
    /// Values, in order.
    pub values: Vec<Arc<str>>,
}

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
