//! Models at zero, what Prometheus and routers themselves report about their requests, and what is learned
//! without samples.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{least, planned, settings, situation};
use wva_base::moment::Moment;
use wva_policy::document::{Situation, SnapshotDocument};
use wva_policy::key::{ModelKey, VariantKey};
use wva_policy::learned::Learned;
use wva_policy::params::DynamicSettings;
use wva_policy::plan::{Plan, Reason};
use wva_policy::router_queue::QueueSource;
use wva_policy::units::Replicas;
use wva_policy::{learn, plan};

const PERCENTAGES: &str = "scaleToZero: {default: {enable_scale_to_zero: true}}";
const TOKENS: &str = "
saturation: {default: {analyzerName: saturation}}
scaleToZero: {default: {enable_scale_to_zero: true}}
";
const DOWN: &str =
    "collection: {failures: {kvUsage: down, queueLength: down, routerQueueRequests: down}}";
const NEVER: &str = "collection: {state: never}";
const OLD: &str = "collection: {ago: 1h}";
const GOOD: &str = "";

fn document(desired: u32, collection: &str, model: &str) -> String {
    let models = if model.is_empty() {
        String::new()
    } else {
        format!("models: [{{namespace: ns, model: m, {model}}}]\n")
    };
    format!(
        "version: 1\n{collection}\nvariants:\n- {{namespace: ns, name: a, model: m, cost: 10, desired: {desired}, target: {{current: 0}}}}\n{models}"
    )
}

/// The count of variant `a`, the source that was believed, and the failure of routers that do not answer.
fn outcome(plan: &Plan) -> (Option<Replicas>, Option<QueueSource>, Option<String>) {
    let decision = &plan.decisions[&VariantKey::new("ns", "a")];
    let mut source = None;
    let mut failure = None;
    for step in &decision.steps {
        match &step.why {
            Reason::Woken { source: by, .. } => source = *by,
            Reason::WakeSignalFailed { why } => failure = Some(why.to_string()),
            _ => {}
        }
    }
    (decision.target, source, failure)
}

#[test]
fn the_fresher_of_what_prometheus_and_routers_say_wakes_a_model() {
    use QueueSource::{Prometheus, Router};
    let seen = |requests: u32, age: &str| {
        format!("router: {{queueRequests: {{value: {requests}, age: {age}}}}}")
    };
    let said = |requests: u32, age: &str| {
        format!("directQueue: {{requests: {{value: {requests}, age: {age}}}}}")
    };
    let both = |seen: String, said: String| format!("{seen}, {said}");
    let failed = "directQueue: {failure: refused}".to_owned();
    let faltering = "directQueue: {requests: {value: 2, age: 5s}, failure: refused}".to_owned();
    for (collection, model, source, failure) in wva_base::cases! {
        (GOOD, String::new(), None, None),
        (GOOD, seen(3, "5s"), Some(Prometheus), None),
        (GOOD, said(3, "5s"), Some(Router), None),
        (DOWN, seen(3, "5s"), None, None),
        (DOWN, said(3, "5s"), Some(Router), None),
        (NEVER, said(3, "5s"), Some(Router), None),
        (OLD, said(3, "5s"), Some(Router), None),
        (DOWN, said(0, "1s"), None, None),
        // Too old to shrink on, and not to start on.
        (DOWN, said(3, "61s"), Some(Router), None),
        (DOWN, said(3, "6m"), None, None),
        (GOOD, both(seen(3, "9s"), said(0, "1s")), None, None),
        (GOOD, both(seen(0, "9s"), said(3, "1s")), Some(Router), None),
        (GOOD, both(seen(3, "1s"), said(0, "9s")), Some(Prometheus), None),
        (GOOD, both(seen(0, "1s"), said(3, "9s")), None, None),
        // Of one age the longer.
        (GOOD, both(seen(0, "1s"), said(3, "1s")), Some(Router), None),
        (GOOD, both(seen(3, "1s"), said(0, "1s")), Some(Prometheus), None),
        (DOWN, failed.clone(), None, Some("refused".to_owned())),
        (GOOD, both(seen(3, "5s"), failed), Some(Prometheus), None),
        (DOWN, faltering, Some(Router), None),
    } {
        for settings in [PERCENTAGES, TOKENS] {
            let text = document(0, collection, &model);
            let target = Replicas(u32::from(source.is_some()));
            let expected = (Some(target), source, failure.clone());
            assert_eq!(outcome(&planned(&text, settings)), expected, "{text}{settings}");
        }
    }
}

