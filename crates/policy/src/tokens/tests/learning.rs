//! What is remembered, for how long, and what it is used for.

use std::collections::BTreeMap;

use serde_json::Value;

use super::world::{Cycle, Fleet, Policy};
use crate::key::{MAX_VARIANTS, VariantKey};
use crate::tokens::LearnedTokens;

fn cycle(text: &str) -> Cycle {
    serde_yaml::from_str(text).unwrap()
}

fn see(fleet: &mut Fleet, text: &str) -> BTreeMap<String, Value> {
    fleet.cycle(&cycle(text), Policy::usual())
}

const FULL: &str = "{ variants: { v: { args: [], instances: { a: { used: 8000, waiting: 6, input: 100, output: 50 } } } } }";

/// Not full, some seconds later.
fn calm(after: u64, args: &str) -> String {
    format!(
        "{{ after: {after}, variants: {{ v: {{ args: [{args}], instances: {{ a: {{ used: 1000, waiting: 0, input: 100, output: 50 }} }} }} }} }}"
    )
}

#[test]
fn readings_count_for_a_day() {
    let mut fleet = Fleet::default();
    assert_eq!(see(&mut fleet, &calm(15, ""))["v.reason"], "P3-k2");
    assert_eq!(see(&mut fleet, FULL)["v.reason"], "P1-obs");
    let later = see(&mut fleet, &calm(24 * 3600, ""));
    assert_eq!(
        (&later["v.reason"], &later["v.per_instance"]),
        (&Value::from("P2-hist"), &Value::from(8000.0))
    );
    assert_eq!(see(&mut fleet, &calm(1, ""))["v.reason"], "P3-k2");
}

#[test]
fn an_instance_at_work_that_hides_the_length_of_its_answers_lets_none_go() {
    let paired = |used: u32, output: &str, other: &str| {
        format!(
            "{{ variants: {{ v: {{ args: [], instances: {{ \
             a: {{ used: {used}, waiting: 0, input: 100{output} }}, \
             b: {{ used: 1000, waiting: 0, input: 100{other} }} }} }} }} }}"
        )
    };
    let long = ", output: 600";
    for (used, own, other, known) in [
        (1_000, long, long, true),
        (1_000, "", long, false),
        // An idle one has none to report, and of engines that never report it nothing is expected.
        (0, "", long, true),
        (1_000, "", "", true),
    ] {
        let seen = see(&mut Fleet::default(), &paired(used, own, other));
        assert_eq!(seen["v.is_demand_known"], known, "{used} {own} {other}");
    }
}

#[test]
fn readings_of_another_engine_do_not_count() {
    let mut fleet = Fleet::default();
    see(&mut fleet, FULL);
    assert_eq!(see(&mut fleet, &calm(15, ""))["v.reason"], "P2-hist");
    assert_eq!(see(&mut fleet, &calm(15, "--max-num-seqs=64"))["v.reason"], "P3-k2");
}

#[test]
fn readings_are_the_same_in_any_order_and_thinned_evenly() {
    // Twenty instances hold 500, 1000, ... 10000: the mean of what is taken is the mean of all.
    let instance = |name: usize, used: usize| {
        format!("i{name:02}: {{ used: {used}, waiting: 9, input: 0, output: 50 }}")
    };
    let fleets = [false, true].map(|reversed| {
        let instances: Vec<String> = (1..=20)
            .map(|index| instance(if reversed { 20 - index } else { index }, 500 * index))
            .collect();
        let mut fleet = Fleet::default();
        let text = format!("{{ variants: {{ v: {{ instances: {{ {} }} }} }} }}", instances.join(", "));
        see(&mut fleet, &text);
        let calm = see(
            &mut fleet,
            "{ variants: { v: { instances: { a: { used: 0, waiting: 0, input: 0, output: 50 } } } } }",
        );
        assert_eq!(calm["v.reason"], "P2-hist");
        calm["v.per_instance"].as_f64().unwrap()
    });
    assert!((fleets[0] - fleets[1]).abs() < 1e-9);
    assert!((fleets[0] - 5250.0).abs() <= 250.0, "{fleets:?}");
}

