//! AIBrix's StormService and RayClusterFleet: which field holds the count, and which pods are measured.
//!
//! A StormService in mode `Replica` is scaled as a whole, one in mode `Pooled` by its roles. The field that is read is
//! the field that is written: the status sums over all RoleSets, and the template holds the count of one.

use std::sync::Arc;

use super::amounts::PodsPerReplica;
use super::check::{AutoscalerPolicy, ScaledObject};
use super::object::{ORCHESTRATION, STORM_SERVICE};
use super::tuning::{DOMAIN, MODE_KEY, StormServiceMode, WithoutEffect};
use crate::key::GroupKind;
use crate::params::LabelSelector;
use crate::units::Replicas;
use wva_base::text::shortened;

const SERVICE_LABEL: &str = "storm-service-name";
const ROLE_LABEL: &str = "role-name";
/// Label of a pod with its place in a replica of several pods. The first one alone serves metrics.
const GROUP_INDEX_LABEL: &str = "stormservice.orchestration.aibrix.ai/pod-group-index";
/// Label of a pod with its place in a Ray cluster. The head alone serves metrics.
const RAY_NODE_LABEL: &str = "ray.io/node-type";
const RAY_CLUSTER_FLEET: &str = "RayClusterFleet";

/// Where a target holds its count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ReplicaField {
    /// In its scale subresource.
    #[default]
    Scale,
    /// In `spec.replicas` of a StormService.
    Service,
    /// In the template of a StormService.
    Role {
        /// Place of the role in `spec.template.spec.roles`.
        index: usize,
        /// Its name.
        name: Arc<str>,
    },
}

impl ReplicaField {
    /// JSON pointer to the count in the object; `None` where only the scale subresource holds it.
    pub fn pointer(&self) -> Option<String> {
        match self {
            Self::Scale => None,
            Self::Service => Some("/spec/replicas".to_owned()),
            Self::Role { index, .. } => Some(format!("/spec/template/spec/roles/{index}/replicas")),
        }
    }
}

wva_base::display_of! { ReplicaField:
    Self::Scale | Self::Service => "spec.replicas";
    Self::Role { index, name } => "spec.template.spec.roles[{index}].replicas ({name})";
}

/// The parts of a StormService that its scaling depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StormServiceObject {
    /// `spec.replicas`.
    pub replicas: Option<Replicas>,
    /// `spec.mode`.
    pub mode: Option<StormServiceMode>,
    /// `spec.template.spec.roles`, in their order.
    pub roles: Vec<StormServiceRole>,
}

/// One role of a StormService.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StormServiceRole {
    /// Its name.
    pub name: Arc<str>,
    /// Its replicas in each RoleSet.
    pub replicas: Option<Replicas>,
    /// Pods of one replica.
    pub pod_group_size: Option<u32>,
}

impl StormServiceRole {
    fn has_groups(&self) -> bool {
        self.pod_group_size.is_some_and(|size| size > 1)
    }
}

impl StormServiceObject {
    /// The mode: that of the service, else that of the annotation.
    pub fn mode(&self, annotated: StormServiceMode) -> StormServiceMode {
        self.mode.unwrap_or(annotated)
    }

    /// The annotation of a mode where the service states another one.
    pub fn overridden(&self, policy: &AutoscalerPolicy) -> Option<WithoutEffect> {
        self.mode.filter(|mode| *mode != policy.tuning.storm_service)?;
        let key = format!("{DOMAIN}{MODE_KEY}");
        let value = policy.metadata.annotations.get(&*key)?;
        let why = "has no effect: spec.mode of the StormService is another; remove it";
        Some(WithoutEffect::Annotation { key, value: shortened(value), why: why.to_owned() })
    }

