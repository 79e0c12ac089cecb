//! What is decided for latency objectives where they cannot be judged: engines that report too little.

use super::{decide, planned, reason, settings, situation, targets};
use wva_policy::learned::Learned;
use wva_policy::plan::Plan;

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
fn what_stands_in_orders_as_many_again_at_most() {
    let signals =
        "kvUsage: 0.95, queueLength: 900, kvCapacity: 16000, inputTokens: 100, outputTokens: 100";
    let chosen = "saturation: {default: {analyzerName: saturation}}";
    for (settings, count, limits) in [(chosen, 36, 0), (SLO, 4, 1)] {
        let plan = planned(&document(signals), settings);
        assert_eq!(targets(&plan)["a"], count, "{settings}");
        let figures = plan.models.values().next().unwrap();
        assert_eq!(figures.limited.len(), limits, "{settings}");
    }
}

/// What a process knows that asked the SLO analyzer for an hour and never got a size.
const ASKED: &str =
    "learned: {version: 2, asked: {ns/m: {slo: {monotonic: {secs: 82800, nanos: 0}, wall: 0}}}}";

#[test]
fn what_stands_in_releases_nothing_while_replicas_work() {
    let idle = "kvUsage: 0, queueLength: 0, running: 0, generationRate: 0, kvCapacity: 16000, \
                inputTokens: 100, outputTokens: 100";
    let working = idle.replace("running: 0", "running: 1");
    let unknown =
        working.replace("generationRate: 0", "generationRate: {state: failed, why: absent}");
    for (signals, count) in [(idle, 1), (&working, 2), (&unknown, 2)] {
        let plan = planned(&format!("{}{ASKED}\n", document(signals)), SLO);
        let said = reason(&plan, "a");
        assert_eq!(targets(&plan)["a"], count, "{signals}: {said}");
        let is_held = said.contains("replicas that work do not report inter_token_latency");
        assert_eq!(is_held, count == 2, "{signals}: {said}");
    }
}

/// The model showed as steady, as if its objectives were met.
#[test]
fn what_stands_in_is_named_where_nothing_is_due() {
    let measured = "kvUsage: 0.5, queueLength: 0, running: 10, kvCapacity: 16000, inputTokens: 300, outputTokens: 300, \
                    timeToFirstToken: 0.03, interTokenLatency: 0.01, generationRate: 1000, completionRate: 3, \
                    arrivalRate: 3";
    let said = |signals: &str, settings: &str| {
        let plan = planned(&format!("{}{ASKED}\n", document(signals)), settings);
        assert_eq!(targets(&plan)["a"], 2, "{signals} {settings}");
        reason(&plan, "a")
    };
    let plan = planned(&format!("{}{ASKED}\n", document(measured)), SLO);
    let known = reason(&plan, "a");
    assert!(!known.contains("has not measured"), "{known}");
    let tokens =
        "kvUsage: 0.5, queueLength: 0, kvCapacity: 16000, inputTokens: 100, outputTokens: 100";
    let percentages = "kvUsage: 0.5, queueLength: 0";
    let chosen = "saturation: {default: {analyzerName: saturation}}";
    for (signals, settings, missing, judge) in [
        (
            tokens,
            chosen,
            "inter_token_latency of a0, inter_token_latency of a1",
            "saturation decides",
        ),
        (percentages, "", "kv_capacity of a0, kv_capacity of a1", "percentages decide"),
    ] {
        let unmeasured = said(signals, SLO);
        let lacks = format!("slo has not measured its replicas yet, missing: {missing}");
        assert!(unmeasured.starts_with(&lacks), "{unmeasured}");
        let decided = format!("; {judge}: {}", said(signals, settings));
        assert!(unmeasured.ends_with(&decided), "{unmeasured}");
    }
}

