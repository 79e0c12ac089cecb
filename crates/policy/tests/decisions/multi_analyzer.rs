//! Models that analyzers vote on, from a document to a plan.

use std::collections::BTreeMap;

use super::{decide, planned, reason, settings, situation, targets};
use wva_policy::capacity::ServingRole;
use wva_policy::check_plan;
use wva_policy::key::{ModelKey, VariantKey};
use wva_policy::learned::Learned;
use wva_policy::plan::{DecisionOutcome, Plan, PlanStage, Reason};
use wva_policy::tokens::CapacityReason;

const TOKENS: &str = "saturation: {default: {analyzerName: saturation}}";
const LIMITED: &str = "saturation: {default: {analyzerName: saturation, enableLimiter: true}}";

/// One variant of model `m` in `ns`, its replicas each with 16000 tokens of which a share is in use.
fn variant(name: &str, fields: &str, usages: &[f64]) -> String {
    let pods: Vec<String> = usages
        .iter()
        .enumerate()
        .map(|(number, usage)| {
            format!(
                "  - {{name: {name}-{number}, signals: {{kvUsage: {usage}, queueLength: 0, \
                 kvCapacity: 16000, inputTokens: 100, outputTokens: 0}}}}\n"
            )
        })
        .collect();
    let pods = if pods.is_empty() { String::new() } else { format!("  pods:\n{}", pods.concat()) };
    let count = usages.len();
    format!(
        "- namespace: ns\n  name: {name}\n  model: m\n  target: {{current: {count}}}\n  {fields}\n{pods}"
    )
}

fn document(variants: &[String], more: &str) -> String {
    format!("version: 1\nvariants:\n{}{more}\n", variants.concat())
}

fn to(plan: &Plan, name: &str) -> u32 {
    targets(plan)[name]
}

fn stages(plan: &Plan, name: &str) -> Vec<PlanStage> {
    let decision = &plan.decisions[&VariantKey::new("ns", name)];
    decision.steps.iter().map(|step| step.stage).collect()
}

#[test]
fn tokens_decide_where_they_are_selected_and_show_every_figure() {
    let text = document(&[variant("a", "cost: 10", &[0.6875])], "");
    let by_percentage = planned(&text, "");
    assert_eq!(to(&by_percentage, "a"), 1);
    assert!(stages(&by_percentage, "a").contains(&PlanStage::Saturation));

    let by_tokens = planned(&text, TOKENS);
    assert_eq!(to(&by_tokens, "a"), 2);
    assert_eq!(stages(&by_tokens, "a"), [PlanStage::Base, PlanStage::Optimizer, PlanStage::Bounds]);
    assert!(reason(&by_tokens, "a").contains("scale-up"), "{}", reason(&by_tokens, "a"));
    let figures = &by_tokens.models[&ModelKey::new("ns", "m")];
    let report = figures.tokens.as_ref().unwrap();
    let instance = report.variants[&VariantKey::new("ns", "a")].instances.get("a-0").unwrap();
    assert_eq!((instance.k1.0, instance.demand.0), (12_800.0, 11_000.0));
    assert_eq!(instance.k2_source, CapacityReason::Memory);
    // 11000 / 0.85 - 12800.
    assert!((report.model.balance.required - 141.176).abs() < 0.001);
    let consensus = figures.consensus.as_ref().unwrap();
    assert!(consensus.roles.contains_key(&ServingRole::Both));
}

#[test]
fn an_idle_model_shows_no_negative_zero() {
    let idle =
        "signals: {kvUsage: 0, queueLength: 0, running: 0, arrivalRate: 0, kvCapacity: 16000}";
    let fields = format!("pods: [{{name: a, {idle}}}, {{name: b, {idle}}}]");
    let busy = variant("a", &fields, &[]).replace("current: 0", "current: 2");
    let router = "models: [{namespace: ns, model: m, router: {queueRequests: 0, arrivalRate: 0}}]";
    let settings = "{saturation: {default: {analyzers: [{name: saturation}, {name: throughput}]}}, queueingModel: {default: {}}}";
    for variants in [busy, variant("a", "cost: 10", &[])] {
        let made = planned(&document(&[variants], router), settings);
        let shown = serde_json::to_string(&made).unwrap();
        assert!(!shown.contains("-0.0"), "{shown}");
    }
}

