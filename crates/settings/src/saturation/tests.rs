use std::sync::Arc;

use super::*;
use crate::fixtures::{data, global_sources, texts};
use crate::problem::{Problem, Severity, Warning};
use wva_policy::key::ModelKey;
use wva_policy::params::{
    BurstReserve, Limiter, LimiterScope, Quota, Quotas, SaturationMethod, SaturationThresholds,
    UtilizationBand,
};

fn global(pairs: &[(&str, &str)]) -> PolicySources {
    global_sources(data(pairs))
}

fn read(sources: &PolicySources) -> (SaturationLayers, Diagnostics) {
    let mut diagnostics = Diagnostics::default();
    (super::read(sources, BandUse::Tokens, None, &mut diagnostics), diagnostics)
}

const EVERY_FIELD: &str = "
modelId: m
namespace: ns
kvCacheThreshold: 0.7
queueLengthThreshold: 6
kvSpareTrigger: 0.2
queueSpareTrigger: 4
enableLimiter: true
enableRescale: true
analyzerName: saturation
scaleUpThreshold: 0.9
scaleDownBoundary: 0.6
burstReserve: strict
priority: 2
analyzers:
- {name: saturation, type: saturation, enabled: true, score: 2, scaleUpThreshold: 0.95,
   scaleDownBoundary: 0.5, parameters: {anything: 1}}
limiters:
- {name: a, type: quota, scope: cluster, quotas: {H100: 4, L40S: -1}, exclude: [kube-system]}
- {name: b, type: quota, scope: namespace, namespaceQuotas: {default: {H100: 0}}}
scaleToZero: {enabled: true}
";

#[test]
fn every_known_field_is_read_and_none_of_them_is_unknown() {
    let (layers, diagnostics) = read(&global(&[("x", EVERY_FIELD)]));
    assert_eq!(diagnostics.problems, []);
    // Known, and named where they act.
    let notices = texts(&diagnostics.notices);
    let place = "global saturation ConfigMap, entry \"x\"";
    let cluster = "only the global entry `default` is asked; write it there";
    let own = "only an entry `default` is asked, of the cluster or of a namespace; write it there";
    assert_eq!(
        notices,
        [
            format!("{place}: enableLimiter: {cluster}"),
            format!("{place}: limiters: {cluster}"),
            format!("{place}: enableRescale: {own}"),
        ]
    );
    let (_, diagnostics) =
        read(&global(&[("default", "{enableLimiter: true, enableRescale: true}")]));
    assert_eq!(diagnostics.notices, []);
    let policy = layers.policy(&ModelKey::new("ns", "m"));
    assert_eq!(
        policy.thresholds,
        SaturationThresholds {
            kv_cache_threshold: 0.7,
            queue_length_threshold: 6.0,
            kv_spare_trigger: 0.2,
            queue_spare_trigger: 4.0,
        }
    );
    assert_eq!(policy.analysis, SaturationMethod::Tokens);
    assert_eq!(policy.band, UtilizationBand { scale_up_threshold: 0.95, scale_down_boundary: 0.5 });
    assert_eq!(policy.burst_reserve, BurstReserve::Strict);
    assert_eq!(policy.scale_to_zero, Some(true));
    let elsewhere = layers.policy(&ModelKey::new("other", "m"));
    assert_eq!(elsewhere.thresholds, SaturationThresholds::default());
    assert_eq!(elsewhere.analysis, SaturationMethod::Percentage);
}

#[test]
fn limiters_and_rescaling_are_read_from_the_defaults_of_their_scope() {
    let (layers, _) = read(&PolicySources::default());
    assert!(!layers.limiter_enabled() && layers.limiters().is_none());
    let text = "
enableLimiter: true
enableRescale: true
limiters:
- {name: a, type: quota, scope: cluster, quotas: {H100: 4, L40S: -1}, exclude: [kube-system]}
";
    let mut sources = global(&[("default", text)]);
    let local = data(&[("default", "kvCacheThreshold: 0.7")]);
    sources.namespaces.insert(Arc::from("ns"), local);
    let (layers, diagnostics) = read(&sources);
    assert_eq!(diagnostics.problems, []);
    assert!(layers.limiter_enabled());
    let quotas = Quotas::from([
        ("H100".to_owned(), Quota::AtMost(4)),
        ("L40S".to_owned(), Quota::Unlimited),
    ]);
    let limiter = Limiter {
        name: "a".into(),
        scope: LimiterScope::Cluster(quotas),
        exclude: ["kube-system".to_owned()].into(),
    };
    assert_eq!(layers.limiters(), Some([limiter].as_slice()));
    assert!(layers.rescale_enabled(None));
    assert!(!layers.rescale_enabled(Some("ns")));
    assert!(!layers.rescale_enabled(Some("unknown")));
}

