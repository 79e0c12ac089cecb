//! Limits on GPUs where replicas hold some by resource claims, which are not counted.

use std::collections::BTreeMap;

use super::{planned, reason, targets};
use wva_policy::document::SnapshotDocument;
use wva_policy::learned::Learned;
use wva_policy::plan::{Plan, PlanStage, Reason};
use wva_policy::reason::WakeObstacle;
use wva_settings::bundle::read_bundle;

const CLAIMED: &str = "resourceClaims: [gpu, nic]";
const COUNTED: &str = "gpus: {nvidia.com/gpu: 2}";
const FREE: &str = "inventory: {types: {H100: {total: 100, used: 8}}}";
const REMEDY: &str = "GPUs of its resource claims gpu, nic are not counted: request GPUs as a resource like \
                      nvidia.com/gpu, or raise minReplicas";

/// One variant that is a model of its own, on H100, with as many full replicas.
fn variant(name: &str, fields: &str, replicas: u32) -> String {
    let pod = |number| {
        format!(
            "  - {{name: {name}-{number}, signals: {{kvUsage: 0.99, queueLength: 0, kvCapacity: 16000, \
             inputTokens: 100, outputTokens: 0}}}}\n"
        )
    };
    let pods: String = (0..replicas).map(pod).collect();
    format!(
        "- namespace: ns\n  name: {name}\n  model: {name}\n  accelerator: H100\n  \
         target: {{current: {replicas}}}\n  {fields}\n  pods:\n{pods}"
    )
}

fn document(variants: &[String], inventory: &str) -> String {
    format!("version: 1\nvariants:\n{}{inventory}\n", variants.concat())
}

/// Settings by percentages or by tokens.
fn settings(analyzer: &str, limits: &str) -> String {
    format!("saturation: {{default: {{{analyzer}{limits}}}}}")
}

fn quota(scope: &str) -> String {
    format!("enableLimiter: true, limiters: [{{name: q, type: quota, {scope}}}]")
}

fn to(plan: &Plan, name: &str) -> u32 {
    targets(plan)[name]
}

/// What limits made of a growth, with the replicas that were added and wanted.
fn not_counted(plan: &Plan, name: &str) -> Option<(u32, u32, Vec<String>)> {
    let decision = (plan.decisions.values()).find(|decision| &*decision.key.name == name)?;
    decision.steps.iter().find_map(|step| match &step.why {
        Reason::GpusNotCounted(why) => {
            let pools = why.pools.iter().map(ToString::to_string);
            Some((why.added.0, why.wanted.0, pools.collect()))
        }
        _ => None,
    })
}

/// Groups of a kind without a watcher, of which nothing shows that each takes sixteen.
#[test]
fn a_quota_admits_no_replicas_of_unknown_gpus() {
    let limits = quota("scope: cluster, quotas: {H100: 8}");
    for analyzer in ["", "analyzerName: saturation, "] {
        let with = |fields: &str| {
            let text = document(&[variant("a", fields, 2)], "");
            planned(&text, &settings(analyzer, &limits))
        };
        assert!(to(&with("gpus: {}"), "a") > 2);
        let held = with("gpusUnknown: true");
        assert_eq!(to(&held, "a"), 2);
        let (added, wanted, _) = not_counted(&held, "a").unwrap();
        assert!(added == 0 && wanted > 0);
        let said = reason(&held, "a");
        assert!(said.contains("GPUs of its replicas are not known"), "{said}");
    }
}

