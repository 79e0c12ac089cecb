//! What is watched, where, and which roles are notified.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Service};
use kube::core::PartialObjectMeta;
use kube::{Api, Client, Resource};

use crate::actors::mailboxes::Mailboxes;
use crate::actors::pod_autoscalers::AutoscalerInvalidation;
use crate::actors::variants::Invalidation;
use crate::actors::watcher::{WatchSpec, WatchUpdate, Watcher};
use crate::api::leader_worker_set::LeaderWorkerSet;
use crate::api::pod::SlimPod;
use crate::api::resource_claim_template::ResourceClaimTemplate;
use crate::api::scaled_object::ScaledObject;
use crate::api::service_monitor::ServiceMonitor;
use crate::cluster::event::{EventNotice, EventReason, Regarding};
use crate::cluster::kinds::{KindSpec, WatchedKind};
use crate::cluster::mirror::{MirrorWriter, ObjectKey, ObjectUpdate};
use crate::cluster::project::Projected;
use crate::cluster::project::config_map::ConfigMapObject;
use crate::cluster::project::scaler::ScalerObject;
use crate::cluster::project::service::ServiceObject;
use crate::cluster::project::service_monitor::ServiceMonitorObject;
use crate::cluster::watch::{Guarded, ServedVersion, WatchOptions};
use crate::policy::object::{ControllerRef, PodObject, ReplicaSetObject, TargetObject};
use crate::policy::pod_autoscaler::object::KIND;
use crate::roles::Role;
use crate::serve::access::front_proxy;
use crate::settings::StaticSettings;
use crate::state::Readers;
use crate::state::changes::FollowedObject;
use crate::state::mirrors::MirrorWriters;
use crate::state::permission_reporter::PermissionReporter;
use crate::state::relist::RelistResponders;
use wva_supervise::{Address, ChildSpec};

mod autoscalers;
mod gpus;
mod pools;
mod variants;

/// How the name of the ServiceMonitor ends that makes Prometheus scrape this controller: the chart puts
/// the release before it, kustomize `workload-variant-autoscaler-controller-manager`.
const OWN_SERVICE_MONITOR: &str = "-metrics-monitor";

/// What every watcher is built from.
#[derive(Clone)]
pub(crate) struct WatcherWiring<'a> {
    pub(crate) client: Client,
    pub(crate) shared: Readers,
    /// The mirrors, of which each watcher writes one.
    pub(crate) mirrors: &'a MirrorWriters,
    /// Requests for objects that are variants to be listed again.
    pub(crate) relists: &'a RelistResponders,
    pub(crate) mailboxes: Arc<Mailboxes>,
    pub(crate) permissions: PermissionReporter,
    pub(crate) statics: Arc<StaticSettings>,
}

