//! Variants of one model, which are decided on together.

use std::collections::BTreeMap;

use super::key::{ModelKey, VariantKey};
use super::snapshot::{ClusterSnapshot, ResolvedTarget, TargetView, VariantView};

#[derive(Debug, Default)]
pub(super) struct Group<'a> {
    pub(super) resolved: Vec<(&'a VariantView, &'a ResolvedTarget)>,
    pub(super) others: Vec<&'a VariantView>,
}

impl<'a> Group<'a> {
    /// Variants that may have unseen replicas; nothing of the model shrinks meanwhile.
    pub(super) fn unseen(&self) -> Vec<&'a VariantKey> {
        let is_unseen = |target: &TargetView| {
            matches!(target, TargetView::Unknown { .. } | TargetView::Malformed { .. })
        };
        self.others.iter().filter(|view| is_unseen(&view.target)).map(|view| &view.key).collect()
    }

    /// Whether replicas may serve the model that do not report as its replicas: unseen ones, and those of
    /// a target that is not one variant's alone, or cannot be scaled.
    pub(super) fn may_serve_unseen(&self) -> bool {
        let mut targets = self.others.iter().map(|view| &view.target);
        targets.any(|target| !matches!(target, TargetView::NotFound { .. }))
    }
}

pub(super) fn group_by_model(snapshot: &ClusterSnapshot) -> BTreeMap<&ModelKey, Group<'_>> {
    let mut groups: BTreeMap<&ModelKey, Group<'_>> = BTreeMap::new();
    for view in snapshot.variants.values() {
        let group = groups.entry(&view.model).or_default();
        match view.target.resolved() {
            Some(target) => group.resolved.push((view, target)),
            None => group.others.push(view),
        }
    }
    groups
}