#[test]
fn what_routers_say_is_written_down_and_read_back() {
    let model = "directQueue: {requests: {value: 2, age: 5s}, failure: refused}";
    let settings = settings(PERCENTAGES);
    let read = |text: &str| situation(text, &settings);
    let Situation { snapshot, now, .. } = read(&document(0, DOWN, model));
    let queue = &snapshot.direct[&ModelKey::new("ns", "m")];
    assert_eq!(queue.counted.map(|counted| now.since(counted.at).as_secs()), Some(5));
    let written = SnapshotDocument::of(&snapshot, &Learned::default(), now);
    let again = read(&serde_json::to_string(&written).unwrap()).snapshot;
    assert_eq!(again.direct, snapshot.direct);
    assert_eq!(again.metrics.routers, snapshot.metrics.routers);

    let negative = document(0, DOWN, "directQueue: {requests: -1}");
    let fault = SnapshotDocument::parse(&negative)
        .unwrap()
        .situation(&settings.freshness)
        .unwrap_err()
        .to_string();
    assert!(fault.starts_with("models[0].directQueue.requests: "), "{fault}");
}

/// Learns from a document so many seconds after the last one.
fn taught(learned: &Learned, text: &str, seconds: u64) -> (Learned, Moment) {
    let settings = settings(PERCENTAGES);
    let Situation { snapshot, now, .. } = after(text, seconds, &settings);
    (learn(&snapshot, learned, &settings, now), now)
}

fn after(text: &str, seconds: u64, settings: &DynamicSettings) -> Situation {
    let text = format!("{text}time: {{uptime: {}s}}\n", 86_400 + seconds);
    situation(&text, settings)
}

/// An early cycle decides on the collection before a start: it showed no request, and by it a
/// model that was idle for long went to zero again seconds after its start.
#[test]
fn a_start_is_kept_before_a_collection_knows_of_it() {
    let variant = VariantKey::new("ns", "a");
    let target = |count: u32| format!("desired: {count}, target: {{current: 1, ready: 0}}");
    let at_zero = document(0, GOOD, "router: {queueRequests: 0}");
    let leaving = at_zero.replace("desired: 0, target: {current: 0}", &target(0));
    let started = leaving.replace(&target(0), &target(1));
    // The last replica may have gone after the last collection.
    for before in [&at_zero, &leaving] {
        let (mut learned, mut now) = taught(&Learned::default(), before, 0);
        for minute in 1..=20 {
            (learned, now) = taught(&learned, before, minute * 60);
        }
        let floor = least(&learned, &variant, Duration::MAX, now);
        assert_eq!(floor, Replicas::ZERO);
        for with in [PERCENTAGES, TOKENS] {
            let settings = settings(with);
            let decided = |learned: &Learned| {
                let Situation { snapshot, now, .. } = after(&started, 1_215, &settings);
                plan(&snapshot, learned, &settings, 1, now).decisions[&variant].target
            };
            let unaware = Learned { at_zero: BTreeSet::new(), ..learned.clone() };
            assert_eq!(decided(&unaware), Some(Replicas::ZERO), "idle for long");
            assert_eq!(decided(&learned), Some(Replicas::ONE), "started since");
        }
    }
}

/// Its replicas serve and report all the while; another variant of the model went on resting, and by it the
/// model was not in use (seed 1071 of storm).
#[test]
fn a_model_may_be_in_use_by_replicas_whose_target_is_claimed_twice() {
    let model = ModelKey::new("ns", "m");
    let resting = document(0, GOOD, "router: {queueRequests: 0}");
    let other = |state: &str| {
        let target = format!("{{name: d, {state}}}");
        let view = format!(
            "variants:\n- {{namespace: ns, name: b, model: m, desired: 0, target: {target}}}"
        );
        resting.replacen("variants:", &view, 1)
    };
    for (state, idle) in [
        ("state: resolved, current: 0", 60),
        ("state: notFound", 60),
        ("state: contested, claimants: [ns/b, ns/c]", 0),
        ("state: unsupportedKind, kind: Pod", 0),
    ] {
        let (learned, _) = taught(&Learned::default(), &other(state), 0);
        let (learned, now) = taught(&learned, &other(state), 60);
        let known = learned.activity.idle_for(&model, now);
        assert_eq!(known, Some(Duration::from_secs(idle)), "{state}");
    }
}