fn after(minutes: u64, text: &str) -> Plan {
    let settings = settings(SLO);
    let (mut learned, mut made) = (Learned::default(), None);
    for minute in 0..=minutes {
        let text = format!("{text}time: {{uptime: {}s}}\n", 86_400 + 60 * minute);
        let (known, plan) = decide(&situation(&text, &settings), &learned, &settings);
        (learned, made) = (known, Some(plan));
    }
    made.unwrap()
}

/// Replicas of the variant once needs have been seen for their whole time.
fn settled(text: &str) -> u32 {
    targets(&after(40, text))["a"]
}

/// What a replica is found to do, in tokens per second, after two minutes of the same load.
fn size(signals: &str, collection: &str) -> Option<f64> {
    let plan = after(2, &format!("{}{collection}", document(signals)));
    let figures = plan.models.values().next().unwrap();
    let slo = figures.slo.as_ref()?;
    let size = slo.variants.values().next()?;
    Some(size.per_second.round())
}

#[test]
fn what_no_engine_exposes_follows_from_the_rest() {
    const WHOLE: [(&str, &str); 7] = [
        // 20 requests hold 400 tokens each: a prompt, and half of an answer.
        ("kvUsage", "0.02"),
        ("kvCapacity", "400000"),
        ("interTokenLatency", "0.02"),
        ("generationRate", "1000"),
        ("inputTokens", "300"),
        ("outputTokens", "200"),
        ("running", "20"),
    ];
    let without = |missing: &[&str]| {
        let known = WHOLE.iter().filter(|(name, _)| !missing.contains(name));
        let known: Vec<_> = known.map(|(name, value)| format!("{name}: {value}")).collect();
        format!(
            "queueLength: 0, timeToFirstToken: 0.1, completionRate: 5, arrivalRate: 5, {}",
            known.join(", ")
        )
    };
    let whole = size(&without(&[]), "");
    assert!(whole.is_some());
    let lengths = ["inputTokens", "outputTokens"];
    for missing in
        [&["interTokenLatency"][..], &["generationRate"], &["kvUsage"], &["kvCapacity"], &lengths]
    {
        assert_eq!(size(&without(missing), ""), whole, "{missing:?}");
        let plan = planned(&document(&without(missing)), SLO);
        let figures = plan.models.values().next().unwrap().slo.clone().unwrap();
        let said = figures.lines().join("\n");
        assert_eq!(said.matches("no engine exposes").count(), missing.len(), "{said}");
    }
    for missing in [
        &["interTokenLatency", "running"][..],
        &["interTokenLatency", "generationRate"],
        &["kvCapacity", "kvUsage"],
        &["kvCapacity", "running"],
    ] {
        assert_eq!(size(&without(missing), ""), None, "{missing:?}");
    }
    // A signal whose query failed may be there all the same.
    let failed = "collection: {failures: {interTokenLatency: timeout}}\n";
    assert_eq!(size(&without(&["interTokenLatency"]), failed), None);
    assert_eq!(size(&without(&[]), failed), whole);
}