wva_base::debug_of!(WatcherWiring<'_>: shared);

/// The watchers, in the order in which they start.
pub(crate) fn watchers(wiring: &WatcherWiring<'_>) -> Vec<ChildSpec<Role>> {
    let (mirrors, watched) = (wiring.mirrors, &wiring.shared.mirrors);
    let system = &watched.scope().system_namespace;
    let mut children = vec![
        wiring.variants(),
        wiring.pod_autoscalers(),
        wiring.workloads::<Deployment>(WatchedKind::Deployment, &mirrors.deployments),
        wiring.workloads::<StatefulSet>(WatchedKind::StatefulSet, &mirrors.stateful_sets),
        wiring.workloads::<LeaderWorkerSet>(
            WatchedKind::LeaderWorkerSet,
            &mirrors.leader_worker_sets,
        ),
        wiring.config_maps(WatchedKind::ConfigMap, wiring.api(), &mirrors.config_maps),
        wiring.config_maps(
            WatchedKind::SystemConfigMap,
            Api::namespaced(wiring.client.clone(), system),
            &mirrors.system_config_maps,
        ),
        wiring.namespaces(),
        wiring.pods(),
        wiring.replica_sets(),
        wiring.nodes(),
        wiring.holding_pods(),
        // No role is notified: every cycle reads what there is.
        wiring.plain::<ResourceClaimTemplate, _, _>(
            WatchedKind::ResourceClaimTemplate,
            &mirrors.claim_templates,
            |_| None,
        ),
        wiring.slices(),
        wiring.claims(),
        wiring.pools(WatchedKind::InferencePoolV1, "v1", &mirrors.pools_v1),
        wiring.pools(WatchedKind::InferencePoolV1Alpha2, "v1alpha2", &mirrors.pools_v1alpha2),
        wiring.pools(WatchedKind::InferencePoolGateway, "v1", &mirrors.pools_gateway),
        wiring.pools(WatchedKind::InferencePoolLlmD, "v1", &mirrors.pools_llm_d),
        wiring.scalers::<HorizontalPodAutoscaler>(
            WatchedKind::HorizontalPodAutoscaler,
            &mirrors.horizontal_pod_autoscalers,
        ),
        wiring.scalers::<ScaledObject>(WatchedKind::ScaledObject, &mirrors.scaled_objects),
        wiring.services(),
        wiring.service_monitors(),
        wiring.authentication(),
    ];
    children.retain(|child| match child.role() {
        Role::Watcher(kind) => watched.is_watched(*kind),
        _ => true,
    });
    children
}

impl WatcherWiring<'_> {
    fn api<K>(&self) -> Api<Guarded<K>>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        self.api_in(&ServedVersion::Own)
    }

    fn api_in<K>(&self, version: &ServedVersion) -> Api<Guarded<K>>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        scoped(&self.client, self.statics.scope.watch_namespace.as_deref(), version)
    }

    /// A kind of which every object is wanted and a malformed one is treated as absent.
    fn spec<K: Projected>(
        kind: WatchedKind,
        api: Api<Guarded<K>>,
        mirror: &Arc<MirrorWriter<K::View>>,
        notify: impl Fn(WatchUpdate<'_, K::View>) + Send + Sync + 'static,
    ) -> WatchSpec<K> {
        let KindSpec { group, resource, .. } = kind.spec();
        let url = api.resource_url();
        debug_assert!(url.contains(group) && url.ends_with(resource), "{url}");
        WatchSpec {
            kind,
            api: Arc::new(api),
            older: Arc::default(),
            discovery: None,
            options: WatchOptions { page_size: kind.spec().page_size, ..WatchOptions::default() },
            wanted: Arc::new(|_| true),
            malformed: |_, _, _| None,
            mirror: Arc::clone(mirror),
            notify: Arc::new(notify),
            relists: None,
        }
    }

    fn watcher<K: Projected>(&self, spec: WatchSpec<K>) -> ChildSpec<Role> {
        let (shared, permissions) = (self.shared.clone(), self.permissions.clone());
        let spec = Arc::new(spec);
        wva_supervise::child(Role::Watcher(spec.kind), &Address::vacant(), move |_epoch| {
            Watcher::new(Arc::clone(&spec), shared.clone(), permissions.clone())
        })
    }

    /// A kind of scale target; what one changes may also be below another one.
    fn workloads<K>(
        &self,
        kind: WatchedKind,
        mirror: &Arc<MirrorWriter<TargetObject>>,
    ) -> ChildSpec<Role>
    where
        K: Projected<View = TargetObject> + Resource<Scope = NamespaceResourceScope>,
    {
        self.plain::<K, _, _>(kind, mirror, |changed| {
            let states = changed.before.iter().chain(&changed.after);
            let mut dirty: BTreeSet<Invalidation> = states
                .filter_map(|one| controlled(&one.key.namespace, one.controller.as_ref()))
                .collect();
            let known = changed.after.as_ref().or(changed.before.as_ref());
            dirty.extend(known.map(|target| Invalidation::Target(target.key.clone())));
            dirty
        })
    }

    /// A namespaced kind whose changes concern the variants that `concerned` names.
    fn plain<K, F, I>(
        &self,
        kind: WatchedKind,
        mirror: &Arc<MirrorWriter<K::View>>,
        concerned: F,
    ) -> ChildSpec<Role>
    where
        K: Projected + Resource<Scope = NamespaceResourceScope>,
        F: Fn(&ObjectUpdate<K::View>) -> I + Send + Sync + 'static,
        I: IntoIterator<Item = Invalidation>,
    {
        let mailboxes = Arc::clone(&self.mailboxes);
        let notify = move |update: WatchUpdate<'_, K::View>| match update {
            WatchUpdate::Changed(changed) => mailboxes.dirty.insert_all(concerned(changed)),
            WatchUpdate::Synced => mailboxes.dirty.insert(Invalidation::Everything),
        };
        let older = kind.spec().older_versions.iter();
        self.watcher(WatchSpec::<K> {
            older: older.map(|version| self.api_in(&ServedVersion::Older(version))).collect(),
            ..Self::spec(kind, self.api(), mirror, notify)
        })
    }

    fn config_maps(
        &self,
        kind: WatchedKind,
        api: Api<Guarded<ConfigMap>>,
        mirror: &Arc<MirrorWriter<ConfigMapObject>>,
    ) -> ChildSpec<Role> {
        let mailboxes = Arc::clone(&self.mailboxes);
        let names = self.statics.config_maps.clone();
        let notify = move |_: WatchUpdate<'_, _>| mailboxes.config.insert(());
        self.watcher(WatchSpec::<ConfigMap> {
            wanted: Arc::new(move |object| names.purpose(&object.name).is_some()),
            ..Self::spec(kind, api, mirror, notify)
        })
    }

    /// No role is notified: it is read whenever a client comes.
    fn authentication(&self) -> ChildSpec<Role> {
        let api = Api::namespaced(self.client.clone(), front_proxy::NAMESPACE);
        let kind = WatchedKind::AuthenticationConfigMap;
        let mirror = &self.mirrors.authentication;
        let mut spec = Self::spec::<ConfigMap>(kind, api, mirror, |_| {});
        spec.options.fields = Some(format!("metadata.name={}", front_proxy::CONFIG_MAP));
        self.watcher(spec)
    }

    fn namespaces(&self) -> ChildSpec<Role> {
        let mailboxes = Arc::clone(&self.mailboxes);
        let mirror = &self.mirrors.namespaces;
        let notify = move |update: WatchUpdate<'_, _>| {
            mailboxes.config.insert(());
            match update {
                WatchUpdate::Changed(changed) => {
                    let name = &changed.key.name;
                    mailboxes.dirty.insert(Invalidation::Namespace(Arc::clone(name)));
                    mailboxes
                        .autoscalers
                        .insert(AutoscalerInvalidation::Namespace(Arc::clone(name)));
                }
                WatchUpdate::Synced => {
                    mailboxes.dirty.insert(Invalidation::Everything);
                    mailboxes.autoscalers.insert(AutoscalerInvalidation::Everything);
                }
            }
        };
        let api: Api<Guarded<PartialObjectMeta<Namespace>>> = Api::all(self.client.clone());
        self.watcher(Self::spec(WatchedKind::Namespace, api, mirror, notify))
    }

    fn pods(&self) -> ChildSpec<Role> {
        let (mailboxes, mirrors) = (Arc::clone(&self.mailboxes), self.shared.mirrors.clone());
        let mirror = &self.mirrors.pods;
        let notify = move |update: WatchUpdate<'_, PodObject>| match update {
            WatchUpdate::Changed(changed) => {
                let states = changed.before.iter().chain(&changed.after);
                let selecting = states.clone().flat_map(|pod| mirrors.selecting(pod));
                let selecting = selecting.map(Invalidation::Target);
                let controlled =
                    states.filter_map(|pod| controlled(&pod.namespace, pod.controller.as_ref()));
                mailboxes.dirty.insert_all(controlled.chain(selecting));
            }
            WatchUpdate::Synced => mailboxes.dirty.insert(Invalidation::Everything),
        };
        let spec = Self::spec::<SlimPod>(WatchedKind::Pod, self.api(), mirror, notify);
        self.watcher(spec)
    }

    fn replica_sets(&self) -> ChildSpec<Role> {
        self.plain::<PartialObjectMeta<ReplicaSet>, _, _>(
            WatchedKind::ReplicaSet,
            &self.mirrors.replica_sets,
            |changed: &ObjectUpdate<ReplicaSetObject>| {
                let states = changed.before.iter().chain(&changed.after);
                states
                    .filter_map(|set| controlled(&set.namespace, set.controller.as_ref()))
                    .collect::<BTreeSet<_>>()
            },
        )
    }

    fn scalers<K>(
        &self,
        kind: WatchedKind,
        mirror: &Arc<MirrorWriter<ScalerObject>>,
    ) -> ChildSpec<Role>
    where
        K: Projected<View = ScalerObject> + Resource<Scope = NamespaceResourceScope>,
    {
        let followed = self.shared.changes.clone();
        let declared = self.variant_changed();
        let mailboxes = Arc::clone(&self.mailboxes);
        let takes_annotations = self.shared.mirrors.takes_annotations();
        let relists = match kind {
            WatchedKind::ScaledObject => &self.relists.scaled_objects,
            _ => &self.relists.horizontal_pod_autoscalers,
        };
        let notify = move |update: WatchUpdate<'_, ScalerObject>| match update {
            WatchUpdate::Changed(changed) => {
                let variant = |scaler: &Option<Arc<ScalerObject>>| {
                    scaler.as_ref().and_then(|scaler| scaler.declared.clone())
                };
                let (before, after) = (variant(&changed.before), variant(&changed.after));
                if takes_annotations && before != after {
                    declared(before.as_deref(), after.as_deref());
                }
                let left = |scaler: &Option<Arc<ScalerObject>>| scaler.as_ref()?.leftover.clone();
                // A scaler gets a new version with each of its statuses.
                let other = left(&changed.after).filter(|after| {
                    left(&changed.before).is_none_or(|before| before.owners != after.owners)
                });
                if let Some(other) = other.filter(|_| takes_annotations) {
                    mailboxes.statuses.add(other.removal.key.clone());
                }
                let scalers = changed.before.iter().chain(&changed.after);
                if kind == WatchedKind::ScaledObject {
                    followed.wake(&FollowedObject::ScaledObject(changed.key.clone()));
                }
                mailboxes
                    .autoscalers
                    .insert_all(scalers.clone().filter_map(|scaler| makers(scaler)));
                let targets = scalers.filter_map(|scaler| scaler.target.clone());
                mailboxes.dirty.insert_all(targets.map(Invalidation::Target));
            }
            WatchUpdate::Synced => {
                mailboxes.dirty.insert(Invalidation::Everything);
                if takes_annotations {
                    mailboxes.config.insert(());
                }
            }
        };
        self.watcher(WatchSpec::<K> {
            // One that declares a variant has no status that says what is wrong.
            malformed: |_, before, _| before.cloned(),
            relists: Some(Arc::clone(relists)),
            ..Self::spec(kind, self.api(), mirror, notify)
        })
    }

    /// No role is notified: they are read when a router is looked for. Which of them a pool names is asked
    /// then, too, since the pool may come later.
    fn services(&self) -> ChildSpec<Role> {
        let mirror = &self.mirrors.services;
        self.watcher(WatchSpec::<Service> {
            wanted: Arc::new(ServiceObject::has_metrics),
            ..Self::spec(WatchedKind::Service, self.api(), mirror, |_| {})
        })
    }

    /// Without its ServiceMonitor no Prometheus scrapes this controller, and every HPA holds still. It lies
    /// where the controller does, whatever is watched.
    fn service_monitors(&self) -> ChildSpec<Role> {
        let (mailboxes, clock) = (Arc::clone(&self.mailboxes), self.shared.clock.clone());
        let system = &self.shared.mirrors.scope().system_namespace;
        let mirror = &self.mirrors.service_monitors;
        let notify = move |update: WatchUpdate<'_, ServiceMonitorObject>| {
            if let WatchUpdate::Changed(ObjectUpdate { key, before: Some(gone), after: None }) =
                update
                && key.name.ends_with(OWN_SERVICE_MONITOR)
            {
                let notice = service_monitor_deleted(key, &gone.uid);
                mailboxes.events.throw(clock.now(), notice);
            }
        };
        self.watcher(Self::spec::<PartialObjectMeta<ServiceMonitor>>(
            WatchedKind::ServiceMonitor,
            Api::namespaced(self.client.clone(), system),
            mirror,
            notify,
        ))
    }
}

