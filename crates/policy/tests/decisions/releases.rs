//! Releases that are published, not applied, and no longer wanted, where percentages do not decide alone.

use super::{planned, reason, targets};

const TOKENS: &str = "saturation: {default: {analyzerName: saturation}}";
const LIMITED: &str = "saturation: {default: {analyzerName: saturation, enableLimiter: true}}";
const BOTH: &str = "saturation: {default: {analyzers: [{name: saturation}, {name: throughput}]}}";

/// A variant with one full replica of 16000 tokens, and one that is released to one and has two; `held` is
/// the share of its cache that each of them uses, where they say so.
fn document(held: &str) -> String {
    let pod = |name: &str, usage: &str| {
        format!(
            "  - {{name: {name}, signals: {{{usage} queueLength: 0, inputTokens: 100, outputTokens: 0}}}}\n"
        )
    };
    let full = "kvUsage: 0.95, kvCapacity: 16000,";
    format!(
        "version: 1\nvariants:\n\
         - namespace: ns\n  name: cheap\n  model: m\n  cost: 5\n  accelerator: H100\n  target: {{current: 1}}\n  pods:\n{}\
         - namespace: ns\n  name: warm\n  model: m\n  cost: 20\n  accelerator: H100\n  desired: 1\n  target: {{current: 2}}\n  pods:\n{}{}\
         inventory: {{types: {{H100: {{total: 20, used: 3}}}}}}\n",
        pod("c0", full),
        pod("w0", held),
        pod("w1", held),
    )
}

#[test]
fn every_mode_cancels_a_release_before_another_variant_grows() {
    for settings in [TOKENS, LIMITED, BOTH] {
        let plan = planned(&document("kvUsage: 0.95, kvCapacity: 16000,"), settings);
        let found = targets(&plan);
        assert!(found["cheap"] > 1, "{settings}: {found:?}");
        assert_eq!(found["warm"], 2, "{settings}");

        // Its load is not needed to keep it, and the size of its replicas is not either.
        let plan = planned(&document("kvUsage: 0.95,"), settings);
        let found = targets(&plan);
        assert_eq!(found["warm"], 2, "{settings}: {}", reason(&plan, "warm"));

        // A role that does not grow keeps its release.
        let idle = document("kvUsage: 0.01, kvCapacity: 16000,").replace("0.95", "0.2");
        assert_eq!(targets(&planned(&idle, settings))["warm"], 1, "{settings}");
    }
}

#[test]
fn a_model_on_its_way_to_zero_stays_where_it_is_in_use_again() {
    let leaving = |running: u32| {
        let model =
            "models: [{namespace: ns, model: m, router: {queueRequests: 0, arrivalRate: 0}}]";
        let signals = format!(
            "{{kvUsage: 0, kvUsageNow: 0, queueLength: 0, running: {running}, generationRate: 0, completionRate: 0, arrivalRate: 0}}"
        );
        format!(
            "version: 1\nvariants:\n- namespace: ns\n  name: a\n  model: m\n  bounds: {{min: 0}}\n  desired: 0\n  target: {{current: 1}}\n  pods:\n  - {{name: a0, signals: {signals}}}\n{model}\n"
        )
    };
    for mode in ["", TOKENS] {
        let settings = format!("{mode}\nscaleToZero: {{default: {{enable_scale_to_zero: true}}}}");
        let idle = planned(&leaving(0), &settings);
        assert_eq!(targets(&idle)["a"], 0, "{settings}");
        let used = planned(&leaving(2), &settings);
        assert_eq!(targets(&used)["a"], 1, "{settings}");
        assert_eq!(
            reason(&used, "a"),
            "more is needed: the release from 1 to 0 is cancelled before it is applied"
        );
    }
}

const MODES: [&str; 6] = [
    "{}",
    TOKENS,
    "saturation: {default: {analyzers: [{name: throughput}]}}",
    "saturation: {default: {analyzerName: slo}}",
    "queueingModel: {default: {}}",
    "{saturation: {default: {analyzerName: saturation}}, EXPERIMENTAL_PROACTIVE_MODEL: true}",
];

/// Two replicas that say `signals`, `desired` of which are published, and a variant without any.
fn with_cold(desired: u32, signals: &str, queue: u32) -> String {
    let pods =
        ["w0", "w1"].map(|name| format!("{{name: {name}, age: 2h, signals: {{{signals}}}}}"));
    format!(
        "version: 1\nvariants:\n\
         - {{namespace: ns, name: cold, model: m, cost: 5, bounds: {{min: 0}}, desired: 0, target: {{current: 0}}}}\n\
         - {{namespace: ns, name: warm, model: m, cost: 20, bounds: {{min: 0}}, desired: {desired}, unappliedFor: 60s, target: {{current: 2}}, pods: [{}]}}\n\
         models: [{{namespace: ns, model: m, router: {{queueRequests: {queue}}}}}]\n",
        pods.join(", ")
    )
}

#[test]
fn replicas_on_their_way_out_stay_before_another_variant_is_started() {
    for settings in MODES {
        for (desired, queue) in [(0, 1), (0, 200), (1, 200)] {
            let plan = planned(&with_cold(desired, "", queue), settings);
            let found = targets(&plan);
            assert_eq!(
                (found["cold"], found["warm"]),
                (0, 2),
                "{settings}, {desired}, {queue}: {}",
                reason(&plan, "warm")
            );
        }
        let calm = planned(&with_cold(1, "", 0), settings);
        assert_eq!(targets(&calm)["warm"], 1, "{settings}");
    }
}

#[test]
fn full_caches_keep_a_release_that_no_analyzer_judges() {
    let said = |usage: f64| format!("kvUsage: {usage}, kvCapacity: 100000");
    for settings in MODES {
        let full = planned(&with_cold(1, &said(0.98), 0), settings);
        assert!(targets(&full)["warm"] >= 2, "{settings}: {}", reason(&full, "warm"));
        let calm = planned(&with_cold(1, &said(0.3), 0), settings);
        assert_eq!(targets(&calm)["warm"], 1, "{settings}");
    }
}

#[test]
fn a_silent_variant_keeps_its_release_while_requests_wait() {
    for settings in MODES {
        for (queue, kept) in [(31, 4), (0, 2)] {
            let sampled =
                "{name: b0, age: 2h, signals: {kvUsage: 0.2, queueLength: 0, kvCapacity: 16000}}";
            let fleet = format!(
                "version: 1\nvariants:\n\
                 - {{namespace: ns, name: a, model: m, desired: 2, target: {{current: 4}}, pods: [{{name: a0, age: 2h}}, {{name: a1, age: 2h}}, {{name: a2, age: 2h}}, {{name: a3, age: 2h}}]}}\n\
                 - {{namespace: ns, name: b, model: m, desired: 1, target: {{current: 1}}, pods: [{sampled}]}}\n\
                 models: [{{namespace: ns, model: m, router: {{queueRequests: {queue}}}}}]\n"
            );
            let plan = planned(&fleet, settings);
            assert_eq!(targets(&plan)["a"], kept, "{settings}, {queue}: {}", reason(&plan, "a"));
        }
    }
}

#[test]
fn no_mode_lets_a_release_stand_that_no_analyzer_judges_while_requests_wait() {
    for settings in MODES {
        let fleet = with_cold(1, "kvUsage: 0.5, queueLength: 8", 0);
        let plan = planned(&fleet, settings);
        assert!(targets(&plan)["warm"] >= 2, "{settings}: {}", reason(&plan, "warm"));
    }
}