#[test]
fn a_signal_that_no_engine_exposes_keeps_no_replica() {
    const OPTIONAL: [&str; 4] =
        ["kvUsage: 0.02, ", "kvCapacity: 450000, ", "queueLength: 0, ", "running: 1, "];
    let first = "timeToFirstToken: 0.03, ";
    let signals = format!(
        "{}{first}inputTokens: 300, outputTokens: 300, interTokenLatency: 0.01, \
         generationRate: 100, completionRate: 0.3, arrivalRate: 0.3",
        OPTIONAL.concat()
    );
    let decided = |signals: &str, more: &str| {
        let text = document(signals)
            .replace("pods:", "containers: [{image: vllm, args: ['--max-num-seqs=64']}], pods:");
        let router =
            "models: [{namespace: ns, model: m, router: {queueRequests: 0, arrivalRate: 0.3}}]\n";
        settled(&format!("{text}{router}{more}"))
    };
    assert_eq!(decided(&signals, ""), 1);
    for (signal, name) in
        OPTIONAL.into_iter().zip(["kvUsage", "kvCapacity", "queueLength", "running"])
    {
        let without = signals.replace(signal, "");
        assert_eq!(decided(&without, ""), 1, "{signal}");
        // It may be there all the same.
        let failed = format!("collection: {{failures: {{{name}: timeout}}}}\n");
        assert_eq!(decided(&without, &failed), 2, "{signal}");
        let old = format!("{name}: {{value: 1, age: 20m}}, {without}");
        assert_eq!(decided(&old, ""), 2, "{signal} is old");
    }
    // Neither of the two follows then.
    let cacheless = signals.replace(OPTIONAL[0], "").replace(OPTIONAL[1], "");
    assert_eq!(decided(&cacheless, ""), 2);
    let unqueued = signals.replace(OPTIONAL[2], "");
    assert_eq!(decided(&unqueued.replace(first, ""), ""), 2);
    // More requests wait than may: two seconds of them. The router may have sent none in the last minute.
    let late = unqueued.replace(first, "timeToFirstToken: 30, ");
    assert_eq!(decided(&late, ""), 2);
    let unsent = late.replace("arrivalRate: 0.3", "arrivalRate: 0");
    assert_eq!(decided(&unsent, ""), 2);
    // It hangs.
    let hung = unsent.replace("completionRate: 0.3", "completionRate: 0");
    assert_eq!(decided(&hung.replace("generationRate: 100", "generationRate: 0"), ""), 2);
}

/// Two of three replicas are published, and the scaler has not followed yet. At a demand near the edge of what two do,
/// the release stands as long as it orders nothing either.
#[test]
fn a_published_release_stands_within_the_noise_of_an_order() {
    let decided = |rate: f64| {
        let signals = format!(
            "kvUsage: 0.2, queueLength: 0, running: {running}, kvCapacity: 40000, inputTokens: 300, outputTokens: 200, \
             timeToFirstToken: 0.03, interTokenLatency: 0.02, generationRate: {tokens}, completionRate: {rate}, \
             arrivalRate: {rate}",
            running = rate * 4.0,
            tokens = rate * 200.0,
        );
        let pods = ["a0", "a1", "a2"]
            .map(|name| format!("{{name: {name}, age: 2h, signals: {{{signals}}}}}"));
        let plan = after(
            40,
            &format!(
                "version: 1\nvariants:\n- {{namespace: ns, name: a, model: m, desired: 2, unappliedFor: 15s, \
                 target: {{current: 3}}, pods: [{}]}}\nmodels: [{{namespace: ns, model: m, router: \
                 {{queueRequests: 0, arrivalRate: {}}}}}]\n",
                pods.join(", "),
                rate * 3.0,
            ),
        );
        let slo = (plan.models.values().next()).and_then(|figures| figures.slo.clone());
        let slo = slo.unwrap();
        let demand: f64 = slo.roles.values().map(|role| role.stated).sum();
        let one: f64 = slo.variants.values().map(|one| one.per_second).sum();
        (demand / (2.0 * one), targets(&plan)["a"])
    };
    let mut classes = [0; 3];
    for rate in (10..40).map(|fifths| f64::from(fifths) / 5.0) {
        let (share, count) = decided(rate);
        let (class, expected) = match share {
            ..0.849 => (0, 2),
            0.851..0.891 => (1, 2),
            0.894..1.2 => (2, 3),
            _ => continue,
        };
        classes[class] += 1;
        assert_eq!(count, expected, "{rate}: {share}");
    }
    assert!(classes.iter().all(|seen| *seen > 0), "{classes:?}");
}