/// A variant of which nothing is as old as the last collection was at zero since, for all that is known.
#[test]
fn a_start_is_kept_where_no_collection_saw_the_zero_before_it() {
    let variant = VariantKey::new("ns", "a");
    let model = ModelKey::new("ns", "m");
    let with = |state: &str| {
        document(1, GOOD, "router: {queueRequests: 0}").replace("target: {current: 0}", state)
    };
    let pod = |more: &str| {
        with(&format!(
            "target: {{current: 1}}, pods: [{{name: p, {more}, signals: {{kvUsage: 0, queueLength: 0, \
             running: 0, completionRate: 0, generationRate: 0}}}}]"
        ))
    };
    let there = pod("age: 2h, readyFor: 1h");
    let (mut learned, mut now) = taught(&Learned::default(), &there, 0);
    for minute in 1..=20 {
        (learned, now) = taught(&learned, &there, minute * 60);
    }
    assert_eq!(learned.at_zero, BTreeSet::new());
    let floor = least(&learned, &variant, Duration::MAX, now);
    assert_eq!(floor, Replicas::ZERO);
    // 15 seconds after the collection; what is older than that was there.
    let unapplied = |for_: &str| with(&format!("unappliedFor: {for_}, target: {{current: 0}}"));
    let pending = |for_: &str, age: &str| {
        with(&format!(
            "pendingFor: {for_}, target: {{current: 1, ready: 0}}, pods: [{{name: q, ready: false, age: {age}}}]"
        ))
    };
    for (text, expected) in [
        (unapplied("20s"), 0),
        (unapplied("5s"), 1),
        (pending("20s", "20s"), 0),
        (pending("5s", "20s"), 0),
        (pending("5s", "5s"), 1),
    ] {
        for with in [PERCENTAGES, TOKENS] {
            let settings = settings(with);
            let Situation { snapshot, now, .. } = after(&text, 1_215, &settings);
            let made = plan(&snapshot, &learned, &settings, 1, now);
            let decision = &made.decisions[&variant];
            assert_eq!(decision.target, Some(Replicas(expected)), "{text} {:?}", decision.steps);
        }
    }
    // It may be ready by the next collection, which counts its retention from there.
    for (text, idle_for, floor) in [
        (pod("age: 2h, readyFor: 1h"), 1_230, 0),
        (pod("age: 2h, readyFor: 3s"), 1_230, 0),
        (pod("age: 20s, readyFor: 3s"), 0, 1),
    ] {
        let (learned, now) = taught(&learned, &text, 1_230);
        let idle = learned.activity.idle_for(&model, now);
        assert_eq!(idle, Some(Duration::from_secs(idle_for)), "{text}");
        let kept = least(&learned, &variant, Duration::MAX, now);
        assert_eq!(kept, Replicas(floor), "{text}");
    }
}

#[test]
fn a_model_may_be_in_use_and_be_started_without_samples() {
    let (model, variant) = (ModelKey::new("ns", "m"), VariantKey::new("ns", "a"));
    let hold = Duration::from_mins(10);
    let idle = "router: {queueRequests: 0}";
    let (learned, _) = taught(&Learned::default(), &document(0, GOOD, idle), 0);
    let (learned, now) = taught(&learned, &document(0, GOOD, idle), 60);
    assert_eq!(learned.activity.idle_for(&model, now), Some(Duration::from_mins(1)));
    assert_eq!(least(&learned, &variant, hold, now), Replicas::ZERO);

    let (learned, now) = taught(&learned, &document(1, DOWN, ""), 120);
    assert_eq!(learned.activity.idle_for(&model, now), Some(Duration::ZERO));
    assert_eq!(least(&learned, &variant, hold, now), Replicas::ONE);

    // It goes on being held where it was not noticed twice.
    let (learned, now) = taught(&learned, &document(1, GOOD, idle), 180);
    assert_eq!(learned.activity.idle_for(&model, now), Some(Duration::from_mins(1)));
    assert_eq!(least(&learned, &variant, hold, now), Replicas::ONE);
}

