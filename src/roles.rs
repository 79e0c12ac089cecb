//! Every role of the controller: its place in the tree, and how it is treated there.

use std::str::FromStr;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::cluster::kinds::WatchedKind;
use crate::policy::key::{ObjectKey, VariantKey};
use wva_base::text::shortened;
use wva_supervise::{
    ActorKind, ChildrenPolicy, QuarantinePolicy, RestartPolicy, RolePolicy, StopHow, TreeRole,
};

/// Rows of roles in the order of the tree: name, key where there are several, label, parent, treatment.
macro_rules! roles {
    (@single $role:ident) => { Some(Self::$role) };
    (@single $role:ident $key:ty) => { None };
    (@parent) => { None };
    (@parent $parent:ident) => { Some(Self::$parent) };
    ($(
        $(#[$doc:meta])* $role:ident $(($key:ty))?: $label:literal $(in $parent:ident)?, $policy:expr;
    )*) => {
        /// A place in the tree, filled by one life after another. Ordered as in the tree.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Role {
            $($(#[$doc])* $role $(($key))?,)*
        }

        impl Role {
            /// Every role of which there is one: neither a watcher nor a variant nor a `PodAutoscaler`.
            pub fn single() -> impl Iterator<Item = Self> {
                [$(roles!(@single $role $($key)?)),*].into_iter().flatten()
            }
        }

        impl TreeRole for Role {
            fn root() -> Self {
                Self::Root
            }

            fn label(&self) -> &'static str {
                match self {
                    $(Self::$role { .. } => $label,)*
                }
            }

            fn parent(&self) -> Option<Self> {
                match self {
                    $(Self::$role { .. } => roles!(@parent $($parent)?),)*
                }
            }

            fn policy(&self) -> RolePolicy {
                match self {
                    $(Self::$role { .. } => $policy,)*
                }
            }
        }
    };
}

roles! {
    /// Outermost supervisor.
    Root: "root", with_grace(8, one_for_one(3, Duration::from_mins(10), Duration::from_secs(1)));
    /// Builds and judges generations of the configuration.
    Config: "config" in Root, machine();
    /// Holds or seeks the lease.
    Leadership: "leadership" in Root, pump(StopHow::Stop, Some(LONG_SILENCE));
    /// Supervisor of everything that writes.
    Egress: "egress" in Root, one_for_one(10, Duration::from_mins(5), Duration::from_millis(200));
    /// Publishes the gauges.
    Emitter: "emitter" in Egress, machine();
    /// Applies the status of VariantAutoscaling objects.
    StatusWriter: "status-writer" in Egress, with_grace(3, pump(StopHow::Stop, Some(SILENCE)));
    /// Writes what PodAutoscalers decide.
    AutoscalerWriter: "autoscaler-writer" in Egress, with_grace(3, pump(StopHow::Stop, Some(SILENCE)));
    /// Marks the pods that are to go first.
    PodMarker: "pod-marker" in Egress, pump(StopHow::Kill, Some(SILENCE));
    /// Writes the counts of targets that no scaler scales.
    TargetScaler: "target-scaler" in Egress, pump(StopHow::Kill, Some(SILENCE));
    /// Creates Kubernetes events.
    EventRecorder: "event-recorder" in Egress, pump(StopHow::Stop, Some(SILENCE));
    /// Supervisor of measuring and deciding.
    Engine: "engine" in Root, one_for_one(5, Duration::from_mins(5), Duration::from_millis(500));
    /// Queries Prometheus.
    Collector: "collector" in Engine, pump(StopHow::Kill, Some(SILENCE));
    /// Plans every cycle.
    Optimizer: "optimizer" in Engine, machine();
    /// Asks the routers of models at zero, and of those that are sized for latency, for the requests that they hold.
    RouterScraper: "router-scraper" in Engine, pump(StopHow::Kill, Some(SILENCE));
    /// Scrapes the pods of PodAutoscalers.
    PodScraper: "pod-scraper" in Engine, pump(StopHow::Kill, Some(SILENCE));
    /// Reads the metrics APIs for PodAutoscalers.
    MetricsReader: "metrics-reader" in Engine, pump(StopHow::Kill, Some(SILENCE));
    /// Registry and supervisor of the variants.
    Variants: "variants" in Root, per_key();
    /// One variant.
    Variant(VariantKey): "variant" in Variants, machine();
    /// Registry and supervisor of the PodAutoscalers.
    PodAutoscalers: "pod-autoscalers" in Root, per_key();
    /// One `PodAutoscaler`.
    PodAutoscaler(ObjectKey): "pod-autoscaler" in PodAutoscalers, machine();
    /// Supervisor of the watchers.
    Ingress: "ingress" in Root, one_for_one(10, Duration::from_mins(5), Duration::from_millis(200));
    /// Keeps the mirror of one kind. It looks up once a minute, whether anything has come or not.
    Watcher(WatchedKind): "watcher" in Ingress, pump(StopHow::Kill, Some(LONG_SILENCE));
    /// Reads the scale subresources of targets whose kinds have no watcher.
    ScaleReader: "scale-reader" in Ingress, pump(StopHow::Kill, Some(SILENCE));
    /// Serves metrics, probes and debug pages. The one handler serves for ever.
    Http: "http" in Root, pump(StopHow::Kill, None);
    /// Answers KEDA. The one handler serves for ever.
    ExternalScaler: "external-scaler" in Root, pump(StopHow::Kill, None);
}

const SILENCE: Duration = Duration::from_mins(1);
const LONG_SILENCE: Duration = Duration::from_secs(90);
const LEAF_GRACE: Duration = Duration::from_secs(1);
const SUPERVISOR_GRACE: Duration = Duration::from_secs(4);

fn one_for_one(max_restarts: usize, window: Duration, delay_base: Duration) -> RolePolicy {
    supervising(ChildrenPolicy::Restart(RestartPolicy {
        max_restarts,
        window,
        delay_base,
        delay_cap: Duration::from_secs(30),
    }))
}

fn per_key() -> RolePolicy {
    supervising(ChildrenPolicy::Quarantine(QuarantinePolicy {
        delay_base: Duration::from_secs(1),
        delay_cap: Duration::from_mins(5),
        quarantine_from: 3,
        systemic_window: Duration::from_mins(1),
        systemic_floor: 10,
    }))
}

fn with_grace(seconds: u64, policy: RolePolicy) -> RolePolicy {
    RolePolicy { grace: Duration::from_secs(seconds), ..policy }
}

fn supervising(children: ChildrenPolicy) -> RolePolicy {
    RolePolicy {
        kind: ActorKind::Supervisor,
        stop: StopHow::Stop,
        grace: SUPERVISOR_GRACE,
        stall_after: None,
        children: Some(children),
    }
}

fn machine() -> RolePolicy {
    RolePolicy {
        kind: ActorKind::Machine,
        stop: StopHow::Stop,
        grace: LEAF_GRACE,
        stall_after: Some(Duration::from_secs(5)),
        children: None,
    }
}

fn pump(stop: StopHow, stall_after: Option<Duration>) -> RolePolicy {
    RolePolicy { kind: ActorKind::Pump, stop, grace: LEAF_GRACE, stall_after, children: None }
}

// The label, with the variant or kind where there are several: `variant/ns-a/llama`,
// `watcher/Pod`.
wva_base::display_of! { Role:
    role @ Self::Variant(key) => "{}/{key}", role.label();
    role @ Self::PodAutoscaler(key) => "{}/{key}", role.label();
    role @ Self::Watcher(kind) => "{}/{}", role.label(), kind.as_str();
    role => "{}", role.label();
}

/// The inverse of `Display`.
impl FromStr for Role {
    type Err = ParseRoleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (label, key) = text.split_once('/').unwrap_or((text, ""));
        let key = key.split_once('/');
        let key = key.filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty());
        let role = match (label, key) {
            ("variant", Some((namespace, name))) => {
                Some(Self::Variant(VariantKey::new(namespace, name)))
            }
            ("pod-autoscaler", Some((namespace, name))) => {
                Some(Self::PodAutoscaler(ObjectKey::new(namespace, name)))
            }
            _ => {
                let watchers = WatchedKind::ALL.into_iter().map(Self::Watcher);
                let mut unkeyed = Self::single().chain(watchers);
                unkeyed.find(|role| role.to_string() == text)
            }
        };
        role.ok_or_else(|| ParseRoleError(shortened(text)))
    }
}

