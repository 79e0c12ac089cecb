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

/// A place in the tree, filled by one life after another. Ordered as in the tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Outermost supervisor.
    Root,
    /// Builds and judges generations of the configuration.
    Config,
    /// Holds or seeks the lease.
    Leadership,
    /// Supervisor of everything that writes.
    Egress,
    /// Publishes the gauges.
    Emitter,
    /// Applies the status of VariantAutoscaling objects.
    StatusWriter,
    /// Writes what PodAutoscalers decide.
    AutoscalerWriter,
    /// Marks the pods that are to go first.
    PodMarker,
    /// Writes the counts of targets that no scaler scales.
    TargetScaler,
    /// Creates Kubernetes events.
    EventRecorder,
    /// Supervisor of measuring and deciding.
    Engine,
    /// Queries Prometheus.
    Collector,
    /// Plans every cycle.
    Optimizer,
    /// Asks the routers of models at zero for the requests that they hold.
    RouterScraper,
    /// Scrapes the pods of PodAutoscalers.
    PodScraper,
    /// Reads the metrics APIs for PodAutoscalers.
    MetricsReader,
    /// Registry and supervisor of the variants.
    Variants,
    /// One variant.
    Variant(VariantKey),
    /// Registry and supervisor of the PodAutoscalers.
    PodAutoscalers,
    /// One `PodAutoscaler`.
    PodAutoscaler(ObjectKey),
    /// Supervisor of the watchers.
    Ingress,
    /// Keeps the mirror of one kind.
    Watcher(WatchedKind),
    /// Reads the scale subresources of targets whose kinds have no watcher.
    ScaleReader,
    /// Serves metrics, probes and debug pages.
    Http,
    /// Answers KEDA.
    ExternalScaler,
}

impl Role {
    /// Every role of which there is one: neither a watcher nor a variant nor a `PodAutoscaler`.
    pub const SINGLE: [Self; 22] = [
        Self::Root,
        Self::Config,
        Self::Leadership,
        Self::Egress,
        Self::Emitter,
        Self::StatusWriter,
        Self::AutoscalerWriter,
        Self::PodMarker,
        Self::TargetScaler,
        Self::EventRecorder,
        Self::Engine,
        Self::Collector,
        Self::Optimizer,
        Self::RouterScraper,
        Self::PodScraper,
        Self::MetricsReader,
        Self::Variants,
        Self::PodAutoscalers,
        Self::Ingress,
        Self::ScaleReader,
        Self::Http,
        Self::ExternalScaler,
    ];
}

impl TreeRole for Role {
    fn root() -> Self {
        Self::Root
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Config => "config",
            Self::Leadership => "leadership",
            Self::Egress => "egress",
            Self::Emitter => "emitter",
            Self::StatusWriter => "status-writer",
            Self::AutoscalerWriter => "autoscaler-writer",
            Self::PodMarker => "pod-marker",
            Self::TargetScaler => "target-scaler",
            Self::EventRecorder => "event-recorder",
            Self::Engine => "engine",
            Self::Collector => "collector",
            Self::Optimizer => "optimizer",
            Self::RouterScraper => "router-scraper",
            Self::PodScraper => "pod-scraper",
            Self::MetricsReader => "metrics-reader",
            Self::Variants => "variants",
            Self::Variant(_) => "variant",
            Self::PodAutoscalers => "pod-autoscalers",
            Self::PodAutoscaler(_) => "pod-autoscaler",
            Self::Ingress => "ingress",
            Self::Watcher(_) => "watcher",
            Self::ScaleReader => "scale-reader",
            Self::Http => "http",
            Self::ExternalScaler => "external-scaler",
        }
    }

    fn parent(&self) -> Option<Self> {
        match self {
            Self::Root => None,
            Self::Config
            | Self::Leadership
            | Self::Egress
            | Self::Engine
            | Self::Variants
            | Self::PodAutoscalers
            | Self::Ingress
            | Self::Http
            | Self::ExternalScaler => Some(Self::Root),
            Self::Emitter
            | Self::StatusWriter
            | Self::AutoscalerWriter
            | Self::PodMarker
            | Self::TargetScaler
            | Self::EventRecorder => Some(Self::Egress),
            Self::Collector
            | Self::Optimizer
            | Self::RouterScraper
            | Self::PodScraper
            | Self::MetricsReader => Some(Self::Engine),
            Self::Variant(_) => Some(Self::Variants),
            Self::PodAutoscaler(_) => Some(Self::PodAutoscalers),
            Self::Watcher(_) | Self::ScaleReader => Some(Self::Ingress),
        }
    }

    fn policy(&self) -> RolePolicy {
        let (ms, s, min) = (
            Duration::from_millis,
            Duration::from_secs,
            Duration::from_mins,
        );
        match self {
            Self::Root => RolePolicy {
                grace: s(8),
                ..one_for_one(3, min(10), s(1))
            },
            Self::Egress | Self::Ingress => one_for_one(10, min(5), ms(200)),
            Self::Engine => one_for_one(5, min(5), ms(500)),
            Self::Variants | Self::PodAutoscalers => per_key(),
            Self::Config
            | Self::Emitter
            | Self::Optimizer
            | Self::Variant(_)
            | Self::PodAutoscaler(_) => machine(),
            Self::Leadership => pump(StopHow::Stop, Some(s(90))),
            Self::StatusWriter | Self::AutoscalerWriter => RolePolicy {
                grace: s(3),
                ..pump(StopHow::Stop, Some(min(1)))
            },
            Self::EventRecorder => pump(StopHow::Stop, Some(min(1))),
            Self::PodMarker
            | Self::TargetScaler
            | Self::Collector
            | Self::RouterScraper
            | Self::PodScraper
            | Self::MetricsReader
            | Self::ScaleReader => pump(StopHow::Kill, Some(min(1))),
            // It looks up once a minute, whether anything has come or not.
            Self::Watcher(_) => pump(StopHow::Kill, Some(s(90))),
            // The one handler of each serves for ever.
            Self::Http | Self::ExternalScaler => pump(StopHow::Kill, None),
        }
    }
}

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
    RolePolicy {
        kind: ActorKind::Pump,
        stop,
        grace: LEAF_GRACE,
        stall_after,
        children: None,
    }
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
                let mut unkeyed = Self::SINGLE.into_iter().chain(watchers);
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
        Role::SINGLE
            .into_iter()
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
                assert_eq!(
                    policy.kind,
                    ActorKind::Supervisor,
                    "{parent} over {ancestor}"
                );
                assert!(policy.grace > ancestor.policy().grace, "{ancestor}");
                ancestor = parent;
            }
            assert_eq!(ancestor, Role::Root, "{role}");
            let policy = role.policy();
            assert_eq!(
                policy.children.is_some(),
                policy.kind == ActorKind::Supervisor,
                "{role}"
            );
            if policy.kind == ActorKind::Machine {
                assert_eq!(policy.stall_after, Some(Duration::from_secs(5)), "{role}");
            }
        }
    }
}