#[test]
fn what_claims_hold_is_not_counted_and_no_limit_grows_it() {
    let limit = "enableLimiter: true";
    for analyzer in ["", "analyzerName: saturation, "] {
        let with = |fields: &str, limits: &str| {
            let text = document(&[variant("a", fields, 4)], FREE);
            planned(&text, &settings(analyzer, limits))
        };
        // What is counted grows, and without a limit claims change nothing.
        let wanted = to(&with(COUNTED, limit), "a");
        assert!(wanted > 4, "{wanted}");
        assert_eq!(to(&with(CLAIMED, ""), "a"), wanted);
        let unlimited = quota("scope: cluster, quotas: {H100: -1}");
        let text = document(&[variant("a", CLAIMED, 4)], "");
        let free = planned(&text, &settings(analyzer, &unlimited));
        assert_eq!(to(&free, "a"), wanted);

        let inventory = "inventory[type=H100]".to_owned();
        for (fields, target, added) in [
            (CLAIMED.to_owned(), 4, 0),
            (format!("{CLAIMED}\n  {COUNTED}"), 4, 0),
            // No limit takes what was published, nor a minimum.
            (format!("{CLAIMED}\n  bounds: {{min: 5}}"), 5, 1),
            (format!("{CLAIMED}\n  desired: 5"), 5, 0),
        ] {
            let held = with(&fields, limit);
            assert_eq!(to(&held, "a"), target, "{fields}");
            if let Some((got, _, pools)) = not_counted(&held, "a") {
                assert!(got <= added, "{fields}: {got}");
                assert_eq!(pools, std::slice::from_ref(&inventory));
            }
        }
        let held = with(CLAIMED, limit);
        assert_eq!(not_counted(&held, "a"), Some((0, wanted - 4, vec![inventory])));
        let word = format!("GpusNotCounted: +0 of +{} replicas; {REMEDY}", wanted - 4);
        assert_eq!(reason(&held, "a"), word);
    }
}

#[test]
fn what_claims_hold_leaves_the_gpus_of_nodes_to_others() {
    let tokens = settings("analyzerName: saturation, ", "enableLimiter: true");
    let to = |fields: &str, used: u32| {
        let variants = [variant("a", fields, 4), variant("b", COUNTED, 1)];
        let inventory = format!("inventory: {{types: {{H100: {{total: 12, used: {used}}}}}}}");
        to(&planned(&document(&variants, &inventory), &tokens), "b")
    };
    // Replicas of `a` that are published, or a minimum, take theirs first.
    for ahead in ["desired: 5", "bounds: {min: 5}"] {
        assert_eq!(to(&format!("{COUNTED}\n  {ahead}"), 10), 1, "{ahead}");
        assert_eq!(to(&format!("{CLAIMED}\n  {ahead}"), 10), 2, "{ahead}");
        // What is requested besides is counted.
        let both = format!("{CLAIMED}\n  gpus: {{nvidia.com/gpu: 1}}\n  {ahead}");
        assert_eq!(to(&both, 10), 1, "{ahead}");
        assert_eq!(to(&both, 9), 2, "{ahead}");
    }
}

#[test]
fn a_quota_that_claims_use_is_not_known_to_others() {
    let namespaces =
        "scope: namespace, namespaceQuotas: {ns: {H100: 20, A100: 20}, other: {H100: 20}}";
    let cluster = "scope: cluster, quotas: {H100: 20, A100: 20}";
    let grown = |a: &str, b: &str, limits: &str| {
        let first = variant("a", a, 4);
        let second = variant("b", COUNTED, 1).replace("namespace: ns\n", b);
        let tokens = settings("analyzerName: saturation, ", &quota(limits));
        let made = planned(&document(&[first, second], ""), &tokens);
        let of_b = (made.decisions.values()).find(|decision| &*decision.key.name == "b");
        let decision = of_b.unwrap();
        let said = decision.reason().contains("BudgetUnknown");
        (decision.target.unwrap().0, said)
    };
    let (here, there) = ("namespace: ns\n", "namespace: other\n");
    for (limits, b) in [(namespaces, here), (cluster, here), (cluster, there)] {
        let (count, said) = grown(COUNTED, b, limits);
        assert!(count > 1 && !said, "{limits}: {count}");
        assert_eq!(grown(CLAIMED, b, limits), (1, true), "{limits}");
    }
    // Of another type, in another namespace, and without a replica it uses nothing of it.
    let elsewhere = CLAIMED.to_owned() + "\n  notes: []";
    let (counted, _) = grown(COUNTED, there, namespaces);
    assert_eq!(grown(&elsewhere, there, namespaces), (counted, false));
    let none = variant("a", CLAIMED, 0).replace("  pods:\n", "  bounds: {min: 0}\n");
    let other = variant("a", CLAIMED, 4).replace("H100", "A100");
    for first in [none, other] {
        let tokens = settings("analyzerName: saturation, ", &quota(cluster));
        let text = document(&[first, variant("b", COUNTED, 1)], "");
        let made = planned(&text, &tokens);
        assert_eq!(to(&made, "b"), counted, "{}", reason(&made, "b"));
    }
}

