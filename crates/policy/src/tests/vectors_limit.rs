//! Tables limit.yaml, names.yaml, gpu-discovery.yaml and quota.yaml: what the GPUs allow.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use serde::Deserialize;

use super::vectors::{Tally, run};
use crate::accelerator::Accelerator;
use crate::gpu::{
    Budget, GpuCount, GpuPod, GpuPools, ManagedUse, NodeView, Physical, PodPhase, Scheduling,
    physical, short_name,
};
use crate::key::VariantKey;
use crate::limit::{Grant, GrowthRequest, allocate};
use crate::params::{LabelSelector, Limiter, LimiterScope, Quota, Quotas};
use crate::reason::Reason;
use crate::units::{Cost, Gpus, Replicas};

/// Accelerator, current, target, GPUs of one replica, spare, cost, maximum.
#[derive(Deserialize)]
#[serde(untagged)]
enum RequestGiven {
    Plain(Option<String>, u32, u32, u32, f64, u32),
    Capped(Option<String>, u32, u32, u32, f64, u32, u32),
}

impl RequestGiven {
    fn request(&self, name: &str) -> GrowthRequest {
        let (Self::Plain(accelerator, current, target, gpus, spare, cost)
        | Self::Capped(accelerator, current, target, gpus, spare, cost, _)) = self;
        let max = match self {
            Self::Plain(..) => None,
            Self::Capped(.., max) => Some(Replicas(*max)),
        };
        GrowthRequest {
            key: VariantKey::new("ns", name),
            accelerator: named(accelerator.as_deref()),
            current: Replicas(*current),
            target: Replicas(*target),
            max,
            gpus: Gpus(*gpus),
            spare: *spare,
            cost: Cost::parse(&cost.to_string()).unwrap(),
            ..growth("ns", None, 0)
        }
    }
}