#[test]
fn an_unknown_field_is_named_and_the_entry_counts() {
    let (layers, diagnostics) =
        read(&global(&[("default", "kvCacheTreshold: 0.5\nqueueSpareTrigger: 4")]));
    assert_eq!(diagnostics.problems, []);
    assert_eq!(
        diagnostics.notices[0].to_string(),
        "global saturation ConfigMap, entry \"default\": unknown field \"kvCacheTreshold\"; \
         did you mean \"kvCacheThreshold\"?"
    );
    let thresholds = layers.resolve(&ModelKey::new("ns", "m"));
    assert_eq!(thresholds.queue_spare_trigger.to_bits(), 4.0_f64.to_bits());
    assert_eq!(thresholds.kv_cache_threshold.to_bits(), 0.8_f64.to_bits());
}

#[test]
fn an_entry_edited_into_nonsense_keeps_its_content_until_it_is_repaired_or_removed() {
    let model = ModelKey::new("ns", "m");
    let kv = |layers: &SaturationLayers| layers.resolve(&model).kv_cache_threshold.to_bits();
    let mut sources = PolicySources::default();
    let (mut layers, _) = read(&sources);
    assert_eq!(kv(&layers), 0.8_f64.to_bits());
    for (text, expected, problem) in [
        ("kvCacheThreshold: 0.6", 0.6_f64, None),
        ("kvCacheThreshold: high", 0.6, Some("what was in force stays in force")),
        ("kvCacheThreshold: 0.7", 0.7, None),
        ("kvCacheThreshold: 7", 0.7, Some("what was in force stays in force")),
    ] {
        sources.namespaces.insert(Arc::from("ns"), data(&[("default", text)]));
        let mut diagnostics = Diagnostics::default();
        layers = super::read(&sources, BandUse::Tokens, Some(&layers), &mut diagnostics);
        assert_eq!(kv(&layers), expected.to_bits(), "{text}");
        let shown = texts(&diagnostics.problems);
        match problem {
            None => assert_eq!(shown, Vec::<String>::new()),
            Some(part) => assert!(shown.len() == 1 && shown[0].ends_with(part), "{shown:?}"),
        }
    }
    let (fresh, diagnostics) = read(&sources);
    assert_eq!(kv(&fresh), 0.8_f64.to_bits());
    assert!(diagnostics.problems[0].to_string().ends_with("the layers below apply"));
    sources.namespaces.clear();
    layers = super::read(&sources, BandUse::Tokens, Some(&layers), &mut Diagnostics::default());
    assert_eq!(kv(&layers), 0.8_f64.to_bits());
}

#[test]
fn an_entry_without_a_model_is_a_tier() {
    let kv = |layers: &SaturationLayers, tier: &str| {
        let tiers = &layers.entries.global.tiers;
        tiers.get(tier).and_then(|entry| entry.kv_cache_threshold)
    };
    let (layers, diagnostics) = read(&global(&[("gold", "{modelId: m, kvCacheThreshold: 0.6}")]));
    assert_eq!((kv(&layers, "gold"), diagnostics.problems.len()), (None, 0));
    let (layers, diagnostics) = read(&global(&[("gold", "kvCacheThreshold: 0.6")]));
    assert_eq!(kv(&layers, "gold"), Some(0.6));
    assert_eq!(diagnostics, Diagnostics::default());
    // What a namespace says is of models: a tier is for any.
    let (layers, diagnostics) =
        read(&global(&[("gold", "{namespace: ns, kvCacheThreshold: 0.6}")]));
    assert_eq!(kv(&layers, "gold"), None);
    assert!(diagnostics.problems[0].to_string().contains("it names no model"));
}