/// A fleet at zero that requests wait for: each variant has a name, a role, a cost and a minimum.
fn asked(variants: &[(&str, &str, u32, u32)]) -> String {
    let all: Vec<String> = (variants.iter())
        .map(|(name, role, cost, min)| {
            format!(
                "- {{namespace: ns, name: {name}, model: m, role: {role}, cost: {cost}, bounds: {{min: {min}}}, \
                 desired: 0, target: {{current: 0}}}}"
            )
        })
        .collect();
    let all = all.join("\n");
    format!(
        "version: 1\nvariants:\n{all}\nmodels: [{{namespace: ns, model: m, router: {{queueRequests: 3}}}}]\n"
    )
}

fn targets(plan: &Plan) -> Vec<(&str, u32)> {
    let all = plan.decisions.iter();
    all.map(|(key, decision)| (&*key.name, decision.target.unwrap().0)).collect()
}

/// It was not seen to serve, and a cheaper one was started besides.
#[test]
fn who_is_raised_to_its_own_minimum_serves() {
    for (variants, expected) in wva_base::cases! {
        // None is raised: the cheapest is started.
        (vec![("a", "both", 5, 0), ("b", "both", 30, 0)], vec![("a", 1), ("b", 0)]),
        (vec![("a", "both", 5, 0), ("b", "both", 30, 1)], vec![("a", 0), ("b", 1)]),
        // Prefill joins once decode is ready.
        (vec![("a", "both", 5, 0), ("d", "decode", 30, 2), ("p", "prefill", 1, 0)], vec![("a", 0), ("d", 2), ("p", 0)]),
        // Prefill alone serves no request. The raised one is the partner, whatever its cost.
        (vec![("d", "decode", 3, 0), ("p", "prefill", 30, 1), ("q", "prefill", 1, 0)],
         vec![("d", 1), ("p", 1), ("q", 0)]),
        (vec![("a", "both", 5, 0), ("d", "decode", 3, 0), ("p", "prefill", 30, 1)], vec![("a", 0), ("d", 1), ("p", 1)]),
    } {
        for settings in [PERCENTAGES, TOKENS, ""] {
            let made = planned(&asked(&variants), settings);
            assert_eq!(targets(&made), expected, "{settings}");
        }
    }
}

const OFF: &str = "saturation: {default: {analyzerName: saturation, enableLimiter: true}}";

/// The target and the reason of one variant.
fn said<'a>(plan: &'a Plan, name: &'a str) -> (&'a str, u32, String) {
    let decision = &plan.decisions[&VariantKey::new("ns", name)];
    (name, decision.target.unwrap().0, decision.reason())
}

/// It started both at once, and left prefill alone where decode got no GPU.
#[test]
fn the_minimum_of_one_starts_decode_before_prefill() {
    let of = |decode: &str, prefill: &str, gpus: u32| {
        format!(
            "version: 1\nvariants:\n\
             - {{namespace: ns, name: d, model: m, role: decode, cost: 20, accelerator: H100, bounds: {{min: 0}}, {decode}}}\n\
             - {{namespace: ns, name: p, model: m, role: prefill, cost: 10, accelerator: L4, bounds: {{min: 0}}, {prefill}}}\n\
             models: [{{namespace: ns, model: m, router: {{queueRequests: 0}}}}]\n\
             inventory: {{types: {{H100: {{total: {gpus}}}, L4: {{total: 3}}}}}}\n"
        )
    };
    let zero = "desired: 0, target: {current: 0}";
    let ordered = "desired: 1, target: {current: 0}";
    let pending = "desired: 1, target: {current: 1, ready: 0}, pendingFor: 1m";
    let ready = "desired: 1, target: {current: 1}";
    for (decode, prefill, gpus, expected) in [
        (zero, zero, 1, [("d", 1), ("p", 0)]),
        (ordered, zero, 1, [("d", 1), ("p", 0)]),
        (pending, zero, 1, [("d", 1), ("p", 0)]),
        (ready, zero, 1, [("d", 1), ("p", 1)]),
        (zero, ready, 1, [("d", 1), ("p", 1)]),
        (zero, ordered, 1, [("d", 1), ("p", 1)]),
        (zero, zero, 0, [("d", 0), ("p", 0)]),
    ] {
        let made = planned(&of(decode, prefill, gpus), OFF);
        assert_eq!(targets(&made), expected, "{decode} {prefill} {gpus}");
    }
    let refused = planned(&of(zero, zero, 0), OFF);
    let due = "one is due since scale to zero is off";
    let short = "H100 has 0 free GPUs in inventory[type=H100], one replica takes 1";
    let alone = "nothing that it would serve with can start";
    assert_eq!(said(&refused, "d").2, format!("wake refused: {short}; {due}"));
    assert_eq!(said(&refused, "p").2, format!("wake refused: {alone}; {due}"));
}