fn named(name: Option<&str>) -> Accelerator {
    name.map_or(Accelerator::Unresolved, |name| Accelerator::Named(name.into()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Round {
    total: BTreeMap<Arc<str>, Gpus>,
    requests: BTreeMap<String, RequestGiven>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Outcome {
    targets: BTreeMap<String, u32>,
    gpus: BTreeMap<String, u32>,
    limited: BTreeSet<String>,
    free: BTreeMap<Arc<str>, Gpus>,
    #[serde(default)]
    why: BTreeMap<String, String>,
}

/// What the requests hold already.
fn held(requests: &[GrowthRequest]) -> BTreeMap<Arc<str>, Gpus> {
    let mut used = BTreeMap::<Arc<str>, Gpus>::new();
    for request in requests {
        if let Accelerator::Named(name) = &request.accelerator {
            let sum = used.entry(Arc::clone(name)).or_default();
            *sum = sum.plus(request.gpus.at_least_one().times(request.current));
        }
    }
    used
}

fn on_nodes(total: &BTreeMap<Arc<str>, Gpus>, requests: &[GrowthRequest]) -> GpuPools {
    let physical =
        Physical::Known { limits: total.clone(), used: held(requests), unlisted: BTreeSet::new() };
    GpuPools::new(physical, &[], ManagedUse::new())
}

fn by_name<T>(
    grants: &BTreeMap<VariantKey, Grant>,
    of: impl Fn(&Grant) -> T,
) -> BTreeMap<String, T> {
    let named = (grants.iter()).map(|(key, grant)| (key.name.to_string(), of(grant)));
    named.collect()
}

#[test]
fn limits_of_one_round() {
    let tally = run(
        include_str!("../../../../tests/vectors/limit.yaml"),
        |id, given: Round, expect: Outcome| {
            let requests: Vec<GrowthRequest> =
                given.requests.iter().map(|(name, request)| request.request(name)).collect();
            let mut pools = on_nodes(&given.total, &requests);
            let grants = allocate(&requests, &mut pools);
            assert_eq!(by_name(&grants, |grant| grant.change.to.0), expect.targets, "{id}");
            assert_eq!(by_name(&grants, |grant| grant.gpus.0), expect.gpus, "{id}");
            let is_limited = |grant: &Grant| {
                let why = &grant.change.why;
                matches!(why, Reason::Limited { .. } | Reason::BudgetUnknown { .. })
            };
            let limited = grants.iter().filter(|(_, grant)| is_limited(grant));
            let limited: BTreeSet<String> = limited.map(|(key, _)| key.name.to_string()).collect();
            assert_eq!(limited, expect.limited, "{id}");
            for (kind, free) in &expect.free {
                let left = pools.budget("ns", &named(Some(kind)));
                assert_eq!(left, Budget::Finite(*free), "{id} {kind}");
            }
            let why = by_name(&grants, |grant| grant.change.why.to_string());
            for (name, text) in &expect.why {
                assert_eq!(&why[name], text, "{id}");
            }
        },
    );
    assert_eq!(tally, Tally::of(19, 2, 2));
}

#[test]
fn short_names() {
    let tally = run(
        include_str!("../../../../tests/vectors/names.yaml"),
        |id, given: String, expect: String| assert_eq!(short_name(&given), expect, "{id}"),
    );
    assert_eq!(tally.passed, 6);
    for (product, short) in [
        ("Intel-Gaudi-2-96GB", "Gaudi-2"),
        ("Gaudi-2", "Gaudi-2"),
        ("Gaudi-3", "Gaudi-3"),
        ("Tesla-T4", "T4"),
        ("nvidia-tesla-t4", "t4"),
        ("nvidia-l4", "l4"),
        ("AMD_Instinct_MI300X_OAM", "MI300X"),
        ("our-own-type", "our-own-type"),
    ] {
        assert_eq!(short_name(product), short);
    }
}

type NodeGiven = (String, Option<String>, Option<u32>);
type PodGiven = (Arc<str>, Vec<u32>, Vec<u32>, String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cluster {
    nodes: BTreeMap<Arc<str>, NodeGiven>,
    #[serde(default)]
    pods: BTreeMap<String, PodGiven>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Discovered {
    nodes: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Gpus>>,
    usage: BTreeMap<Arc<str>, Gpus>,
}

impl Cluster {
    fn nodes(&self) -> BTreeMap<Arc<str>, NodeView> {
        self.nodes
            .iter()
            .map(|(name, (vendor, product, count))| {
                let label = |product: &String| {
                    let key: Arc<str> = format!("{vendor}/gpu.product").into();
                    (key, Arc::<str>::from(product.as_str()))
                };
                let resource: Arc<str> = format!("{vendor}/gpu").into();
                let node = NodeView {
                    labels: product.iter().map(label).collect(),
                    allocatable: count.map(|count| (resource, count)).into_iter().collect(),
                    uncounted: BTreeSet::new(),
                    scheduling: Scheduling::Open,
                };
                (Arc::clone(name), node)
            })
            .collect()
    }

    fn pods(&self) -> Vec<GpuPod> {
        let pod = |(node, containers, init, phase): &PodGiven| {
            let resource: Arc<str> = format!("{}/gpu", self.nodes[node].0).into();
            let requests = |counts: &[u32]| {
                let of = |count: &u32| BTreeMap::from([(Arc::clone(&resource), *count)]);
                counts.iter().map(of).collect()
            };
            GpuPod {
                named: None,
                node: Some(Arc::clone(node)),
                phase: if phase == "active" { PodPhase::Active } else { PodPhase::Finished },
                containers: requests(containers),
                init_containers: requests(init),
            }
        };
        self.pods.values().map(pod).collect()
    }
}

#[test]
fn gpu_discovery() {
    let tally = run(
        include_str!("../../../../tests/vectors/gpu-discovery.yaml"),
        |id, given: Cluster, expect: Discovered| {
            let nodes = given.nodes();
            let all = LabelSelector::default();
            let known = |nodes: &BTreeMap<Arc<str>, NodeView>, pods: &[GpuPod]| match physical(
                Some(nodes),
                Some(pods),
                &all,
            ) {
                Physical::Known { limits, used, .. } => (limits, used),
                Physical::Unknown | Physical::Unlimited => panic!("{id}"),
            };
            let found: BTreeMap<_, _> = nodes
                .iter()
                .map(|(name, node)| {
                    let alone = BTreeMap::from([(Arc::clone(name), node.clone())]);
                    (Arc::clone(name), known(&alone, &[]).0)
                })
                .collect();
            assert_eq!(found, expect.nodes, "{id}");
            let (_, mut usage) = known(&nodes, &given.pods());
            usage.retain(|_, gpus| *gpus > Gpus::ZERO);
            assert_eq!(usage, expect.usage, "{id}");
        },
    );
    assert_eq!(tally.passed, 7);
}

#[test]
fn only_open_selected_nodes_count_and_any_pod_uses_them() {
    let cluster: Cluster = serde_yaml::from_str(
        "{ nodes: { n1: [nvidia.com, NVIDIA-A100-PCIE-80GB, 8],
                    n2: [nvidia.com, NVIDIA-A100-PCIE-80GB, 8],
                    n3: [nvidia.com, NVIDIA-H100, 4] },
           pods: { a: [n1, [3], [], active], b: [n2, [5], [], active] } }",
    )
    .unwrap();
    let mut nodes = cluster.nodes();
    let pods = cluster.pods();
    let all = LabelSelector::default();
    let left = |nodes: &BTreeMap<Arc<str>, NodeView>, selector: &LabelSelector, kind: &str| {
        let physical = physical(Some(nodes), Some(&pods), selector);
        GpuPools::new(physical, &[], ManagedUse::new()).budget("ns", &named(Some(kind)))
    };
    assert_eq!(left(&nodes, &all, "A100"), Budget::Finite(Gpus(8)));
    nodes.get_mut("n2").unwrap().scheduling = Scheduling::Closed;
    assert_eq!(left(&nodes, &all, "A100"), Budget::Finite(Gpus(5)));
    assert_eq!(left(&nodes, &all, "NVIDIA-H100-SXM"), Budget::Finite(Gpus(4)));
    let h100 = LabelSelector::parse("nvidia.com/gpu.product=NVIDIA-H100").unwrap();
    assert_eq!(left(&nodes, &h100, "H100"), Budget::Finite(Gpus(4)));
    assert_eq!(left(&nodes, &h100, "A100"), Budget::Finite(Gpus::ZERO));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LimiterGiven {
    name: String,
    cluster: Option<BTreeMap<String, i64>>,
    namespaces: Option<BTreeMap<String, BTreeMap<String, i64>>>,
    #[serde(default)]
    exclude: BTreeSet<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuotaRound {
    limiters: Vec<LimiterGiven>,
    #[serde(default)]
    used: ManagedUse,
    asks: Vec<(String, String, u32)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Granted {
    grants: Vec<u32>,
    by: Option<String>,
}

fn quotas(given: &BTreeMap<String, i64>) -> Quotas {
    given
        .iter()
        .map(|(kind, count)| {
            let quota = u32::try_from(*count).map_or(Quota::Unlimited, Quota::AtMost);
            (kind.clone(), quota)
        })
        .collect()
}

impl LimiterGiven {
    fn limiter(&self) -> Limiter {
        let scope = match (&self.cluster, &self.namespaces) {
            (Some(given), None) => LimiterScope::Cluster(quotas(given)),
            (None, Some(given)) => LimiterScope::Namespaces(
                given.iter().map(|(name, given)| (name.clone(), quotas(given))).collect(),
            ),
            _ => panic!("either cluster or namespaces"),
        };
        Limiter { name: self.name.as_str().into(), scope, exclude: self.exclude.clone() }
    }
}

fn growth(namespace: &str, kind: Option<&str>, wanted: u32) -> GrowthRequest {
    GrowthRequest {
        key: VariantKey::new(namespace, "v"),
        accelerator: named(kind),
        current: Replicas::ZERO,
        target: Replicas(wanted),
        floor: Replicas::ZERO,
        max: None,
        gpus: Gpus(1),
        count: GpuCount::Counted,
        priority: 1.0,
        spare: 0.0,
        cost: Cost::DEFAULT,
    }
}

#[test]
fn quota_limiter() {
    let tally = run(
        include_str!("../../../../tests/vectors/quota.yaml"),
        |id, given: QuotaRound, expect: Granted| {
            let limiters: Vec<Limiter> = given.limiters.iter().map(LimiterGiven::limiter).collect();
            let mut pools = GpuPools::new(Physical::Unlimited, &limiters, given.used);
            let mut grants = Vec::new();
            let mut last = None;
            for (namespace, kind, wanted) in &given.asks {
                let request = growth(namespace, Some(kind), *wanted);
                let granted = allocate(std::slice::from_ref(&request), &mut pools);
                grants.push(granted[&request.key].gpus.0);
                last = Some(granted[&request.key].change.why.clone());
            }
            assert_eq!(grants, expect.grants, "{id}");
            if let Some(by) = expect.by {
                let why = last.unwrap().to_string();
                assert!(why.ends_with(&by), "{id}: {why}");
            }
        },
    );
    assert_eq!(tally, Tally::of(14, 1, 1));
}

#[test]
fn an_unknown_budget_grants_nothing_and_lowers_nothing() {
    let mut pools = GpuPools::new(Physical::Unknown, &[], ManagedUse::new());
    let mut grows = growth("ns", Some("A100"), 5);
    grows.current = Replicas(2);
    let granted = allocate(std::slice::from_ref(&grows), &mut pools);
    let grant = &granted[&grows.key];
    assert_eq!(grant.change.to, Replicas(2));
    assert!(matches!(grant.change.why, Reason::BudgetUnknown { .. }));
    assert!(grant.change.why.to_string().starts_with("BudgetUnknown"));
    grows.floor = Replicas(3);
    let granted = allocate(std::slice::from_ref(&grows), &mut pools);
    assert_eq!(granted[&grows.key].change.to, Replicas(3));
    grows.target = Replicas(1);
    grows.floor = Replicas::ZERO;
    let granted = allocate(std::slice::from_ref(&grows), &mut pools);
    assert_eq!(granted[&grows.key].change.to, Replicas(1));
}

#[test]
fn a_quota_counts_what_is_written_in_another_case_where_one_fits() {
    let left = |kinds: &[(&str, u32)], asked: &str| {
        let limits = kinds.iter().map(|(kind, most)| ((*kind).to_owned(), Quota::AtMost(*most)));
        let limiter = Limiter {
            name: "q".into(),
            scope: LimiterScope::Cluster(limits.collect()),
            exclude: BTreeSet::new(),
        };
        let used = BTreeMap::from([("h100".into(), Gpus(3)), ("NVIDIA-L4".into(), Gpus(1))]);
        let used = ManagedUse::from([("ns".into(), used)]);
        GpuPools::new(Physical::Unlimited, &[limiter], used).budget("ns", &named(Some(asked)))
    };
    assert_eq!(left(&[("A100", 8)], "h100"), Budget::Finite(Gpus(0)));
    let apart = [("H100", 8), ("h100", 5), ("nvidia-l4", 4)];
    assert_eq!(left(&apart[..1], "h100"), Budget::Finite(Gpus(5)));
    assert_eq!(left(&apart, "h100"), Budget::Finite(Gpus(2)));
    assert_eq!(left(&apart, "H100"), Budget::Finite(Gpus(8)));
    assert_eq!(left(&apart, "L4"), Budget::Finite(Gpus(3)));
    assert_eq!(left(&apart, "NVIDIA-h100-x"), Budget::Finite(Gpus(2)));
    assert_eq!(left(&apart, "nvidia-H100-x"), Budget::Finite(Gpus(8)));
}

#[test]
fn an_accelerator_that_is_not_stated_is_the_only_type_there_is() {
    let total = BTreeMap::from([(Arc::from("A100"), Gpus(4))]);
    let request = growth("ns", None, 3);
    let mut pools = on_nodes(&total, &[]);
    let granted = allocate(std::slice::from_ref(&request), &mut pools);
    assert_eq!(granted[&request.key].change.to, Replicas(3));
    assert_eq!(pools.budget("ns", &named(Some("A100"))), Budget::Finite(Gpus(1)));
}

prop_compose! {
    fn requests()(given in proptest::collection::vec(
        (0_u32..2, 0_u32..4, 0_u32..9, 0_u32..3, proptest::option::of(0_u32..9), 0_u32..3, 0_u32..3),
        0..8,
    )) -> Vec<GrowthRequest> {
        given.into_iter().enumerate().map(|(index, (kind, current, target, floor, max, gpus, spare))| GrowthRequest {
            key: VariantKey::new("ns", format!("v{index}")),
            current: Replicas(current),
            floor: Replicas(floor),
            max: max.map(Replicas),
            gpus: Gpus(gpus),
            spare: f64::from(spare),
            ..growth("ns", Some(if kind == 0 { "A100" } else { "H100" }), target)
        }).collect()
    }
}

proptest! {
    #[test]
    fn nothing_above_floors_exceeds_its_budget(requests in requests(), free in 0_u32..20) {
        let total: BTreeMap<Arc<str>, Gpus> = ["A100", "H100"]
            .into_iter()
            .map(|kind| {
                let used = held(&requests).get(kind).copied().unwrap_or_default();
                (Arc::from(kind), Gpus(free).plus(used))
            })
            .collect();
        let mut pools = on_nodes(&total, &requests);
        let grants = allocate(&requests, &mut pools);
        prop_assert_eq!(grants.len(), requests.len());
        for kind in ["A100", "H100"] {
            let of_kind = || requests.iter().filter(|request| request.accelerator.label() == kind);
            let owed: u32 = of_kind().map(|request| {
                let floor = request.max.map_or(request.floor, |max| request.floor.min(max));
                request.gpus.at_least_one().times(floor.saturating_sub(request.current)).0
            }).sum();
            let granted: u32 = of_kind().map(|request| grants[&request.key].gpus.0).sum();
            prop_assert!(granted <= free.max(owed), "{} > {} or {}", granted, free, owed);
        }
        for request in &requests {
            let to = grants[&request.key].change.to;
            prop_assert!(request.max.is_none_or(|max| to <= max.max(request.current)));
            prop_assert!(to <= request.target.max(request.floor));
        }
        let mut reversed = requests.clone();
        reversed.reverse();
        prop_assert_eq!(allocate(&reversed, &mut on_nodes(&total, &requests)), grants);
    }
}