/// The objects of a kind in all namespaces, or in one.
fn scoped<K>(client: &Client, namespace: Option<&str>, version: &ServedVersion) -> Api<Guarded<K>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    let all = Api::all_with(client.clone(), version);
    match namespace {
        Some(namespace) => all.constrain(namespace),
        None => all,
    }
}

/// The `PodAutoscaler` that made a scaler.
fn makers(scaler: &ScalerObject) -> Option<AutoscalerInvalidation> {
    let owner = scaler.owner.as_ref().filter(|owner| &*owner.kind == KIND)?;
    let key = ObjectKey::new(Arc::clone(&scaler.namespace), Arc::clone(&owner.name));
    Some(AutoscalerInvalidation::Object(key))
}

/// Who must look when something that has this controller changes.
fn controlled(namespace: &Arc<str>, controller: Option<&ControllerRef>) -> Option<Invalidation> {
    controller.map(|controller| Invalidation::Controlled(Arc::clone(namespace), controller.clone()))
}

fn service_monitor_deleted(key: &ObjectKey, uid: &Arc<str>) -> EventNotice {
    let regarding = Regarding {
        api_version: Arc::from("monitoring.coreos.com/v1"),
        kind: Arc::from("ServiceMonitor"),
        namespace: Arc::clone(&key.namespace),
        name: Arc::clone(&key.name),
        uid: Arc::clone(uid),
    };
    let note = "Prometheus no longer scrapes the controller, so no scaler can read its decisions; create the ServiceMonitor again".to_owned();
    EventNotice::warning(regarding, EventReason::ServiceMonitorDeleted, "Watch", note)
}
