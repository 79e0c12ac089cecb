//! Watchers of what limits to GPUs of nodes depend on. They notify no role: every cycle reads what there is.

use std::sync::Arc;

use kube::Api;

use super::WatcherWiring;
use crate::actors::watcher::WatchSpec;
use crate::api::gpu::{HoldingPod, OfferingNode};
use crate::api::resource_claim::ResourceClaim;
use crate::api::resource_slice::ResourceSlice;
use crate::cluster::kinds::WatchedKind;
use crate::cluster::mirror::MirrorWriter;
use crate::cluster::project::Projected;
use crate::cluster::project::device::{ClaimObject, SliceObject};
use crate::cluster::project::gpu::holds_gpus;
use crate::cluster::watch::ServedVersion;
use crate::roles::Role;
use wva_supervise::ChildSpec;

const BOUND_PODS: &str = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed";

impl WatcherWiring<'_> {
    pub(super) fn nodes(&self) -> ChildSpec<Role> {
        self.watcher(self.everywhere::<OfferingNode>(
            WatchedKind::Node,
            &self.mirrors.nodes,
            |_| true,
        ))
    }

    /// A second watch of pods, since those of other namespaces hold GPUs too and their containers
    /// concern no other.
    pub(super) fn holding_pods(&self) -> ChildSpec<Role> {
        let mut spec = self.everywhere::<HoldingPod>(
            WatchedKind::HoldingPod,
            &self.mirrors.holding_pods,
            holds_gpus,
        );
        spec.options.fields = Some(BOUND_PODS.to_owned());
        self.watcher(spec)
    }

    pub(super) fn slices(&self) -> ChildSpec<Role> {
        self.watcher(self.everywhere::<ResourceSlice>(
            WatchedKind::ResourceSlice,
            &self.mirrors.slices,
            SliceObject::has_gpus,
        ))
    }

    pub(super) fn claims(&self) -> ChildSpec<Role> {
        self.watcher(self.everywhere::<ResourceClaim>(
            WatchedKind::ResourceClaim,
            &self.mirrors.claims,
            ClaimObject::holds_gpus,
        ))
    }

    /// The objects of a kind in the whole cluster that are wanted.
    fn everywhere<K: Projected>(
        &self,
        kind: WatchedKind,
        mirror: &Arc<MirrorWriter<K::View>>,
        wanted: fn(&K::View) -> bool,
    ) -> WatchSpec<K> {
        let mut spec = Self::spec(kind, Api::all(self.client.clone()), mirror, |_| {});
        spec.wanted = Arc::new(wanted);
        let older = kind.spec().older_versions.iter();
        spec.older = older
            .map(|version| Api::all_with(self.client.clone(), &ServedVersion::Older(version)))
            .collect();
        spec
    }
}