#[test]
fn a_tier_holds_no_budget_and_does_not_contradict_the_default() {
    let found_in = |text: &str| {
        let (layers, diagnostics) =
            read(&global(&[("default", "kvCacheThreshold: 0.3"), ("gold", text)]));
        let tier = layers.entries.global.tiers["gold"].clone();
        let problems = diagnostics.problems.iter().map(ToString::to_string);
        let notices = diagnostics.notices.iter().map(ToString::to_string);
        (tier.kv_spare_trigger, problems.chain(notices).collect::<Vec<_>>())
    };
    let place = "global saturation ConfigMap, entry \"gold\"";
    assert_eq!(found_in("kvSpareTrigger: 0.2"), (Some(0.2), vec![]));
    let contradicts = format!(
        "{place}: together with what it inherits kvCacheThreshold (0.30) should be >= kvSpareTrigger (0.40): raise the \
         threshold or lower the trigger; the layers below apply"
    );
    assert_eq!(found_in("kvSpareTrigger: 0.4"), (None, vec![contradicts]));
    let own = "enableRescale: only an entry `default` is asked, of the cluster or of a namespace; write it there";
    let found = found_in("{kvSpareTrigger: 0.2, enableRescale: true}");
    assert_eq!(found, (Some(0.2), vec![format!("{place}: {own}")]));
}

#[test]
fn a_refused_edit_of_a_tier_keeps_its_content() {
    let (before, _) = read(&global(&[("gold", "kvCacheThreshold: 0.6")]));
    let mut diagnostics = Diagnostics::default();
    let broken = global(&[("gold", "kvCacheThreshold: high")]);
    let after = super::read(&broken, BandUse::Tokens, Some(&before), &mut diagnostics);
    assert_eq!(after.entries, before.entries);
    assert!(diagnostics.problems[0].to_string().ends_with("what was in force stays in force"));
}

#[test]
fn what_selects_analyzers_without_effect_is_said() {
    for (text, notes) in [
        ("saturation: {default: {analyzerName: slo}}", 0),
        ("saturation: {default: {analyzerName: slo, analyzers: [{name: slo, enabled: false}]}}", 1),
        (
            "EXPERIMENTAL_PROACTIVE_MODEL: true\nsaturation: {default: {analyzerName: saturation}}",
            0,
        ),
        ("EXPERIMENTAL_PROACTIVE_MODEL: true\nsaturation: {default: {analyzerName: slo}}", 1),
        (
            "EXPERIMENTAL_PROACTIVE_MODEL: true\nsaturation: {default: {analyzers: [{name: saturation}, {name: throughput}]}}",
            1,
        ),
    ] {
        let read = crate::bundle::read_noted(text).unwrap();
        assert_eq!(read.notes.len(), notes, "{text}: {:?}", read.notes);
    }
}

#[test]
fn a_share_that_is_stated_alone_meets_what_the_entry_inherits() {
    let band = |below: &str, own: &str| {
        let sources = global(&[("default", below), ("e", &format!("model_id: m\n{own}"))]);
        let (layers, diagnostics) = read(&sources);
        let band = layers.policy(&ModelKey::new("ns", "m")).band;
        ([band.scale_up_threshold, band.scale_down_boundary], diagnostics.problems.len())
    };
    let low = "scaleUpThreshold: 0.6\nscaleDownBoundary: 0.5";
    let alone = "analyzerName: saturation\nscaleUpThreshold: 0.65";
    assert_eq!(band("", alone), ([0.85, 0.70], 1));
    assert_eq!(band(low, alone), ([0.65, 0.5], 0));
    let item = "analyzers: [{name: saturation, scaleUpThreshold: 0.65}]";
    assert_eq!(band("", item), ([0.85, 0.70], 1));
    assert_eq!(band(low, item), ([0.65, 0.5], 0));
    let both = "analyzerName: saturation\nscaleUpThreshold: 0.6\nscaleDownBoundary: 0.7";
    assert_eq!(band(low, both), ([0.6, 0.5], 1));
}

