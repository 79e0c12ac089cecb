//! What is decided for latency objectives where they cannot be judged: engines that report too little.

use super::multi_analyzer::planned;
use super::{reason, targets};

const SLO: &str = "saturation: {default: {analyzerName: slo}}";
const LISTED: &str = "saturation: {default: {analyzerName: slo, analyzers: [{name: slo}]}}";

/// Two replicas of one variant that report these signals.
fn document(signals: &str) -> String {
    let pods =
        ["a0", "a1"].map(|name| format!("{{name: {name}, age: 2h, signals: {{{signals}}}}}"));
    format!(
        "version: 1\nvariants:\n- {{namespace: ns, name: a, model: m, desired: 2, target: {{current: 2}}, pods: [{}]}}\n",
        pods.join(", ")
    )
}

#[test]
fn engines_without_latency_are_sized_by_tokens_and_else_by_percentages() {
    let tokens =
        "kvUsage: 0.95, queueLength: 8, kvCapacity: 16000, inputTokens: 100, outputTokens: 100";
    let percentages = "kvUsage: 0.95, queueLength: 8";
    for (signals, judge) in [(tokens, "V2"), (percentages, "KV spare")] {
        let plan = planned(&document(signals), SLO);
        let said = reason(&plan, "a");
        assert!(targets(&plan)["a"] > 2, "{signals}: {said}");
        assert!(said.contains(judge), "{signals}: {said}");
        // With a list of analyzers, none stands in that is not listed.
        let plan = planned(&document(signals), LISTED);
        assert_eq!(targets(&plan)["a"], 2, "{signals}: {}", reason(&plan, "a"));
    }
}

#[test]
fn the_reserve_for_bursts_acts_on_what_is_held() {
    let signals = "kvUsage: 0.2, queueLength: 0, running: 10, kvCapacity: 450000, inputTokens: 300, outputTokens: 300, \
                   timeToFirstToken: 0.03, interTokenLatency: 0.01, generationRate: 1000, completionRate: 3, arrivalRate: 3";
    let reserve = |chosen: &str| {
        let settings = format!("saturation: {{default: {{analyzerName: slo{chosen}}}}}");
        let plan = planned(&document(signals), &settings);
        let figures = plan.models.values().next().unwrap();
        let roles = &figures.slo.as_ref().unwrap().roles;
        roles.values().next().unwrap().reserve
    };
    // A fifth until more is known.
    let usual = reserve("");
    assert!((usual - 0.2).abs() < 1e-9, "{usual}");
    for (chosen, share) in [("none", 0.0), ("economical", 0.2), ("strict", 0.2)] {
        let held = reserve(&format!(", burstReserve: {chosen}"));
        assert!((held - share).abs() < 1e-9, "{chosen}: {held}");
    }
}
