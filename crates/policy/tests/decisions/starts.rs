//! Start-up times, from pods that become ready to what is decided with them, and what waits for a start.

use std::time::Duration;

use super::{decide, planned, reason, settings, situation, targets};
use wva_policy::StartSource;
use wva_policy::key::{ModelKey, VariantKey};
use wva_policy::learned::Learned;
use wva_policy::plan::{Plan, Reason};
use wva_policy::slo::SloReport;

/// Plans one document after the other; the last plan and what is known after it.
fn decided(documents: &[impl AsRef<str>], with: &str) -> (Learned, Plan) {
    let settings = settings(with);
    let mut known = (Learned::default(), None);
    for text in documents {
        let (learned, made) = decide(&situation(text.as_ref(), &settings), &known.0, &settings);
        known = (learned, Some(made));
    }
    (known.0, known.1.unwrap())
}

/// Variant `v`, of which `a` serves and `b` starts or has started.
fn fleet(uptime: u32, pending: &str, second: &str) -> String {
    format!(
        "version: 1\ntime: {{uptime: {uptime}s}}\nvariants:\n- namespace: ns\n  name: v\n  model: m\n  \
         target: {{current: 2, ready: {}}}\n  {pending}\n  pods:\n  - {{name: a, signals: {{kvUsage: 0.6, queueLength: 0}}}}\n  \
         - {{name: b, {second}}}\n",
        if pending.is_empty() { 2 } else { 1 },
    )
}

fn waits(plan: &Plan) -> bool {
    let steps = &plan.decisions[&VariantKey::new("ns", "v")].steps;
    steps.iter().any(|step| matches!(step.why, Reason::InTransition { .. }))
}

#[test]
fn a_measured_start_is_shown_and_lengthens_the_pending_limit() {
    let starting = fleet(10_000, "pendingFor: 1s", "ready: false, age: 1s");
    let serving = |age: u32, ready: &str| {
        fleet(
            11_000,
            "",
            &format!("age: {age}s, {ready}, node: n1, signals: {{kvUsage: 0.6, queueLength: 0}}"),
        )
    };
    let late = fleet(12_000, "pendingFor: 15m", "ready: false, age: 15m");

    // The limit is 10 minutes where no start was seen, and twice a start of 8 minutes.
    let (unknown, plan) = decided(std::slice::from_ref(&late), "");
    assert!(unknown.starts.expect(&VariantKey::new("ns", "v"), Duration::ZERO).starts == 0);
    assert!(!waits(&plan));
    let (known, shown) = decided(&[starting.clone(), serving(1_000, "readyFor: 520s")], "");
    let start = known.starts.expect(&VariantKey::new("ns", "v"), Duration::ZERO);
    assert_eq!(start.source, StartSource::Measured);
    assert_eq!(start.cold, Some(Duration::from_mins(8)));
    let figures = &shown.models[&ModelKey::new("ns", "m")];
    assert_eq!(figures.starts[&VariantKey::new("ns", "v")], start);
    let (_, plan) = decided(&[starting.clone(), serving(1_000, "readyFor: 520s"), late], "");
    assert!(waits(&plan));

    // Where it is not known since when it is ready, it is ready since it was seen to be.
    let (known, _) = decided(&[starting, serving(90, "ready: true")], "");
    let start = known.starts.expect(&VariantKey::new("ns", "v"), Duration::ZERO);
    assert_eq!(start.typical, Duration::from_secs(90));
}

/// Variant `v` with `a`, which serves, and `b`, and the dearer `w` of the same model.
fn gated(age: u32, second: &str) -> String {
    let busy = "signals: {kvUsage: 0.9, queueLength: 9}";
    let target = "target: {current: 1, ready: 1}";
    format!(
        "version: 1\ntime: {{uptime: {}s}}\nvariants:\n\
         - {{namespace: ns, name: v, model: m, cost: 5, target: {{current: 2, ready: 1}}, pods: [\
         {{name: a, {busy}}}, {{name: b, age: {age}s, {second}}}]}}\n\
         - {{namespace: ns, name: w, model: m, cost: 50, {target}, pods: [{{name: c, {busy}}}]}}\n",
        10_000 + age
    )
}