#[test]
fn pending_replicas_count_as_supply_and_growth_stops_there() {
    let ready = variant("a", "cost: 10", &[0.6875]);
    let pending = ready.replace("{current: 1}", "{current: 2, ready: 1}");
    assert_eq!(to(&planned(&document(&[ready], ""), TOKENS), "a"), 2);
    assert_eq!(to(&planned(&document(&[pending], ""), TOKENS), "a"), 2);
}

#[test]
fn several_replicas_go_at_once_and_the_most_expensive_first() {
    let text = document(
        &[variant("cheap", "cost: 10", &[0.01, 0.01]), variant("dear", "cost: 40", &[0.01, 0.01])],
        "",
    );
    let made = planned(&text, TOKENS);
    assert_eq!((to(&made, "cheap"), to(&made, "dear")), (1, 1));
    assert!(reason(&made, "dear").contains("scale-down"));
}

#[test]
fn a_replica_that_says_only_half_keeps_all_of_them() {
    let whole = document(&[variant("a", "cost: 10", &[0.01, 0.01, 0.01])], "");
    assert_eq!(to(&planned(&whole, TOKENS), "a"), 1);
    for (from, missing) in [
        ("kvUsage: 0.01, ", ""),
        ("queueLength: 0, ", ""),
        ("kvUsage: 0.01", "kvUsage: {value: 0.01, age: 90s}"),
        ("kvUsage: 0.01, queueLength: 0", "kvUsage: {state: failed}"),
    ] {
        let poorer = whole.replacen(from, missing, 1);
        assert_ne!(poorer, whole);
        let made = planned(&poorer, TOKENS);
        assert_eq!(to(&made, "a"), 3, "{missing}: {}", reason(&made, "a"));
    }
}

#[test]
fn a_failed_query_leaves_everything_to_the_safety_net() {
    let variants = [variant("a", "desired: 4", &[0.9, 0.9])];
    let text = document(&variants, "collection: {failures: {kvUsage: refused}}");
    let made = planned(&text, TOKENS);
    assert_eq!(to(&made, "a"), 4);
    let decision = &made.decisions[&VariantKey::new("ns", "a")];
    assert_eq!(decision.outcome, DecisionOutcome::SafetyNet);
    assert!(made.models.is_empty());
}

#[test]
fn the_router_queue_is_demand_and_an_unknown_one_never_shrinks() {
    let variants = [variant("a", "cost: 10", &[0.01, 0.01])];
    let with = |router: &str| {
        let model = format!("models: [{{namespace: ns, model: m, router: {router}}}]");
        planned(&document(&variants, &model), TOKENS)
    };
    assert_eq!(to(&with("{queueRequests: 0}"), "a"), 1);
    assert_eq!(to(&with("{}"), "a"), 2);
    let busy = with("{queueRequests: 1000}");
    assert!(to(&busy, "a") > 2, "{}", reason(&busy, "a"));
}

#[test]
fn gpus_limit_growth_and_an_unknown_budget_stops_it() {
    let variants =
        [variant("a", "accelerator: H100\n  gpus: {nvidia.com/gpu: 2}", &[0.99, 0.99, 0.99, 0.99])];
    let with = |inventory: &str| planned(&document(&variants, inventory), LIMITED);
    let free = planned(&document(&variants, ""), TOKENS);
    assert!(to(&free, "a") >= 6, "{}", to(&free, "a"));

    let limited = with("inventory: {types: {H100: {total: 10, used: 8}}}");
    assert_eq!(to(&limited, "a"), 5);
    assert!(reason(&limited, "a").contains("allocated 2 GPUs"), "{}", reason(&limited, "a"));
    for unknown in ["", "inventory: {unknown: no permission}"] {
        let held = with(unknown);
        assert_eq!(to(&held, "a"), 4);
        let decision = &held.decisions[&VariantKey::new("ns", "a")];
        let said = decision.steps.iter().any(|step| step.why.to_string().contains("BudgetUnknown"));
        assert!(said, "{decision:?}");
    }
    let full = with("inventory: {types: {H100: {total: 8, used: 8}}}");
    assert_eq!(to(&full, "a"), 4);
}