#[test]
fn layers_that_contradict_each_other_in_one_namespace_are_named() {
    for (own, home, why) in [
        ("kvSpareTrigger: 0.5", "kvCacheThreshold: 0.6", None),
        (
            "kvSpareTrigger: 0.5",
            "kvCacheThreshold: 0.4",
            Some("kvCacheThreshold (0.40) should be >= kvSpareTrigger (0.50)"),
        ),
        (
            "analyzerName: saturation\nscaleUpThreshold: 0.75",
            "scaleDownBoundary: 0.8",
            Some("scaleUpThreshold (0.75) must be > scaleDownBoundary (0.80)"),
        ),
    ] {
        let mut sources = global(&[("e", &format!("model_id: m\n{own}"))]);
        let of_namespace = data(&[("default", home)]);
        sources.namespaces.insert("ns".into(), of_namespace);
        let (layers, diagnostics) = read(&sources);
        let found = texts(&diagnostics.problems);
        assert_eq!(found.len(), usize::from(why.is_some()), "{found:?}");
        for (found, why) in found.iter().zip(why) {
            let start = format!(
                "global saturation ConfigMap, entry \"e\": together with the entries of namespace ns {why}"
            );
            assert!(found.starts_with(&start), "{found}");
            assert!(found.ends_with("; there the built-in values apply"), "{found}");
            // They do, and elsewhere the entry counts.
            let policy = |namespace| layers.policy(&ModelKey::new(namespace, "m"));
            let built_in = SaturationThresholds::default();
            assert_eq!(policy("ns").thresholds, built_in);
            assert_eq!(policy("ns").band, UtilizationBand::default());
            assert_ne!(
                (policy("other").thresholds, policy("other").band),
                (built_in, UtilizationBand::default())
            );
        }
    }
}

#[test]
fn a_wrong_type_hides_no_other_fault_of_its_entry() {
    let refused = |text: &str| {
        let (_, diagnostics) = read(&global(&[("default", text)]));
        let problems = diagnostics.problems.iter().map(Problem::subject);
        problems.collect::<Vec<_>>().join("\n")
    };
    let entry = |kv: &str, priority: &str, score: &str, field: &str| {
        format!(
            "kvCacheThreshold: {kv}\npriority: {priority}\nscaleUpThreshold: 0.9\n{field}: 0.6\n\
             analyzers: [{{name: saturation, score: {score}}}]\n"
        )
    };
    assert_eq!(refused(&entry("0.7", "1", "2", "scaleDownBoundary")), "");
    let said = refused(&entry("a", "-1", "much", "scaleDownBoundary"));
    let expected = "global saturation ConfigMap, entry \"default\": \
                    kvCacheThreshold: invalid type: string \"a\", expected a number at line 1 column 19; \
                    analyzers[0].score: invalid type: string \"much\", expected a number; \
                    priority must be >= 0, got -1.00: write 1 for the usual one";
    assert_eq!(said, expected);
    let text = entry("a", "1", "2", "scaleDownBoundry");
    let (_, diagnostics) = read(&global(&[("default", &text)]));
    let unknown = |notice: &&Warning| notice.to_string().contains("unknown field");
    assert_eq!(diagnostics.notices.iter().filter(unknown).count(), 1);
}

#[test]
fn every_fault_of_many_limiters_is_named() {
    let limiter = |number: u32| format!("{{name: l{number}, type: quote, scope: all}}");
    let limiters: Vec<String> = (0..8).map(limiter).collect();
    let text = format!("limiters: [{}]", limiters.join(", "));
    let (_, diagnostics) = read(&global(&[("default", &text)]));
    let said = diagnostics.problems[0].subject();
    assert_eq!(said.matches("type must be \"quota\"").count(), 8, "{said}");
    assert_eq!(said.matches("scope must be").count(), 8, "{said}");
    assert!(!said.contains("more"), "{said}");
}

#[test]
fn a_share_that_no_analyzer_can_use_is_a_mistake_under_percentages_as_well() {
    let mistakes = |text: &str| {
        let (_, diagnostics) = read(&global(&[("default", text)]));
        assert!(diagnostics.problems.is_empty(), "{diagnostics:?}");
        let notices = diagnostics.notices.iter();
        let mistakes = notices.filter(|notice| notice.severity() == Severity::Mistake);
        mistakes.map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(mistakes("scaleUpThreshold: 0.9"), Vec::<String>::new());
    let place = "global saturation ConfigMap, entry \"default\"";
    for (text, share) in [
        ("scaleUpThreshold: -1", "scaleUpThreshold must be in (0, 1], got -1.00"),
        ("scaleDownBoundary: 1.5", "scaleDownBoundary must be in (0, 1], got 1.50"),
    ] {
        let found = mistakes(text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(&format!("{place}: {share}: write a share")), "{found:?}");
    }
}