#[test]
fn a_queue_that_no_router_can_hold_keeps_no_replica() {
    let signals = "kvUsage: 0.02, queueLength: 0, running: 1, kvCapacity: 450000, inputTokens: 300, outputTokens: 300, \
                   timeToFirstToken: 0.03, interTokenLatency: 0.01, generationRate: 100, completionRate: 0.3, \
                   arrivalRate: 0.3";
    let decided = |variant: &str, router: &str, more: &str| {
        let text = document(signals).replace("pods:", &format!("{variant} pods:"));
        let router = if router.is_empty() {
            String::new()
        } else {
            format!("models: [{{namespace: ns, model: m, router: {{{router}}}}}]\n")
        };
        settled(&format!("{text}{router}{more}"))
    };
    let failed = "collection: {failures: {routerQueueRequests: timeout}}\n";
    for (variant, router, more, count) in [
        ("", "queueRequests: 0, arrivalRate: 0.3", "", 1),
        // Flow control is off.
        ("", "arrivalRate: 0.3", "", 1),
        ("", "arrivalRate: 0.3", failed, 2),
        ("", "arrivalRate: {value: 0.3, age: 10m}", "", 2),
        ("", "", "", 2),
        ("routed: false,", "", "", 1),
        ("routed: false,", "", failed, 2),
    ] {
        assert_eq!(decided(variant, router, more), count, "{variant} {router} {more}");
    }
}

#[test]
fn a_held_release_names_what_hides_requests_from_the_analyzer() {
    let signals = "kvUsage: 0.02, queueLength: 0, running: 1, kvCapacity: 450000, inputTokens: 300, outputTokens: 300, \
                   timeToFirstToken: 0.03, interTokenLatency: 0.01, generationRate: 100, completionRate: 0.3, \
                   arrivalRate: 0.3";
    let said = |router: &str, more: &str| {
        let router = format!("models: [{{namespace: ns, model: m, router: {{{router}}}}}]\n");
        reason(&after(40, &format!("{}{router}{more}", document(signals))), "a")
    };
    let known = said("queueRequests: 0, arrivalRate: 0.3", "");
    assert!(!known.contains("said nothing"), "{known}");
    let queue = "collection: {failures: {routerQueueRequests: timeout}}\n";
    let arrivals = "collection: {failures: {routerArrivalRate: timeout}}\n";
    for (router, more, missing) in [
        ("arrivalRate: 0.3", queue, "router_queue_requests of m"),
        ("queueRequests: 0", arrivals, "router_arrival_rate of m"),
    ] {
        let expected = format!("slo said nothing this cycle, missing: {missing}");
        let said = said(router, more);
        assert!(said.ends_with(&expected), "{said}");
    }
}

#[test]
fn a_variant_that_never_served_grows_where_no_other_can() {
    let signals = "kvUsage: 0.6, queueLength: 0, running: 60, kvCapacity: 40000, inputTokens: 300, outputTokens: 300, \
                   timeToFirstToken: 0.03, interTokenLatency: 0.04, generationRate: 1500, completionRate: 5, \
                   arrivalRate: 5";
    let queue =
        "models: [{namespace: ns, model: m, router: {queueRequests: 400, arrivalRate: 30}}]\n";
    // It costs twice as much, so that one replica is taken to do as much as one of the other.
    let further = "- {namespace: ns, name: b, model: m, cost: 20, bounds: {min: 0, max: 9}, target: {current: 0}}\n";
    let decided = |most: u32| {
        let bounded = document(signals)
            .replace("desired: 2,", &format!("desired: 2, bounds: {{max: {most}}},"));
        let plan = planned(&format!("{bounded}{further}{queue}"), SLO);
        let figures = plan.models.values().next().unwrap().slo.clone().unwrap();
        let sizes: Vec<f64> = figures.variants.values().map(|size| size.per_second).collect();
        assert!((sizes[0] - sizes[1]).abs() < 1e-6, "{sizes:?}");
        let targets = targets(&plan);
        (targets["a"], targets["b"])
    };
    let (known, unknown) = decided(40);
    assert!(known > 2 && unknown == 0, "{known} {unknown}");
    let (known, unknown) = decided(3);
    assert!(known == 3 && unknown > 0, "{known} {unknown}");
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