#[test]
fn an_unknown_budget_lowers_nothing_that_was_published() {
    let variants = [variant("a", "accelerator: H100\n  desired: 7", &[0.99, 0.99, 0.99, 0.99])];
    for settings in
        [LIMITED, "saturation: {default: {enableLimiter: true}}", "WVA_LIMITED_MODE: true"]
    {
        assert_eq!(to(&planned(&document(&variants, ""), settings), "a"), 7, "{settings}");
    }
}

#[test]
fn percentages_are_limited_as_well_and_quotas_bind_alone() {
    let variants = [variant("a", "accelerator: H100\n  desired: 2", &[0.78, 0.78])];
    let text = document(&variants, "");
    assert_eq!(to(&planned(&text, ""), "a"), 3);
    let unknown = planned(&text, "saturation: {default: {enableLimiter: true}}");
    assert_eq!(to(&unknown, "a"), 2);
    assert!(stages(&unknown, "a").contains(&PlanStage::Limit));
    let quota = |most: u32| {
        format!(
            "saturation: {{default: {{enableLimiter: true, limiters: [{{name: q, type: quota, \
             scope: cluster, quotas: {{H100: {most}}}}}]}}}}"
        )
    };
    assert_eq!(to(&planned(&text, &quota(3)), "a"), 3);
    assert_eq!(to(&planned(&text, &quota(2)), "a"), 2);
    // They replace what nodes offer, which is stated and full, unless limited mode requires both.
    let full = format!("{text}inventory: {{types: {{H100: {{total: 2, used: 2}}}}}}\n");
    assert_eq!(to(&planned(&full, &quota(3)), "a"), 3);
    let both = format!("WVA_LIMITED_MODE: true\n{}", quota(3));
    assert_eq!(to(&planned(&full, &both), "a"), 2);
}

#[test]
fn the_queueing_model_sizes_by_targets_once_it_has_learned() {
    let pod = |name: &str, rate: f64, latencies: &str| {
        format!(
            "  - {{name: {name}, signals: {{kvUsage: 0.3, queueLength: 0, arrivalRate: {rate}, inputTokens: 512, \
             outputTokens: 128{latencies}}}}}\n"
        )
    };
    let seen = ", timeToFirstToken: 0.045, interTokenLatency: 0.008";
    let text = |pods: &[String]| {
        format!(
            "version: 1\nvariants:\n- namespace: ns\n  name: a\n  model: m\n  target: {{current: {}}}\n  \
             pods:\n{}",
            pods.len(),
            pods.concat()
        )
    };
    let settings = "queueingModel: {default: {}, one: {model_id: m, namespace: ns, targetTTFT: 500, targetITL: 24}}";
    let calm = pod("a-0", 0.2, seen);
    let made = planned(&text(std::slice::from_ref(&calm)), settings);
    let figures = made.models[&ModelKey::new("ns", "m")].queueing.clone().unwrap();
    let own = &figures.variants[&VariantKey::new("ns", "a")];
    let parameters = own.parameters.unwrap();
    assert!((parameters.alpha - 7.2).abs() < 1.5, "{parameters:?}");
    let capacity = own.supply.unwrap().per_replica.0;
    assert!(capacity > 0.0);
    assert_eq!(made.models[&ModelKey::new("ns", "m")].percentage, None);

    let busy = planned(&text(&[calm, pod("a-1", capacity * 3.0, "")]), settings);
    assert!(to(&busy, "a") >= 4, "{capacity}: {}", reason(&busy, "a"));
    // As much within its targets, which the estimate holds for impossible, is what a replica can do.
    let able = planned(&text(&[pod("a-0", capacity * 3.0, seen)]), settings);
    assert_eq!(to(&able, "a"), 2, "{}", reason(&able, "a"));
}