#[test]
fn a_start_from_zero_that_cannot_be_counted_says_so() {
    let with = |fields: &str, limit: &str| {
        let text = format!(
            "version: 1\nvariants:\n\
             - {{namespace: ns, name: a, model: m, accelerator: H100, {fields}, desired: 0, target: {{current: 0}}}}\n\
             models: [{{namespace: ns, model: m, router: {{queueRequests: 3}}}}]\n{FREE}\n"
        );
        let settings = format!(
            "scaleToZero: {{default: {{enable_scale_to_zero: true}}}}\nsaturation: {{default: {{{limit}}}}}"
        );
        planned(&text, &settings)
    };
    let limit = "enableLimiter: true";
    assert_eq!(to(&with(COUNTED, limit), "a"), 1);
    assert_eq!(to(&with(CLAIMED, ""), "a"), 1);
    let refused = with(CLAIMED, limit);
    assert_eq!(to(&refused, "a"), 0);
    let word = format!("GpusNotCounted: wake refused: {REMEDY}; 3 requests wait in the router");
    assert_eq!(reason(&refused, "a"), word);
    let decision = refused.decisions.values().next().unwrap();
    assert!(decision.is_refused_wake());
    let obstacle = decision.steps.iter().find_map(|step| match &step.why {
        Reason::WakeRefused { obstacle, by, .. } if step.stage == PlanStage::Zero => {
            Some((*obstacle, by.len()))
        }
        _ => None,
    });
    assert_eq!(obstacle, Some((WakeObstacle::GpusNotCounted, 1)));
}

/// What becomes of an idle model of these roles: how many replicas, and why.
fn idle(variants: &[(&str, &str)], limit: &str, inventory: &str) -> (u32, String) {
    let one = |(index, (role, fields)): (usize, &(&str, &str))| {
        format!(
            "- {{namespace: ns, name: v{index}, model: m, accelerator: H100, role: {role}, {fields}, target: {{current: 1}}, \
                 pods: [{{name: v{index}-0, age: 2h, signals: {{kvUsage: 0, queueLength: 0, running: 0}}}}]}}\n"
        )
    };
    let variants: String = variants.iter().enumerate().map(one).collect();
    let text = format!(
        "version: 1\nvariants:\n{variants}\
             models: [{{namespace: ns, model: m, router: {{queueRequests: 0}}}}]\n\
             learned: {{version: 2, activity: {{ns/m: {{monotonic: {{secs: 86100, nanos: 0}}, wall: 0}}}}}}\n{inventory}\n"
    );
    let settings = format!(
        "scaleToZero: {{default: {{enable_scale_to_zero: true, retention_period: 5m}}}}\nsaturation: {{default: {{{limit}}}}}"
    );
    let made = planned(&text, &settings);
    let said = reason(&made, "v0");
    (targets(&made).values().sum::<u32>(), said)
}

