//! Routers: from scale targets to pools, and from pools to the pods that route.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use super::Mirrors;
use crate::cluster::mirror::ObjectKey;
use crate::cluster::project::pool::PoolObject;
use crate::policy::key::TargetKey;
use crate::policy::object::Lifecycle;
use crate::policy::snapshot::{Readiness, RouterPresence};

impl Mirrors {
    /// The pools in front of a target: the one that selects its pods, or all of the namespace where
    /// the labels of those are not known.
    pub fn pools_of(&self, target: &TargetKey) -> Vec<ObjectKey> {
        let sighting = self.sight(target);
        let Some(found) = sighting.found() else {
            return Vec::new();
        };
        let key =
            |pool: &PoolObject| ObjectKey::new(Arc::clone(&pool.namespace), Arc::clone(&pool.name));
        let pools = if let Some(labels) = &found.pod_labels {
            let pool = self.pools.selecting(&target.namespace, labels);
            pool.into_iter().collect()
        } else {
            self.pools.in_namespace(&target.namespace)
        };
        pools.iter().map(|pool| key(pool)).collect()
    }

    /// Whether a router may hold requests for a target: not before all pools are known, and none is in front.
    pub fn router_in_front(&self, target: &TargetKey) -> RouterPresence {
        let is_known = self.pools.synced() && self.sight(target).found().is_some();
        if is_known && self.pools_of(target).is_empty() {
            RouterPresence::Absent
        } else {
            RouterPresence::Possible
        }
    }

    /// Where the ready routers of a pool serve their metrics, in the order of their names; or why it has none that
    /// could be asked.
    pub fn routers(&self, pool: &PoolObject) -> Result<Vec<SocketAddr>, String> {
        let name = pool.picker.as_ref();
        let name = name.ok_or("the pool names no endpoint picker")?;
        let key = ObjectKey::new(Arc::clone(&pool.namespace), Arc::clone(name));
        let service = self.services.get(&key);
        let service = service.filter(|service| service.lifecycle == Lifecycle::Live);
        let port = service.as_ref().and_then(|service| service.metrics_port);
        let (Some(service), Some(port)) = (service, port) else {
            return Err(format!(
                "there is no Service {name} that has a port with \"metric\" in its name"
            ));
        };
        let pods = self.pods.in_namespace(&pool.namespace).into_iter();
        let routers: BTreeMap<Arc<str>, SocketAddr> = pods
            .filter(|(_, pod)| {
                pod.readiness == Readiness::Ready
                    && pod.lifecycle == Lifecycle::Live
                    && service.selects(&pod.labels)
            })
            .filter_map(|(_, pod)| {
                Some((Arc::clone(&pod.name), SocketAddr::new(pod.address?, port)))
            })
            .collect();
        if routers.is_empty() {
            return Err(format!("Service {name} has no ready pod"));
        }
        Ok(routers.into_values().collect())
    }
}

#[cfg(test)]
mod tests;