#[test]
fn in_hybrid_mode_saturation_vetoes_what_the_model_would_take() {
    let pods = |kv: f64| -> String {
        let one = |number: u32| {
            format!(
                "  - {{name: a-{number}, signals: {{kvUsage: {kv}, queueLength: 0, arrivalRate: 0.2, \
                 inputTokens: 512, outputTokens: 128, timeToFirstToken: 0.045, \
                 interTokenLatency: 0.008}}}}\n"
            )
        };
        [one(0), one(1), one(2)].concat()
    };
    let text = |kv: f64| {
        format!(
            "version: 1\nvariants:\n- namespace: ns\n  name: a\n  model: m\n  desired: 3\n  target: \
             {{current: 3}}\n  pods:\n{}",
            pods(kv)
        )
    };
    let settings = "EXPERIMENTAL_PROACTIVE_MODEL: true";
    let safe = planned(&text(0.05), settings);
    assert_eq!(to(&safe, "a"), 1, "{}", reason(&safe, "a"));
    let vetoed = planned(&text(0.75), settings);
    assert_eq!(to(&vetoed, "a"), 3, "{}", reason(&vetoed, "a"));
    let step = vetoed.decisions[&VariantKey::new("ns", "a")]
        .steps
        .iter()
        .find(|step| step.stage == PlanStage::Hybrid);
    assert!(matches!(step.unwrap().why, Reason::Arbitrated { .. }));
}

const ZERO: &str = "
saturation: {default: {analyzerName: saturation}}
scaleToZero: {default: {enable_scale_to_zero: true, retention_period: 5m}}
";

/// What a process knows that has seen the model idle for so many seconds.
fn idle_for(seconds: u64) -> String {
    let last = 86_400 - seconds;
    format!(
        "learned: {{version: 2, activity: {{ns/m: {{monotonic: {{secs: {last}, nanos: 0}}, wall: 0}}}}}}"
    )
}

#[test]
fn an_idle_model_goes_to_zero_after_its_retention_and_not_without_a_wake_signal() {
    let idle =
        variant("a", "cost: 10", &[0.0]).replace("queueLength: 0", "queueLength: 0, running: 0");
    let queue = "models: [{namespace: ns, model: m, router: {queueRequests: 0}}]\n";
    let with = |variant: &str, router: &str, seconds: u64| {
        let more = format!("{router}{}", idle_for(seconds));
        planned(&document(&[variant.to_owned()], &more), ZERO)
    };
    assert_eq!(to(&with(&idle, queue, 299), "a"), 1);
    let gone = with(&idle, queue, 300);
    assert_eq!(to(&gone, "a"), 0);
    let step = &gone.decisions[&VariantKey::new("ns", "a")].steps[2];
    assert!(matches!(step.why, Reason::NoRequests { .. }), "{step:?}");
    let silent = with(&idle, "", 300);
    assert_eq!(to(&silent, "a"), 1);
    assert!(
        silent.decisions[&VariantKey::new("ns", "a")]
            .steps
            .iter()
            .any(|step| step.why.to_string() == "no-wake-signal")
    );
    assert_eq!(to(&with(&idle.replace("running: 0", "running: 2"), queue, 300), "a"), 1);
    assert_eq!(to(&with(&idle.replace(", running: 0", ""), queue, 300), "a"), 1);
    let floored = idle.replace("cost: 10", "bounds: {min: 1}");
    assert_eq!(to(&with(&floored, queue, 300), "a"), 1);
}

#[test]
fn a_request_in_the_router_wakes_the_cheapest_variant_of_a_model_at_zero() {
    let empty = |name: &str, cost: u32| variant(name, &format!("cost: {cost}\n  desired: 0"), &[]);
    let text = |queue: u32| {
        let model =
            format!("models: [{{namespace: ns, model: m, router: {{queueRequests: {queue}}}}}]");
        document(&[empty("dear", 40), empty("cheap", 10)], &model)
    };
    for settings in [ZERO, "WVA_SCALE_TO_ZERO: true"] {
        let quiet = planned(&text(0), settings);
        assert_eq!((to(&quiet, "cheap"), to(&quiet, "dear")), (0, 0));
        let woken = planned(&text(3), settings);
        assert_eq!((to(&woken, "cheap"), to(&woken, "dear")), (1, 0));
        assert!(reason(&woken, "cheap").contains("3 requests"));
    }
}

