//! GPUs of the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::accelerator::Accelerator;
use crate::gpu::{NodeView, reconcile};
use crate::snapshot::{ClusterSnapshot, GpuInventory, ResolvedTarget, VariantView};
use crate::units::{Gpus, Replicas};

/// GPUs of the cluster: sums by type, or every node with every pod that holds GPUs, or the reason
/// why they are not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InventoryDocument {
    /// Why it is not known. Nothing grows by an inventory that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Arc<str>>,
    /// Sums by short accelerator type, like `H100`. A type that is left out does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<BTreeMap<Arc<str>, TypeDocument>>,
    /// Nodes by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<BTreeMap<Arc<str>, NodeView>>,
    /// All pods that request GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<Vec<GpuPodDocument>>,
}

/// GPUs of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TypeDocument {
    /// GPUs that schedulable nodes offer.
    pub total: u32,
    /// GPUs that pods hold. Left out: those of the replicas that the variants have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u32>,
}

/// Sums by type; of a type without a stated use, what the variants hold is in use.
pub(super) fn sums(
    types: &BTreeMap<Arc<str>, TypeDocument>,
    variants: &[VariantView],
) -> GpuInventory {
    let held = held(types.keys(), variants.iter(), |target| target.current);
    let of_fleet = |name: &Arc<str>| held.get(name).copied().unwrap_or_default();
    GpuInventory::Types {
        limits: (types.iter()).map(|(name, sums)| (Arc::clone(name), Gpus(sums.total))).collect(),
        used: (types.iter())
            .map(|(name, sums)| {
                let used = sums.used.map_or_else(|| of_fleet(name), Gpus);
                (Arc::clone(name), used)
            })
            .collect(),
    }
}

/// Types whose use is less than what ready replicas hold, each with both.
pub fn understated_use(snapshot: &ClusterSnapshot) -> Vec<(Arc<str>, Gpus, Gpus)> {
    let Some(GpuInventory::Types { limits, used }) = snapshot.gpus.as_deref() else {
        return Vec::new();
    };
    let views = snapshot.variants.values().map(|view| &**view);
    let ready = held(limits.keys(), views, |target| target.ready.min(target.current));
    let types = ready.into_iter().filter_map(|(name, held)| {
        let used = used.get(&name).copied().unwrap_or_default();
        (used < held).then_some((name, used, held))
    });
    types.collect()
}

/// GPUs of as many replicas of each variant, by the type among `types` that its accelerator means.
fn held<'t, 'v>(
    types: impl Iterator<Item = &'t Arc<str>>,
    variants: impl Iterator<Item = &'v VariantView>,
    replicas: impl Fn(&ResolvedTarget) -> Replicas,
) -> BTreeMap<Arc<str>, Gpus> {
    let mut held: BTreeMap<Arc<str>, Gpus> =
        types.map(|name| (Arc::clone(name), Gpus::ZERO)).collect();
    for view in variants {
        let kind = match &view.accelerator {
            Accelerator::Named(name) => reconcile(name, &held).cloned(),
            // With one type there is nothing to confuse it with.
            Accelerator::Unresolved if held.len() == 1 => held.keys().next().cloned(),
            Accelerator::Unresolved => None,
        };
        if let (Some(kind), Some(target)) = (kind, view.target.resolved()) {
            let gpus = view.template.gpus_taken().times(replicas(target));
            let sum = held.entry(kind).or_default();
            *sum = sum.plus(gpus);
        }
    }
    held
}

/// One pod that requests GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GpuPodDocument {
    /// Its namespace and name, like `default/llama-0`. Left out: not known, so that no pod of a variant
    /// is missed among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    /// The node that it is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Arc<str>>,
    /// Whether it has succeeded or failed. Left out: false.
    #[serde(default)]
    pub finished: bool,
    /// Whether it is deleted and not gone: it holds its GPUs until it is. Left out: false.
    #[serde(default)]
    pub terminating: bool,
    /// Requests of each container by resource.
    #[serde(default)]
    pub containers: Vec<BTreeMap<Arc<str>, u32>>,
    /// Requests of each init container by resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<BTreeMap<Arc<str>, u32>>,
}

#[cfg(test)]
mod tests {
    use super::understated_use;
    use crate::document::{Situation, SnapshotDocument};
    use crate::signal::FreshnessBands;
    use crate::snapshot::GpuInventory;

    /// Two variants of one type, spelled short and long, and one whose GPUs are those of claims.
    fn read(types: &str) -> Situation {
        let text = format!(
            "version: 1
variants:
- {{namespace: ns, name: a, model: m, accelerator: H100, gpus: {{nvidia.com/gpu: 2}}, target: {{current: 3, ready: 1}}}}
- {{namespace: ns, name: b, model: m, accelerator: NVIDIA-H100-SXM5-80GB, target: {{current: 1}}}}
- {{namespace: ns, name: c, model: m, accelerator: H100, resourceClaims: [gpu], target: {{current: 5}}}}
- {{namespace: ns, name: d, model: m, accelerator: L4, target: {{state: notFound}}}}
inventory: {{types: {{{types}}}}}
"
        );
        let document = SnapshotDocument::parse(&text).unwrap();
        document.situation(&FreshnessBands::default()).unwrap()
    }

    fn used(situation: &Situation) -> Vec<(&str, u32)> {
        let Some(GpuInventory::Types { used, .. }) = situation.snapshot.gpus.as_deref() else {
            panic!("{situation:?}");
        };
        let used = used.iter().map(|(name, gpus)| (&**name, gpus.0));
        used.collect()
    }

    #[test]
    fn of_a_type_without_a_stated_use_the_variants_hold_theirs() {
        let stated = read("H100: {total: 8, used: 8}, L4: {total: 2, used: 1}");
        assert_eq!(used(&stated), [("H100", 8), ("L4", 1)]);
        let left_out = read("H100: {total: 8}, L4: {total: 2}");
        assert_eq!(used(&left_out), [("H100", 7), ("L4", 0)]);
    }

    #[test]
    fn a_stated_use_may_leave_out_what_is_not_ready_and_no_more() {
        let found = |types: &str| {
            let found = understated_use(&read(types).snapshot).into_iter();
            let found = found.map(|(name, used, held)| (name.to_string(), used.0, held.0));
            found.collect::<Vec<_>>()
        };
        assert!(found("H100: {total: 8}").is_empty());
        assert!(found("H100: {total: 8, used: 3}").is_empty());
        assert_eq!(found("H100: {total: 8, used: 2}"), [("H100".to_owned(), 2, 3)]);
    }
}