/// Where scale to zero is off, neither who waits nor the minimum of one asked what GPUs allow.
#[test]
fn no_start_exceeds_its_budget_where_scale_to_zero_is_off() {
    let of = |state: &str, queued: u32, inventory: &str| {
        format!(
            "version: 1\nvariants:\n\
             - {{namespace: ns, name: b, model: m, accelerator: H100, gpus: {{nvidia.com/gpu: 2}}, bounds: {{min: 0}}, {state}}}\n\
             models: [{{namespace: ns, model: m, router: {{queueRequests: {queued}}}}}]\n\
             inventory: {{{inventory}}}\n"
        )
    };
    let zero = "desired: 0, target: {current: 0}";
    let leaving = "desired: 0, target: {current: 1}";
    let (free, taken) =
        ("types: {H100: {total: 8, used: 6}}", "types: {H100: {total: 8, used: 7}}");
    let unknown = "unknown: forbidden";
    let waiting = "3 requests wait in the router";
    let due = "one is due since scale to zero is off";
    let kept = "Preserving minimum replica on cheapest variant (scale-to-zero disabled)";
    let short = "wake refused: H100 has 1 free GPUs in inventory[type=H100], one replica takes 2";
    let blind =
        "BudgetUnknown: inventory[type=H100] is not known; wake refused: one replica takes 2";
    for (state, queued, inventory, target, reason) in [
        (zero, 3, free, 1, format!("started from zero: {waiting}")),
        (zero, 3, taken, 0, format!("{short}; {waiting}")),
        (zero, 3, unknown, 0, format!("{blind}; {waiting}")),
        (zero, 0, free, 1, kept.to_owned()),
        (zero, 0, taken, 0, format!("{short}; {due}")),
        (zero, 0, unknown, 0, format!("{blind}; {due}")),
        // A replica that exists has its GPUs.
        (leaving, 0, taken, 1, kept.to_owned()),
        (leaving, 0, unknown, 1, kept.to_owned()),
    ] {
        let made = planned(&of(state, queued, inventory), OFF);
        let expected = ("b", target, reason);
        assert_eq!(said(&made, "b"), expected, "{state} {queued} {inventory}");
    }
}

/// It was called a minimum of the variant, which has none.
#[test]
fn a_start_is_kept_for_its_own_reason() {
    let at_zero = document(0, GOOD, "router: {queueRequests: 0}");
    let started = document(1, GOOD, "router: {queueRequests: 0}")
        .replace("target: {current: 0}", "target: {current: 1, ready: 0}");
    let settings = settings(PERCENTAGES);
    let decided = |learned: &Learned, seconds: u64| {
        let Situation { snapshot, now, .. } = after(&started, seconds, &settings);
        let made = plan(&snapshot, learned, &settings, 1, now);
        let (_, target, reason) = said(&made, "a");
        (target, reason)
    };
    let kept = |ago: u32| {
        let text = format!(
            "activation-retention: ns/a was started from zero {ago}s ago and is kept for 600s"
        );
        (1, text)
    };
    let unaware = Learned::default();
    let unknown = (1, "metrics are missing: nothing is lowered".to_owned());
    assert_eq!(decided(&unaware, 1_000), unknown);
    let (learned, _) = taught(&Learned::default(), &at_zero, 1_000);
    // No collection knows of it yet.
    assert_eq!(decided(&learned, 1_015), kept(0));
    let (learned, _) = taught(&learned, &started, 1_060);
    assert_eq!(decided(&learned, 1_060), kept(0));
    assert_eq!(decided(&learned, 1_659), kept(599));
    let idle = "No requests in retention period, scaling to zero (idle for 600s of 600s)";
    assert_eq!(decided(&learned, 1_660), (0, idle.to_owned()));
}