/// No role has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no role is called {0:?}; use a name of the debug tree, like \"optimizer\", \"watcher/Pod\" \
     or \"variant/<namespace>/<name>\""
)]
pub struct ParseRoleError(String);

/// As its name in the debug tree.
impl Serialize for Role {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_role() -> Vec<Role> {
        let variant = Role::Variant(VariantKey::new("ns-a", "llama"));
        let autoscaler = Role::PodAutoscaler(ObjectKey::new("ns-a", "chat"));
        Role::single()
            .chain(WatchedKind::ALL.map(Role::Watcher))
            .chain([variant, autoscaler])
            .collect()
    }

    #[test]
    fn every_name_leads_back_to_its_role() {
        for role in every_role() {
            assert_eq!(role.to_string().parse(), Ok(role.clone()), "{role}");
        }
    }

    #[test]
    fn a_long_text_is_quoted_in_part() {
        let refusal = "role".repeat(10_000).parse::<Role>().unwrap_err();
        assert!(refusal.to_string().len() < 300, "{refusal}");
    }

    #[test]
    fn unknown_names_are_refused_by_name() {
        let unknown = [
            "",
            "rooot",
            "variant",
            "variant/",
            "variant/a",
            "variant//b",
            "variant/a/",
            "watcher/",
            "pod-autoscaler/a",
            "watcher/Nodes",
            "Root",
        ];
        for text in unknown {
            let refusal = text.parse::<Role>().expect_err(text).to_string();
            assert!(refusal.contains(&format!("{text:?}")), "{text}: {refusal}");
        }
    }

    #[test]
    fn labels_do_not_name_variants_or_kinds() {
        for (name, label) in [
            ("variant/a/b", "variant"),
            ("watcher/InferencePool.v1alpha2", "watcher"),
            ("status-writer", "status-writer"),
        ] {
            let role: Role = name.parse().unwrap();
            assert_eq!((role.to_string().as_str(), role.label()), (name, label));
        }
    }

    #[test]
    fn the_tree_is_rooted_and_only_supervisors_have_children() {
        for role in every_role() {
            let mut ancestor = role.clone();
            for _ in 0..3 {
                let Some(parent) = ancestor.parent() else {
                    break;
                };
                let policy = parent.policy();
                assert_eq!(policy.kind, ActorKind::Supervisor, "{parent} over {ancestor}");
                assert!(policy.grace > ancestor.policy().grace, "{ancestor}");
                ancestor = parent;
            }
            assert_eq!(ancestor, Role::Root, "{role}");
            let policy = role.policy();
            assert_eq!(policy.children.is_some(), policy.kind == ActorKind::Supervisor, "{role}");
            if policy.kind == ActorKind::Machine {
                assert_eq!(policy.stall_after, Some(Duration::from_secs(5)), "{role}");
            }
        }
    }
}