    /// The field that a `PodAutoscaler` scales, with its count.
    ///
    /// # Errors
    /// Why there is no count: the object, the field and the remedy.
    pub fn resolve(
        &self,
        target: &ScaledObject,
        annotated: StormServiceMode,
    ) -> Result<(ReplicaField, Replicas), Arc<str>> {
        let name = &target.name;
        let is_pooled = self.mode(annotated) == StormServiceMode::Pooled;
        let Some(role) = target.role.as_ref().filter(|_| is_pooled) else {
            let count = self.replicas.ok_or_else(|| {
                format!("{STORM_SERVICE} {name}: spec.replicas is not set; write a count there")
            })?;
            return Ok((ReplicaField::Service, count));
        };
        if role.is_empty() {
            return Err(nameless_role(name).into());
        }
        let mut roles = self.roles.iter().enumerate();
        let found = roles.find(|(_, found)| found.name == *role);
        let Some((index, found)) = found else {
            let why = format!(
                "{STORM_SERVICE} {name}: spec.template.spec.roles has no role {role:?}; add it, or correct spec.subTargetSelector.roleName"
            );
            return Err(why.into());
        };
        let field = ReplicaField::Role { index, name: Arc::clone(role) };
        let count = found.replicas.ok_or_else(|| {
            format!("{STORM_SERVICE} {name}: {field} is not set; write a count there")
        })?;
        Ok((field, count))
    }

    /// The pods that report for a service, or for one of its roles.
    pub fn selector(&self, target: &ScaledObject) -> LabelSelector {
        let mut selector = LabelSelector::default().and(SERVICE_LABEL, &target.name);
        if let Some(role) = target.named_role() {
            selector = selector.and(ROLE_LABEL, role);
        }
        if self.named_roles(target).any(StormServiceRole::has_groups) {
            selector = selector.and(GROUP_INDEX_LABEL, "0");
        }
        selector
    }

    /// How many pods report for each replica in [`Self::resolve`]: for that of a role one in each RoleSet, for that of
    /// the service those of the selected roles, one of each group.
    pub fn pods_per_replica(
        &self,
        target: &ScaledObject,
        annotated: StormServiceMode,
    ) -> PodsPerReplica {
        let is_pooled = self.mode(annotated) == StormServiceMode::Pooled;
        if is_pooled && target.role.is_some() {
            // A StormService without a count has one RoleSet.
            return PodsPerReplica(self.replicas.unwrap_or(Replicas::ONE).0);
        }
        let measured = self.measured_roles(target);
        let counts: Option<Vec<Replicas>> = measured.map(|role| role.replicas).collect();
        PodsPerReplica(counts.into_iter().flatten().sum::<Replicas>().0)
    }

    /// The roles whose pods report. Where a role has groups, the selector leaves out the pods of the others, which have
    /// no place in a group.
    pub fn measured_roles(&self, target: &ScaledObject) -> impl Iterator<Item = &StormServiceRole> {
        let has_groups = self.named_roles(target).any(StormServiceRole::has_groups);
        let named = self.named_roles(target);
        named.filter(move |role| role.has_groups() == has_groups)
    }

    fn named_roles(&self, target: &ScaledObject) -> impl Iterator<Item = &StormServiceRole> {
        let name = target.named_role().cloned();
        let roles = self.roles.iter();
        roles.filter(move |role| name.as_ref().is_none_or(|name| role.name == *name))
    }
}

/// Why a pooled StormService is not scaled by a role without a name.
pub(crate) fn nameless_role(service: &str) -> String {
    format!(
        "{STORM_SERVICE} {service} is pooled and spec.subTargetSelector.roleName is empty; name a role, or remove \
         subTargetSelector"
    )
}

impl ScaledObject {
    fn named_role(&self) -> Option<&Arc<str>> {
        self.role.as_ref().filter(|role| !role.is_empty())
    }

    /// Whether it is a StormService, whose roles have counts of their own.
    pub fn is_storm_service(&self) -> bool {
        (&*self.api_version, &*self.kind) == (ORCHESTRATION, STORM_SERVICE)
    }
}

/// The pods that report, of those that the scale subresource of a target of this kind selects.
pub fn reporting(kind: &GroupKind, selector: LabelSelector) -> LabelSelector {
    let group = ORCHESTRATION.split('/').next().unwrap_or_default();
    if (&*kind.group, &*kind.kind) == (group, RAY_CLUSTER_FLEET) {
        selector.and(RAY_NODE_LABEL, "head")
    } else {
        selector
    }
}