#[test]
fn a_record_is_forgotten_with_its_variant_or_after_a_week() {
    let gone = "{ variants: { w: {} } }";
    let idle = |after: u64| format!("{{ after: {after}, variants: {{ v: {{ args: [] }} }} }}");
    let mut fleet = Fleet::default();
    assert!(fleet.learned.is_empty());
    see(&mut fleet, FULL);
    assert_eq!(fleet.learned.len(), 1);
    assert_eq!(see(&mut fleet, &idle(7 * 24 * 3600))["v.idle.own"], 8000.0);
    let later = see(&mut fleet, &idle(1));
    assert_eq!((&later["v.idle.own"], &later["v.reason"]), (&Value::Null, &Value::from("no-data")));
    see(&mut fleet, FULL);
    assert_eq!(see(&mut fleet, &idle(15))["v.idle.own"], 8000.0);
    see(&mut fleet, gone);
    assert!(fleet.learned.is_empty());
    // The engine is still known, for any variant.
    let back = see(&mut fleet, &idle(15));
    assert_eq!(
        (&back["v.idle.own"], &back["v.per_instance"]),
        (&Value::Null, &Value::from(8000.0))
    );
}

#[test]
fn a_record_of_another_engine_is_not_used() {
    let mut fleet = Fleet::default();
    see(&mut fleet, FULL);
    let changed = "{ variants: { v: { args: [--block-size=32], instances: { a: { total: 0, kv: 0.5, waiting: 0 } } } } }";
    let figures = see(&mut fleet, changed);
    assert_eq!((&figures["v.silent"], &figures["v.per_instance"]), (&Value::from(1), &Value::Null));
    let same =
        "{ variants: { v: { args: [], instances: { a: { total: 0, kv: 0.5, waiting: 0 } } } } }";
    let figures = see(&mut fleet, same);
    assert_eq!(
        (&figures["v.silent"], &figures["v.a.in_use"]),
        (&Value::from(0), &Value::from(8000.0))
    );
}

#[test]
fn ranks_are_counted_by_pod() {
    let ranks = |names: &[&str]| {
        let instances: Vec<_> =
            (names.iter()).map(|name| format!("'{name}': {{ used: 1000, waiting: 0 }}")).collect();
        let text = format!(
            "{{ variants: {{ v: {{ ready: 2, instances: {{ {} }} }} }} }}",
            instances.join(", ")
        );
        let seen = see(&mut Fleet::default(), &text);
        ["ranks", "silent", "capacity.ready", "capacity.pending"]
            .map(|figure| seen[&format!("v.{figure}")].as_u64().unwrap())
    };
    assert_eq!(ranks(&["a:0", "a:1", "b:0", "b:1"]), [2, 0, 2, 0]);
    assert_eq!(ranks(&["a:0", "a:1"]), [2, 2, 1, 1]);
    assert_eq!(ranks(&["a:0", "a:1", "b:0"]), [2, 1, 1, 1]);
    // Two pods are no ranks of one.
    assert_eq!(ranks(&["a", "a-1"]), [1, 0, 2, 0]);
    // Where a replica has several pods, their ranks are its own.
    assert_eq!(ranks(&["a", "b", "c", "d"]), [2, 0, 2, 0]);
}

#[test]
fn arguments_that_fix_the_size_of_a_cache_stand_for_its_report() {
    let silent = |args: &str, instances: &str| {
        format!(
            "{{ variants: {{ v: {{ args: [{args}], ready: 1, instances: {{ {instances} }} }} }} }}"
        )
    };
    let half = "a: { total: 0, kv: 0.5, waiting: 0, input: 100, output: 0 }";
    let unknown = see(&mut Fleet::default(), &silent("", half));
    assert_eq!((&unknown["v.silent"], &unknown["v.per_instance"]), (&Value::from(1), &Value::Null));
    let vllm = "--num-gpu-blocks-override=1000, --block-size=32";
    let sglang = "sglang.launch_server, --max-total-tokens=32000";
    for args in [vllm, sglang] {
        let mut fleet = Fleet::default();
        for _ in 0..2 {
            let stated = see(&mut fleet, &silent(args, half));
            assert_eq!(
                [&stated["v.a.total"], &stated["v.a.k1"], &stated["v.a.demand"]],
                [32_000.0, 25_600.0, 16_000.0]
            );
            assert_eq!(stated["v.a.total_source"], "arguments");
            assert_eq!(stated["v.is_demand_known"], true);
        }
        // Each rank has a cache of that size.
        let ranks = format!("{half}, {}", half.replace("a:", "b:"));
        let stated = see(&mut Fleet::default(), &silent(args, &ranks));
        assert_eq!(stated["v.capacity.per_replica"], 51_200.0);
        // What is reported counts for more, and what was reported does.
        let reported = see(&mut fleet, &silent(args, &half.replace("total: 0", "total: 20000")));
        assert_eq!(
            (&reported["v.a.total"], &reported["v.a.total_source"]),
            (&Value::from(20_000.0), &Value::from("reported"))
        );
        let remembered = see(&mut fleet, &silent(args, half));
        assert_eq!(
            (&remembered["v.a.total"], &remembered["v.a.total_source"]),
            (&Value::from(20_000.0), &Value::from("remembered"))
        );
        assert_eq!(remembered["v.is_demand_known"], false);
    }
}

