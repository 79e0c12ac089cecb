//! Properties of GPUs that limit growth, by any limit: nodes, quotas of the cluster, quotas of
//! namespaces, by any accelerator.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proptest::prelude::*;

use super::multi_analyzer_properties::{at, bounds_of, fleet, standing};
use super::{decide, planned, settings, targets};
use wva_policy::document::{InventoryDocument, Situation, SnapshotDocument, TypeDocument};
use wva_policy::learned::Learned;
use wva_policy::params::DynamicSettings;
use wva_policy::plan::{Decision, Plan, PlanStage};

/// One way to limit growth.
#[derive(Debug, Clone, Copy)]
struct Limits {
    settings: &'static str,
    /// GPUs of each type that all variants may hold; one that is not named may have none.
    cluster: Option<&'static [(&'static str, u32)]>,
    /// GPUs that the variants of a namespace may hold of a type.
    namespaces: Option<&'static [(&'static str, &'static str, u32)]>,
    /// Whether a budget is shared by priority, so that what was published has no precedence.
    rescales: bool,
}

const NODES: Limits = Limits { settings: "", cluster: None, namespaces: None, rescales: false };

/// Every way to limit growth.
const LIMITS: [Limits; 8] = [
    Limits {
        settings: "saturation: {default: {analyzerName: saturation, enableLimiter: true}}",
        ..NODES
    },
    Limits {
        settings: "WVA_LIMITED_MODE: true\nscaleToZero: {default: {enable_scale_to_zero: true, retention_period: 1m}}",
        ..NODES
    },
    Limits {
        settings: "saturation: {default: {analyzers: [{name: saturation}, {name: throughput}], enableLimiter: true, enableRescale: true}, one: {modelId: n, namespace: ns, priority: 3}}",
        rescales: true,
        ..NODES
    },
    Limits {
        settings: "saturation: {default: {analyzerName: saturation, enableLimiter: true, limiters: [{name: q, type: quota, scope: cluster, quotas: {H100: 6, L40S: 3}}]}}",
        cluster: Some(&[("H100", 6), ("L40S", 3)]),
        ..NODES
    },
    Limits {
        settings: "saturation: {default: {analyzerName: saturation, enableLimiter: true, enableRescale: true, limiters: [{name: q, type: quota, scope: cluster, quotas: {H100: 6}}]}}",
        cluster: Some(&[("H100", 6)]),
        rescales: true,
        ..NODES
    },
    Limits {
        settings: "saturation: {default: {analyzerName: saturation, enableLimiter: true, limiters: [{name: q, type: quota, scope: namespace, namespaceQuotas: {ns: {H100: 4, L40S: 2}, other: {H100: 5}}}]}}",
        namespaces: Some(&[("ns", "H100", 4), ("ns", "L40S", 2), ("other", "H100", 5)]),
        ..NODES
    },
    Limits {
        settings: "WVA_LIMITED_MODE: true\nsaturation: {default: {limiters: [{name: q, type: quota, scope: namespace, namespaceQuotas: {ns: {H100: 4, L40S: 2}, other: {H100: 5}}}]}}",
        namespaces: Some(&[("ns", "H100", 4), ("ns", "L40S", 2), ("other", "H100", 5)]),
        ..NODES
    },
    Limits {
        settings: "saturation: {default: {analyzers: [{name: saturation}, {name: throughput}], enableLimiter: true, limiters: [{name: c, type: quota, scope: cluster, quotas: {H100: 7, L40S: 4}}, {name: n, type: quota, scope: namespace, namespaceQuotas: {ns: {H100: 4, L40S: 3}, other: {H100: 5, L40S: 3}}}]}}",
        cluster: Some(&[("H100", 7), ("L40S", 4)]),
        namespaces: Some(&[
            ("ns", "H100", 4),
            ("ns", "L40S", 3),
            ("other", "H100", 5),
            ("other", "L40S", 3),
        ]),
        ..NODES
    },
];

const NAMESPACES: [&str; 2] = ["ns", "other"];
const TYPES: [&str; 2] = ["H100", "L40S"];

/// GPUs that one type has, and that are used of it.
type Sums = BTreeMap<&'static str, (u32, u32)>;

fn sums() -> impl Strategy<Value = Sums> {
    let one = || (0..20_u32, 0..12_u32);
    (one(), one()).prop_map(|sums| TYPES.into_iter().zip([sums.0, sums.1]).collect())
}