#[test]
fn a_model_that_must_not_be_at_zero_keeps_a_serving_set() {
    let empty = |name: &str, cost: u32| {
        variant(name, &format!("cost: {cost}\n  desired: 0\n  bounds: {{min: 0}}"), &[])
    };
    let text = document(&[empty("dear", 40), empty("cheap", 10)], "");
    let made = planned(&text, TOKENS);
    assert_eq!(targets(&made), BTreeMap::from([("cheap".to_owned(), 1), ("dear".to_owned(), 0)]));
}

/// Plans one document after the other, at so many seconds of uptime, and remembers.
fn cycles(texts: &[(u64, String)], with: &str) -> Vec<Plan> {
    let settings = settings(with);
    let mut learned = Learned::default();
    let mut plans = Vec::new();
    for (uptime, text) in texts {
        let text = format!("{text}time: {{uptime: {uptime}s}}\n");
        let situation = situation(&text, &settings);
        let (known, made) = decide(&situation, &learned, &settings);
        let sound = check_plan(&situation.snapshot, &settings, &made);
        assert_eq!(sound, Ok(()), "{text}");
        learned = known;
        plans.push(made);
    }
    plans
}

#[test]
fn a_woken_variant_stays_for_its_retention_and_then_rests_again() {
    let router = |queue: u32| {
        format!("models: [{{namespace: ns, model: m, router: {{queueRequests: {queue}}}}}]")
    };
    let empty = |queue| document(&[variant("a", "desired: 0", &[])], &router(queue));
    let idle = variant("a", "desired: 1", &[0.0]);
    let idle = idle.replace("queueLength: 0", "queueLength: 0, running: 0");
    let idle = document(&[idle], &router(0));
    let mut looks = vec![(3_600, empty(0)), (4_200, empty(3))];
    looks.extend([4_230, 4_290, 4_350, 4_410, 4_470, 4_529, 4_530].map(|at| (at, idle.clone())));
    let plans = cycles(&looks, ZERO);
    let counts: Vec<u32> = plans.iter().map(|plan| to(plan, "a")).collect();
    assert_eq!(counts, [0, 1, 1, 1, 1, 1, 1, 1, 0]);
}

#[test]
fn what_engines_held_is_remembered_from_cycle_to_cycle() {
    let full = variant("a", "cost: 10", &[0.5]).replace("queueLength: 0", "queueLength: 6");
    let full = full.replace("outputTokens: 0", "outputTokens: 50");
    let later = full.replace("queueLength: 6", "queueLength: 2");
    let plans = cycles(&[(3_600, document(&[full], "")), (3_630, document(&[later], ""))], TOKENS);
    let k2 = |plan: &Plan| {
        let figures = plan.models[&ModelKey::new("ns", "m")].tokens.clone().unwrap();
        let instance = figures.variants[&VariantKey::new("ns", "a")].instances.get("a-0").unwrap();
        (instance.k2.0, instance.k2_source)
    };
    assert_eq!(k2(&plans[0]), (8_000.0, CapacityReason::Observed));
    assert_eq!(k2(&plans[1]), (8_000.0, CapacityReason::History));
}

#[test]
fn a_pod_with_ranks_counts_each_of_them() {
    let rank =
        "{kvUsage: 0.5, queueLength: 0, kvCapacity: 16000, inputTokens: 100, outputTokens: 0}";
    let text = format!(
        "version: 1\nvariants:\n- namespace: ns\n  name: a\n  model: m\n  target: {{current: 1}}\n  \
         pods:\n  - {{name: a-0, signals: {{ranks: {{r0: {rank}, r1: {rank}}}}}}}\n"
    );
    let made = planned(&text, TOKENS);
    let figures = made.models[&ModelKey::new("ns", "m")].tokens.clone().unwrap();
    let own = &figures.variants[&VariantKey::new("ns", "a")];
    assert_eq!((own.count, own.ranks), (2, 2));
    assert_eq!((own.supply.0, own.demand.0), (25_600.0, 16_000.0));
}

#[test]
fn prefill_and_decode_grow_each_for_itself() {
    let text = document(
        &[variant("prefill", "role: prefill", &[0.1]), variant("decode", "role: decode", &[0.75])],
        "",
    );
    let made = planned(&text, TOKENS);
    assert_eq!((to(&made, "prefill"), to(&made, "decode")), (1, 2));
}
