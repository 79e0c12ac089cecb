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
    fn of(views: &[&'a VariantView]) -> Self {
        let mut group = Self::default();
        for view in views {
            match view.target.resolved() {
                Some(target) => group.resolved.push((view, target)),
                None => group.others.push(view),
            }
        }
        group
    }

    /// Variants that may have unseen replicas; nothing of the model shrinks meanwhile.
    pub(super) fn unseen(&self) -> Vec<&'a VariantKey> {
        let is_unseen = |target: &TargetView| {
            matches!(
                target,
                TargetView::Unknown { .. } | TargetView::Malformed { .. }
            )
        };
        self.others
            .iter()
            .filter(|view| is_unseen(&view.target))
            .map(|view| &view.key)
            .collect()
    }

    /// Whether replicas may serve the model that do not report as its replicas: unseen ones, and those of
    /// a target that is not one variant's alone, or cannot be scaled.
    pub(super) fn may_serve_unseen(&self) -> bool {
        let mut targets = self.others.iter().map(|view| &view.target);
        targets.any(|target| !matches!(target, TargetView::NotFound { .. }))
    }
}

pub(super) fn group_by_model(snapshot: &ClusterSnapshot) -> BTreeMap<&ModelKey, Group<'_>> {
    let mut views: Vec<&VariantView> = snapshot.variants.values().map(|view| &**view).collect();
    // Names of the variants of a model are often alike, so that most of it is in order.
    views.sort_by(|one, other| one.model.cmp(&other.model));
    let groups = views.chunk_by(|one, other| one.model == other.model);
    let keyed = groups.filter_map(|views| Some((&views.first()?.model, Group::of(views))));
    keyed.collect()
}