/// Variants of two types in two namespaces.
fn spread_fleet() -> impl Strategy<Value = SnapshotDocument> {
    let places = prop::collection::vec((0..2_usize, 0..2_usize), 4);
    (fleet(), places).prop_map(|(mut document, places)| {
        for (variant, (namespace, kind)) in document.variants.iter_mut().zip(places) {
            variant.namespace = NAMESPACES[namespace].into();
            variant.accelerator = Some(TYPES[kind].into());
        }
        let served: Vec<_> = (document.variants.iter())
            .map(|variant| (variant.namespace.clone(), variant.model.clone()))
            .collect();
        (document.models)
            .retain(|one| served.contains(&(one.namespace.clone(), one.model.clone())));
        document.inventory = None;
        document
    })
}

fn with_inventory(document: &SnapshotDocument, sums: &Sums) -> SnapshotDocument {
    let types = sums
        .iter()
        .map(|(kind, (total, used))| {
            let (total, used) = (*total, *used);
            let used = Some(used);
            ((*kind).into(), TypeDocument { total, used })
        })
        .collect();
    SnapshotDocument {
        inventory: Some(InventoryDocument { types: Some(types), ..InventoryDocument::default() }),
        ..document.clone()
    }
}

/// A pool, the GPUs that it has left, and whether a variant draws from it.
struct Room {
    name: String,
    free: u32,
    namespace: Option<&'static str>,
    kind: &'static str,
}

impl Room {
    fn holds(&self, decision: &Decision) -> bool {
        decision.accelerator.label() == self.kind
            && (self.namespace).is_none_or(|namespace| *decision.key.namespace == *namespace)
    }
}

/// Every pool of one type: the nodes where they are known, and the quotas by what own variants hold.
fn rooms(limits: &Limits, sums: Option<&Sums>, made: &Plan) -> Vec<Room> {
    let mut rooms = Vec::new();
    let mut add = |limit: u32, used: Option<u32>, namespace: Option<&'static str>, kind| {
        let mut room =
            Room { name: format!("{namespace:?} {kind} of {limit}"), free: 0, namespace, kind };
        let held = made.decisions.values().filter(|one| room.holds(one));
        let held = held.map(|one| one.current.unwrap_or_default().0).sum();
        room.free = limit.saturating_sub(used.unwrap_or(held));
        rooms.push(room);
    };
    for kind in TYPES {
        if let Some((total, used)) = sums.and_then(|sums| sums.get(kind)) {
            add(*total, Some(*used), None, kind);
        }
        if let Some(quotas) = limits.cluster {
            let listed = quotas.iter().find(|(listed, _)| *listed == kind);
            add(listed.map_or(0, |(_, quota)| *quota), None, None, kind);
        }
        if let Some(quotas) = limits.namespaces {
            for namespace in NAMESPACES {
                let listed = quotas.iter().find(|one| (one.0, one.1) == (namespace, kind));
                let quota = listed.map_or(0, |(_, _, quota)| *quota);
                add(quota, None, Some(namespace), kind);
            }
        }
    }
    rooms
}

/// What the variants of a pool get beyond what they have or were granted, what they get beyond what
/// exists, and what they are owed of that.
fn growth(
    room: &Room,
    situation: &Situation,
    settings: &DynamicSettings,
    made: &Plan,
) -> (u32, u32, u32) {
    let (mut grown, mut added, mut owed) = (0, 0, 0);
    for (key, decision) in &made.decisions {
        if !room.holds(decision) {
            continue;
        }
        let view = &situation.snapshot.variants[key];
        let bounds = bounds_of(view, settings);
        let (target, current) = (decision.target.unwrap(), decision.current.unwrap());
        let floor = bounds.clamp(standing(view)).0;
        grown += target.saturating_sub(floor).0;
        added += target.saturating_sub(current).0;
        let kept = view.base().unwrap_or(current).min(target);
        owed += bounds.clamp(kept).0.saturating_sub(current).0;
    }
    (grown, added, owed)
}

fn says_unknown(decision: &Decision) -> bool {
    let mut steps = decision.steps.iter();
    steps.any(|step| step.why.to_string().contains("BudgetUnknown"))
}

/// Name, role and accelerator of variants.
type Variants = &'static [(&'static str, &'static str, &'static str)];

/// Variants of a model at zero that requests wait for: of roles, of two types, or of one; and the GPUs that
/// its start takes.
const ASLEEP: [(Variants, u32); 3] = [
    (&[("d", "decode", "H100"), ("p", "prefill", "H100")], 2),
    (&[("x", "both", "H100"), ("y", "both", "L40S")], 1),
    (&[("x", "both", "H100")], 1),
];

