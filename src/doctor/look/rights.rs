//! Asks whether accounts may do what they need to: those of controllers, and any.

use futures::{StreamExt as _, stream};
use kube::Client;

use crate::cluster::kinds::{WatchCondition, WatchedKind};
use crate::cluster::review::{Access, AccessDecision, User, review_access};
use crate::doctor::facts::{ControllerFacts, Facts, Reading, RightFact};
use crate::doctor::object::ObjectName;
use crate::settings::FeatureSwitch;

const AT_ONCE: usize = 8;

/// A right that an account needs.
#[derive(Debug, Clone)]
pub(super) struct NeededRight {
    /// The object that does not work without it.
    pub(super) object: ObjectName,
    pub(super) user: User,
    pub(super) access: Access,
}

/// Reviews every right of every controller.
pub(super) async fn review(client: &Client, facts: &Facts) -> Reading<Vec<RightFact>> {
    let mut needs = Vec::new();
    for one in facts.controllers() {
        if one.has_secrets && one.settings.is_err() {
            return Reading::Failed("settings are in a Secret".to_owned());
        }
        let user = service_account(&one.key.namespace, &one.account);
        needs.extend(needed(one).into_iter().map(|access| NeededRight {
            object: one.title(),
            user: user.clone(),
            access,
        }));
    }
    reviewed(client, &needs).await
}

/// Reviews all of them, some at a time. Fails with what the API server says to the first that it does not answer.
pub(super) async fn reviewed(client: &Client, needs: &[NeededRight]) -> Reading<Vec<RightFact>> {
    let asked = needs.iter().map(|need| async move {
        let decision = review_access(client, &need.user, &need.access).await;
        decision.map(|decision| RightFact {
            object: need.object.clone(),
            account: need.user.name.clone(),
            right: need.access.to_string(),
            is_granted: decision == AccessDecision::Allowed,
        })
    });
    let answers: Vec<_> = stream::iter(asked).buffered(AT_ONCE).collect().await;
    let rights: Result<Vec<RightFact>, _> = answers.into_iter().collect();
    rights.map(Some).map_err(|error| error.to_string()).into()
}

pub(super) fn service_account(namespace: &str, name: &str) -> User {
    User {
        name: format!("system:serviceaccount:{namespace}:{name}"),
        groups: vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated".to_owned(),
        ],
        ..User::default()
    }
}

/// Every right that a controller needs with its settings.
fn needed(one: &ControllerFacts) -> Vec<Access> {
    let Some(generation) = one.generation() else {
        return Vec::new();
    };
    let statics = &generation.statics;
    let place = one.watched().unwrap_or_default();
    let access = |verb, group, resource: &str, namespace: &str| Access::Resource {
        verb,
        group,
        version: "v1",
        resource: resource.to_owned(),
        namespace: namespace.to_owned(),
    };
    let mut needed = Vec::new();
    for kind in WatchedKind::ALL {
        let spec = kind.spec();
        let namespace = match spec.condition {
            WatchCondition::Always => place,
            WatchCondition::AllNamespaces if place.is_empty() => "",
            WatchCondition::PodAutoscalers if statics.pod_autoscalers == FeatureSwitch::Enabled => {
                place
            }
            WatchCondition::GpuLimits if generation.dynamic.wants_nodes() => "",
            WatchCondition::AnyLimits if generation.dynamic.limits_growth() => place,
            _ => continue,
        };
        needed.extend(
            ["list", "watch"].map(|verb| access(verb, spec.group, spec.resource, namespace)),
        );
    }
    for resource in ["variantautoscalings", "variantautoscalings/status"] {
        needed.push(access("patch", "llmd.ai", resource, place));
    }
    if statics.annotated_scalers == FeatureSwitch::Enabled {
        for (group, resource) in
            [("autoscaling", "horizontalpodautoscalers"), ("keda.sh", "scaledobjects")]
        {
            needed.push(access("patch", group, resource, place));
        }
    }
    if statics.deletion_costs == FeatureSwitch::Enabled {
        needed.push(access("patch", "", "pods", place));
    }
    if generation.dynamic.saturation.any_direct() {
        needed.push(access("update", "apps", "deployments/scale", place));
    }
    needed.push(access("create", "events.k8s.io", "events", place));
    if statics.leader_election.enabled {
        let system = &statics.scope.system_namespace;
        let verbs = ["get", "create", "update"];
        needed.extend(verbs.map(|verb| access(verb, "coordination.k8s.io", "leases", system)));
    }
    needed
}