#[test]
fn capacity_does_not_rise_because_signals_go() {
    let silent = |after: u64| {
        format!(
            "{{ after: {after}, variants: {{ v: {{ args: [], instances: {{ a: {{ used: 0, waiting: 0 }} }} }} }} }}"
        )
    };
    let mut fleet = Fleet::default();
    assert_eq!(see(&mut fleet, &silent(15))["v.per_instance"], 12_800.0);
    see(&mut fleet, FULL);
    let bound = see(&mut fleet, &silent(30 * 60));
    assert_eq!(
        (&bound["v.upper_bound"], &bound["v.per_instance"]),
        (&Value::from(8000.0), &Value::from(8000.0))
    );
    let free = see(&mut fleet, &silent(1));
    assert_eq!(
        (&free["v.upper_bound"], &free["v.per_instance"]),
        (&Value::Null, &Value::from(12_800.0))
    );
}

#[test]
fn a_replica_without_instances_has_as_many_as_it_had() {
    let mut fleet = Fleet::default();
    see(
        &mut fleet,
        "{ variants: { v: { args: [], ready: 2, instances: { a: { repeat: 8, used: 0, waiting: 0 } } } } }",
    );
    let figures = see(&mut fleet, "{ variants: { v: { args: [], pending: 1 }, w: { args: [] } } }");
    for variant in ["v", "w"] {
        assert_eq!(figures[&format!("{variant}.capacity.per_replica")], 51_200.0);
    }
    assert_eq!(figures["v.anticipated"], 51_200.0);
}

#[test]
fn the_backlog_of_decode_teaches_nothing_about_prefill() {
    let pair = |used: u32, waiting: u32| {
        format!(
            "{{ after: 61, variants: {{ \
             p: {{ role: prefill, instances: {{ a: {{ used: 4000, waiting: 9, input: 100, output: 1 }} }} }}, \
             d: {{ role: decode, instances: {{ a: {{ used: {used}, waiting: {waiting}, input: 100, output: 50 }} }} }} }} }}"
        )
    };
    let calm = "{ after: 61, variants: { p: { role: prefill, instances: { a: { used: 0, waiting: 0, input: 100, output: 1 } } } } }";
    let mut fleet = Fleet::default();
    see(&mut fleet, &pair(13_000, 6));
    assert_eq!(see(&mut fleet, calm)["p.reason"], "P4-k1");
    // A queue alone is not it: it may wait for the prefill side.
    see(&mut fleet, &pair(100, 6));
    assert_eq!(see(&mut fleet, calm)["p.reason"], "P2-hist");
}

#[test]
fn memory_is_bounded() {
    let one = "{ variants: { v: { instances: { a: { used: 0, waiting: 0 } } } } }";
    let mut models = super::world::models(&cycle(one), Policy::usual());
    let model = models.values_mut().next().unwrap();
    let variant = model.variants.pop_first().unwrap().1;
    model.variants = (0..=MAX_VARIANTS)
        .map(|index| (VariantKey::new("ns", format!("v{index:05}")), variant.clone()))
        .collect();
    let fleet = Fleet::default();
    let learned = LearnedTokens::default().learn(&models, fleet.now());
    assert_eq!(learned.len(), MAX_VARIANTS);
    assert_eq!(learned.learn(&models, fleet.now()).len(), MAX_VARIANTS);
}

#[test]
fn what_is_learned_survives_being_stored() {
    let mut fleet = Fleet::default();
    see(&mut fleet, FULL);
    see(
        &mut fleet,
        "{ variants: { v: { args: [] }, d: { role: decode, instances: { a: { used: 13000, waiting: 6, input: 1, output: 50 } } } } }",
    );
    let stored = serde_json::to_string(&fleet.learned).unwrap();
    assert_eq!(serde_json::from_str::<LearnedTokens>(&stored).unwrap(), fleet.learned);
}