/// Two busy models on H100 with the number of their replicas, and a model at zero.
fn busy_and_asleep(
    busy: [u32; 2],
    free: u32,
    asleep: &[(&str, &str, &str)],
    queued: [u32; 3],
) -> String {
    let signals =
        "{kvUsage: 0.8, queueLength: 0, kvCapacity: 1250, inputTokens: 100, outputTokens: 0}";
    let mut variants = String::new();
    for (name, count) in ["a", "c"].into_iter().zip(busy) {
        let pods: Vec<String> = (0..count)
            .map(|number| format!("{{name: {name}{number}, age: 2h, signals: {signals}}}"))
            .collect();
        writeln!(
            variants,
            "- {{namespace: ns, name: {name}, model: {name}, accelerator: H100, bounds: {{min: 0}}, desired: {count}, target: {{current: {count}}}, pods: [{}]}}",
            pods.join(", ")
        )
        .unwrap();
    }
    for (name, role, kind) in asleep {
        writeln!(
            variants,
            "- {{namespace: ns, name: {name}, model: b, role: {role}, accelerator: {kind}, bounds: {{min: 0}}, desired: 0, target: {{current: 0}}}}"
        )
        .unwrap();
    }
    let routers: Vec<String> = (["a", "c", "b"].into_iter().zip(queued))
        .map(|(model, queued)| {
            let bytes = queued * 400;
            format!("{{namespace: ns, model: {model}, router: {{queueRequests: {queued}, queueBytes: {bytes}}}}}")
        })
        .collect();
    let used: u32 = busy.iter().sum();
    let total = used + free;
    format!(
        "version: 1\nvariants:\n{variants}models: [{}]\ninventory: {{types: {{H100: {{total: {total}, used: {used}}}, L40S: {{total: 0, used: 0}}}}}}\n",
        routers.join(", ")
    )
}

/// A model without replicas shares as well: what is free is shared by what its minimum leaves.
#[test]
fn a_share_leaves_the_minimum_of_a_model_that_asks_for_nothing() {
    let pods = |name: &str, loads: &[(f64, u32, u32)]| {
        let pod = |(number, (usage, queue, output)): (usize, &(f64, u32, u32))| {
            format!(
                "{{name: {name}-{number}, age: 2h, signals: {{kvUsage: {usage}, queueLength: {queue}, running: 3, kvCapacity: 16000, \
                 inputTokens: 200, outputTokens: {output}, prefixHitRate: 0.2, timeToFirstToken: 0.045, interTokenLatency: 0.03, \
                 generationRate: 0, completionRate: 0, arrivalRate: 0, kvUsageNow: {usage}}}}}"
            )
        };
        let pods: Vec<String> = loads.iter().enumerate().map(pod).collect();
        pods.join(", ")
    };
    let (a, c) = (pods("a", &[(0.05, 6, 0), (0.6, 6, 0)]), pods("c", &[(0.3, 0, 60)]));
    let text = format!(
        "version: 1
variants:
- {{namespace: ns, name: a, model: m, cost: 10, accelerator: H100, target: {{current: 2}}, pods: [{a}]}}
- {{namespace: ns, name: b, model: n, cost: 20, accelerator: H100, target: {{current: 0}}}}
- {{namespace: ns, name: c, model: m, cost: 30, accelerator: H100, desired: 2, target: {{current: 1}}, pods: [{c}]}}
models: [{{namespace: ns, model: m, router: {{queueRequests: 2, queueBytes: 400000, arrivalRate: 0}}}}]
inventory: {{types: {{H100: {{total: 9, used: 0}}}}}}
"
    );
    let shared = LIMITS.iter().find(|limits| limits.settings.contains("throughput"));
    let settings = settings(shared.unwrap().settings);
    let document = SnapshotDocument::parse(&text).unwrap();
    let situation = at(&document, 0, &settings);
    let (_, made) = decide(&situation, &Learned::default(), &settings);
    let added = |decision: &Decision| {
        decision.target.unwrap().0.saturating_sub(decision.current.unwrap().0)
    };
    let all: u32 = made.decisions.values().map(added).sum();
    assert_eq!((all, targets(&made)["b"]), (9, 1), "{:?}", made.decisions);
}