#[test]
fn gated_replicas_hold_their_variant_for_five_minutes_in_a_word_of_their_own() {
    for (age, held, expected) in [
        (30, "in transition, keeps its own target", [2, 2]),
        (299, "in transition, keeps its own target", [2, 2]),
        (300, "limit reached, no longer held back", [3, 1]),
    ] {
        let (_, plan) = decided(&[gated(age, "ready: false, gated: true")], "");
        let decision = |name: &str| &plan.decisions[&VariantKey::new("ns", name)];
        let steps = decision("v").steps.iter();
        let why: Vec<String> = steps.map(|step| step.why.to_string()).collect();
        let word = format!("{held}: gated for {age}s (scheduling gates hold 1 of 2 replicas)");
        assert!(why.iter().any(|why| why.starts_with(&word)), "{why:?}");
        assert!(!why.iter().any(|why| why.contains("pending")), "{why:?}");
        let counts = ["v", "w"].map(|name| decision(name).target.map(|count| count.0));
        assert_eq!(counts, expected.map(Some), "{age}");
    }
}

/// Modes that vote name gated replicas, too, and set them apart from those on their way.
#[test]
fn gated_replicas_have_a_word_of_their_own_where_analyzers_vote() {
    let busy = "kvUsage: 0.9, queueLength: 4, kvCapacity: 100000, running: 20, inputTokens: 1000, outputTokens: 200, \
                arrivalRate: 2, completionRate: 2, generationRate: 400, interTokenLatency: 0.05, timeToFirstToken: 0.8";
    let of = |analyzer: &str, second: &str| {
        let text = format!(
            "version: 1\nvariants:\n- {{namespace: ns, name: v, model: m, accelerator: L4, bounds: {{max: 8}}, \
             desired: 2, target: {{current: 2, ready: 1}}, \
             pods: [{{name: a, age: 2h, readyFor: 1h, signals: {{{busy}}}}}, {{name: b, ready: false, {second}}}]}}\n\
             models: [{{namespace: ns, model: m, router: {{queueRequests: 0, arrivalRate: 2, queueBytes: 0}}}}]\n"
        );
        let settings = format!("saturation: {{default: {{analyzerName: {analyzer}}}}}");
        let (_, plan) = decided(&[text], &settings);
        let decision = &plan.decisions[&VariantKey::new("ns", "v")];
        assert_eq!(decision.target.map(|count| count.0), Some(2), "{second}");
        let steps = decision.steps.iter().map(|step| step.why.to_string());
        let slo = plan.models[&ModelKey::new("ns", "m")].slo.as_ref();
        let lines = slo.map_or_else(Vec::new, SloReport::lines);
        steps.chain(lines).collect::<Vec<_>>().join("\n")
    };
    for (analyzer, starting, waiting) in wva_base::cases! {
        ("saturation", "on their way lower to 0.", "on their way or gated lower to 0."),
        ("slo", "1 replicas are on their way; ", "0 replicas are on their way, 1 gated; "),
    } {
        let said = of(analyzer, "age: 120s");
        assert!(said.contains(starting) && !said.contains("gated"), "{said}");
        let said = of(analyzer, "gated: true, age: 120s");
        let word = "gated for 120s (scheduling gates hold 1 of 2 replicas)";
        assert!(said.lines().any(|line| line == word), "{said}");
        assert!(said.contains(waiting), "{said}");
        // Beyond its limit it counts neither as on its way nor as gated, and is named all the same.
        let said = of(analyzer, "gated: true, age: 400s");
        let word = "gated for 400s (scheduling gates hold 1 of 2 replicas)";
        assert!(said.lines().any(|line| line == word), "{said}");
        assert!(!said.contains(", 1 gated") && !said.contains("or gated"), "{said}");
    }
}