/// Nothing could start it again.
#[test]
fn what_a_limit_could_not_start_again_does_not_go_to_zero() {
    let with = |variants: &[(&str, &str)], limit: &str| idle(variants, limit, FREE);
    let limit = "enableLimiter: true";
    assert_eq!(with(&[("both", COUNTED)], limit).0, 0);
    assert_eq!(with(&[("both", CLAIMED)], "").0, 0);
    let kept = "gpus-not-counted".to_owned();
    assert_eq!(with(&[("both", CLAIMED)], limit), (1, kept.clone()));
    for (variants, count) in [
        ([("both", CLAIMED), ("both", COUNTED)], 0),
        ([("decode", CLAIMED), ("both", COUNTED)], 0),
        ([("decode", CLAIMED), ("prefill", COUNTED)], 2),
        ([("decode", COUNTED), ("prefill", CLAIMED)], 2),
        ([("decode", COUNTED), ("decode", CLAIMED)], 0),
        ([("prefill", COUNTED), ("prefill", COUNTED)], 0),
    ] {
        assert_eq!(with(&variants, limit).0, count, "{variants:?}");
    }
    let kept = "gpu-budget: no limit is known to leave GPUs for one replica";
    for (inventory, count) in [
        // Others may go before it comes back.
        ("inventory: {types: {H100: {total: 8, used: 8}}}", 0),
        ("inventory: {types: {H100: {total: 1, used: 0}}}", 1),
        ("inventory: {types: {A100: {total: 8, used: 0}}}", 1),
        ("inventory: {unknown: forbidden}", 1),
        ("", 1),
    ] {
        let (found, why) = idle(&[("both", COUNTED)], limit, inventory);
        assert_eq!(found, count, "{inventory}: {why}");
        assert_eq!(why == kept, count == 1, "{inventory}: {why}");
        assert_eq!(idle(&[("both", COUNTED)], "", inventory).0, 0, "{inventory}");
    }
}

/// Where a driver for dynamic resource allocation has the GPUs, nodes list none.
#[test]
fn a_type_that_no_node_lists_is_unknown_and_not_empty() {
    let with = |nodes: &str| {
        let inventory = format!("inventory: {{nodes: {{{nodes}}}, pods: []}}");
        let text = document(&[variant("a", COUNTED, 4)], &inventory);
        let made = planned(&text, &settings("", "enableLimiter: true"));
        (to(&made, "a"), reason(&made, "a"))
    };
    let node = |name: &str, rest: &str| {
        format!("{name}: {{labels: {{nvidia.com/gpu.product: NVIDIA-H100}}{rest}}}")
    };
    let of = |count: u32| format!(", allocatable: {{nvidia.com/gpu: {count}}}");
    let (silent, full) = (node("silent", ""), node("full", &of(100)));
    let (wanted, word) = with(&full);
    assert!(wanted > 4 && !word.contains("BudgetUnknown"), "{wanted}: {word}");
    for (nodes, target, is_unknown) in [
        (silent.clone(), 4, true),
        // What another node lists is there.
        (format!("{silent}, {full}"), wanted, false),
        // The device plugin is down, or nothing may be placed.
        (node("down", &of(0)), 4, false),
        (node("closed", ", schedulable: false"), 4, false),
    ] {
        let (count, word) = with(&nodes);
        assert_eq!(
            (count, word.contains("BudgetUnknown")),
            (target, is_unknown),
            "{nodes}: {word}"
        );
    }
}

#[test]
fn a_document_keeps_the_claims() {
    let settings = read_bundle("").unwrap();
    let text = document(&[variant("a", CLAIMED, 1), variant("b", COUNTED, 1)], FREE);
    let read = SnapshotDocument::parse(&text).unwrap();
    let situation = read.situation(&settings.freshness).unwrap();
    let written = SnapshotDocument::of(&situation.snapshot, &Learned::default(), situation.now);
    let claims: BTreeMap<&str, usize> = (written.variants.iter())
        .map(|variant| (&*variant.name, variant.resource_claims.len()))
        .collect();
    assert_eq!(claims, BTreeMap::from([("a", 2), ("b", 0)]));
    let again = written.situation(&settings.freshness).unwrap();
    assert_eq!(again.snapshot.variants, situation.snapshot.variants);
}