/// Limits by what nodes offer. Quotas without limited mode take its place.
fn of_nodes() -> Vec<Limits> {
    let all = LIMITS.into_iter();
    all.filter(|limits| settings(limits.settings).wants_nodes()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_growth_exceeds_any_of_its_budgets(
        document in spread_fleet(),
        sums in prop::option::of(sums()),
        limits in prop::sample::select(LIMITS.to_vec()),
    ) {
        let settings = settings(limits.settings);
        let document = sums.as_ref().map_or_else(|| document.clone(), |sums| with_inventory(&document, sums));
        let situation = at(&document, 0, &settings);
        let (_, made) = decide(&situation, &Learned::default(), &settings);
        let of_nodes = sums.as_ref().filter(|_| settings.wants_nodes());
        let rooms = rooms(&limits, of_nodes, &made);
        for room in &rooms {
            let (grown, added, owed) = growth(room, &situation, &settings, &made);
            let (name, free) = (&room.name, room.free);
            prop_assert!(grown <= free, "{}: {} > {}", name, grown, free);
            // What was published and minima come first, and growth takes what they leave.
            if !limits.rescales {
                let left = free.saturating_sub(owed);
                prop_assert!(grown <= left, "{}: {} > {} - {}", name, grown, free, owed);
            }
            // Where a budget is shared by priority, minima are raised in addition to the shares.
            let ones = if limits.rescales { made.decisions.len() } else { 0 };
            let most = free.max(owed + u32::try_from(ones).unwrap());
            prop_assert!(added <= most, "{}: {} > {}, {} owed", name, added, free, owed);
        }
    }

    #[test]
    fn an_unknown_budget_grants_nothing_and_takes_nothing(
        document in spread_fleet(),
        limits in prop::sample::select(of_nodes()),
        is_unread in any::<bool>(),
    ) {
        let settings = settings(limits.settings);
        let is_quota = limits.cluster.is_some() || limits.namespaces.is_some();
        let mut unknown = document.clone();
        if is_unread || is_quota {
            // Quotas bind alone where nodes are not read.
            unknown.inventory = Some(InventoryDocument {
                unknown: Some("forbidden".into()),
                ..InventoryDocument::default()
            });
        }
        let ample = TYPES.into_iter().map(|kind| (kind, (1_000, 0))).collect();
        let ample = at(&with_inventory(&document, &ample), 0, &settings);
        let (_, wanted) = decide(&ample, &Learned::default(), &settings);
        let situation = at(&unknown, 0, &settings);
        let (_, made) = decide(&situation, &Learned::default(), &settings);
        for (key, decision) in &made.decisions {
            let view = &situation.snapshot.variants[key];
            let bounds = bounds_of(view, &settings);
            let floor = bounds.clamp(standing(view)).0;
            let target = decision.target.unwrap();
            prop_assert!(target <= floor, "{}: {:?}", key, decision.steps);
            let of_model = || made.decisions.values().filter(|one| one.model == decision.model);
            let wish = wanted.decisions[key].target.unwrap();
            // Its last replica may be kept on another variant, which needs none of the budget.
            let is_kept = of_model().any(|one| {
                let mut steps = one.steps.iter();
                steps.any(|step| step.stage == PlanStage::Zero && step.to > step.from)
            });
            if wish > floor && !is_kept {
                prop_assert!(of_model().any(says_unknown), "{}: {:?}", key, decision.steps);
            }
            let kept = bounds.clamp(view.base().or(decision.current).unwrap()).0;
            // With a quota as well, what another model was granted by it is no measure.
            if !is_quota {
                prop_assert!(target >= wish.min(kept), "{}: {:?}", key, decision.steps);
            }
        }
    }

    #[test]
    fn no_start_that_fits_is_refused_for_growth_of_no_more_priority(
        busy in prop::array::uniform2(1..6_u32),
        queued in prop::array::uniform3(1..60_u32),
        priorities in prop::array::uniform3(1..4_u32),
        free in 0..5_u32,
        (asleep, takes) in prop::sample::select(ASLEEP.to_vec()),
        rescales in any::<bool>(),
    ) {
        let [a, c, b] = priorities;
        let settings = format!(
            "saturation: {{default: {{analyzerName: saturation, enableLimiter: true, enableRescale: {rescales}}}, a: {{modelId: a, namespace: ns, priority: {a}}}, b: {{modelId: b, namespace: ns, priority: {b}}}, c: {{modelId: c, namespace: ns, priority: {c}}}}}"
        );
        let made = planned(&busy_and_asleep(busy, free, asleep, queued), &settings);
        let of_model = |model: &'static str| {
            (made.decisions.values()).filter(move |decision| *decision.model.model == *model)
        };
        let grown = |model| {
            let each = of_model(model)
                .map(|one| one.target.unwrap().saturating_sub(one.current.unwrap()).0);
            each.sum::<u32>()
        };
        let before: u32 = [("a", a), ("c", c)].into_iter()
            .filter(|(_, priority)| *priority > b)
            .map(|(model, _)| grown(model))
            .sum();
        let after = grown("a") + grown("c") - before;
        let is_refused = grown("b") == 0;
        prop_assert!(
            !is_refused || after == 0 || before + takes > free,
            "{} free, {} before, {} after: {:#?}", free, before, after, made.decisions
        );
    }
}