#[test]
fn gated_replicas_are_named_once_where_no_replica_reports() {
    let of = |second: &str, with: &str| {
        let text = format!(
            "version: 1\nvariants:\n- {{namespace: ns, name: v, model: m, desired: 1, \
             target: {{current: 1, ready: 0}}, pods: [{{name: a, age: 2m, ready: false, {second}}}]}}\n"
        );
        let (_, plan) = decided(&[text], with);
        let decision = &plan.decisions[&VariantKey::new("ns", "v")];
        assert_eq!(decision.target.map(|count| count.0), Some(1), "{with}");
        let steps = decision.steps.iter().map(|step| step.why.to_string());
        steps.collect::<Vec<_>>()
    };
    let word = "gated for 120s (scheduling gates hold 1 of 1 replicas)";
    for analyzer in ["", "saturation", "slo"] {
        let settings = format!("saturation: {{default: {{analyzerName: \"{analyzer}\"}}}}");
        let named = |second: &str| {
            let said = of(second, &settings);
            let is_held = |why: &String| why.starts_with("metrics are missing");
            assert!(said.iter().any(is_held), "{said:?}");
            said.iter().filter(|why| *why == word).count()
        };
        assert_eq!(named("gated: false"), 0, "{analyzer}");
        assert_eq!(named("gated: true"), 1, "{analyzer}");
    }
}

/// It had no replicas and nothing to measure, whatever it waited for.
#[test]
fn prefill_at_zero_names_the_decode_that_it_waits_for() {
    const ZERO: &str = "desired: 0, target: {current: 0}";
    const ORDERED: &str = "desired: 1, target: {current: 0}";
    const PENDING: &str = "desired: 1, target: {current: 1, ready: 0}, pendingFor: 1m";
    const READY: &str = "desired: 1, target: {current: 1}";
    let of = |decode: &str, queued: u32| {
        let variant = |name: &str, role: &str, cost: u32, accelerator: &str, state: &str| {
            format!(
                "- {{namespace: ns, name: {name}, model: m, role: {role}, cost: {cost}, accelerator: {accelerator}, \
                 bounds: {{min: 0}}, {state}}}\n"
            )
        };
        format!(
            "version: 1\nvariants:\n{}{}{}models: [{{namespace: ns, model: m, router: {{queueRequests: {queued}}}}}]\n",
            variant("d", "decode", 20, "H100", decode),
            variant("p", "prefill", 10, "L4", ZERO),
            variant("q", "prefill", 30, "L4", ZERO),
        )
    };
    let waits = "prefill starts once decode is ready: waits for ns/d";
    for method in ["", "saturation: {default: {analyzerName: saturation}}\n"] {
        let settings = format!("{method}scaleToZero: {{default: {{enable_scale_to_zero: true}}}}");
        for (decode, queued, expected, is_waiting) in [
            (ZERO, 0, [0, 0, 0], false),
            (ZERO, 3, [1, 0, 0], true),
            (ORDERED, 3, [1, 0, 0], true),
            (PENDING, 3, [1, 0, 0], true),
            (READY, 3, [1, 1, 0], false),
        ] {
            let made = planned(&of(decode, queued), &settings);
            let targets: Vec<u32> = targets(&made).into_values().collect();
            assert_eq!(targets, expected, "{method} {decode} {queued}");
            let said = ["p", "q"].map(|name| reason(&made, name) == waits);
            assert_eq!(said, [is_waiting, false], "{method} {decode} {queued}");
        }
    }
    // Where no GPU is free for either, the next one is not known.
    let limited = "saturation: {default: {analyzerName: saturation, enableLimiter: true}}";
    for (gpus, expected) in [(1, [true, false]), (0, [true, true])] {
        let inventory =
            format!("inventory: {{types: {{H100: {{total: 1}}, L4: {{total: {gpus}}}}}}}\n");
        let made = planned(&format!("{}{inventory}", of(PENDING, 0)), limited);
        let said = ["p", "q"].map(|name| reason(&made, name) == waits);
        assert_eq!(said, expected, "{gpus}");
    }
}
