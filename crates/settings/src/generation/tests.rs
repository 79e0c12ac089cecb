use std::time::Duration;

use super::*;
use crate::fixtures::{data, global_sources, texts};
use crate::secret::Secret;
use crate::sources::{GivenFlag, MainConfigMap};
use crate::{FeatureSwitch, Problem, Sources, TokenSource, Warning};
use wva_policy::key::ModelKey;
use wva_policy::reuse::Reuse;
use wva_policy::signal::FreshnessBands;

mod effects;
mod properties;

pub(super) fn sources(environment: &[(&str, &str)], main: &[(&str, &str)]) -> Sources {
    let mut environment = data(environment);
    environment
        .entry("PROMETHEUS_BASE_URL".to_owned())
        .or_insert_with(|| "https://p:9090".to_owned());
    Sources { environment, main: MainConfigMap::Present(data(main)), ..Sources::default() }
}

/// What contradicts another setting is shown like what is not understood: as far as people can use it.
#[test]
fn of_long_values_that_contradict_others_the_beginning_is_shown() {
    let long = format!("/{}", "c".repeat(3_000));
    let url = format!("http://p:9090{long}");
    for (name, text) in [("PROMETHEUS_CLIENT_CERT_PATH", &long), ("PROMETHEUS_BASE_URL", &url)] {
        let refused = start(&sources(&[(name, text)], &[])).unwrap_err();
        let [error] = refused.as_slice() else {
            panic!("{refused:?}");
        };
        let said = error.to_string();
        assert!(said.contains(&text[..100]) && said.len() < 800, "{said}");
    }
    let whole =
        [("PROMETHEUS_CLIENT_CERT_PATH", long.as_str()), ("PROMETHEUS_CLIENT_KEY_PATH", &long)];
    assert!(start(&sources(&whole, &[])).is_ok());
}

/// One collection shows the minute before it alone, and time that is not seen counts as use. A jump of requests is seen
/// by a collection between cycles.
#[test]
fn metrics_are_collected_once_a_minute_for_zero_and_four_times_for_latency() {
    let every = |interval: &str, more: &str| {
        let text = format!("GLOBAL_OPT_INTERVAL: {interval}\n{more}");
        let settings = crate::bundle::read_bundle(&text).unwrap();
        settings.fetch_interval().map(|every| every.as_secs())
    };
    let rests = "scaleToZero: {default: {enable_scale_to_zero: true}}\n";
    let fetched =
        |every: &str| format!("{rests}PROMETHEUS_METRICS_CACHE_FETCH_INTERVAL: {every}\n");
    assert_eq!(every("10m", ""), None);
    assert_eq!(every("10m", rests), Some(60));
    assert_eq!(every("60s", rests), None);
    assert_eq!(every("61s", rests), Some(60));
    assert_eq!(every("10m", &fetched("2m")), Some(60));
    assert_eq!(every("10m", &fetched("20s")), Some(20));
    assert_eq!(every("30s", &fetched("20s")), Some(20));
    assert_eq!(every("30s", &fetched("1ms")), Some(1));
    let inline = "saturation: {one: {modelId: m, namespace: ns, scaleToZero: {enabled: true}}}\n";
    assert_eq!(every("10m", inline), Some(60));
    let slo = "saturation: {default: {analyzerName: slo}}\n";
    assert_eq!(every("10m", slo), Some(15));
    assert_eq!(every("15s", slo), None);
}

#[test]
fn nothing_configured_but_the_address_gives_the_documented_defaults() {
    let started = start(&sources(&[], &[])).unwrap();
    assert_eq!(started.diagnostics, Diagnostics::default());
    let generation = started.generation;
    assert_eq!(generation.number, 1);
    assert_eq!(*generation.dynamic, DynamicSettings::default());
    assert_eq!(generation.dynamic.interval, Duration::from_mins(1));
    assert_eq!(generation.dynamic.cache.reuse, Reuse::within(Duration::from_secs(30)));
    assert_eq!(generation.dynamic.cache.fetch_interval, None);
    assert_eq!(generation.dynamic.cache.max_samples, None);
    let statics = &generation.statics;
    assert_eq!(statics.prometheus.base_url.expose(), "https://p:9090");
    assert_eq!(statics.serving.metrics.to_string(), "0");
    assert_eq!(statics.serving.probes.to_string(), ":8081");
    assert!(statics.serving.metrics_secure && !statics.serving.http2);
    assert_eq!(statics.serving.metrics_certificate, None);
    assert!(!statics.leader_election.enabled);
    assert_eq!(statics.leader_election.lease_duration, Duration::from_mins(1));
    assert_eq!(statics.leader_election.renew_deadline, Duration::from_secs(50));
    assert_eq!(statics.leader_election.retry_period, Duration::from_secs(10));
    assert_eq!(statics.scope.watch_namespace, None);
    assert_eq!(statics.scope.system_namespace, "workload-variant-autoscaler-system");
    assert_eq!(statics.config_maps.saturation, "wva-saturation-scaling-config");
}

#[test]
fn every_error_is_reported_at_once() {
    let mut bad = sources(
        &[
            ("PROMETHEUS_BASE_URL", "prometheus:9090"),
            ("GLOBAL_OPT_INTERVAL", "60"),
            ("PROMETHEUS_CLIENT_KEY_PATH", "/key"),
        ],
        &[("METRICS_SECURE", "maybe"), ("V", "loud")],
    );
    let keys: Vec<&str> = start(&bad).unwrap_err().iter().map(|error| error.key).collect();
    assert_eq!(
        keys,
        [
            "PROMETHEUS_BASE_URL",
            "GLOBAL_OPT_INTERVAL",
            "METRICS_SECURE",
            "PROMETHEUS_CLIENT_KEY_PATH"
        ]
    );
    bad.environment = data(&[("PROMETHEUS_BASE_URL", "https://p")]);
    bad.main = MainConfigMap::Present(data(&[("config.yaml", "- no\n- keys")]));
    let errors = start(&bad).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].to_string().contains("failed to load config"), "{}", errors[0]);
}

#[test]
fn an_invalid_live_value_takes_the_layer_below_at_start_and_keeps_the_previous_one_later() {
    let broken = sources(&[], &[("GLOBAL_OPT_INTERVAL", "soon")]);
    let started = start(&broken).unwrap();
    assert_eq!(started.generation.dynamic.interval, Duration::from_mins(1));
    assert_eq!(
        texts(&started.diagnostics.problems),
        ["GLOBAL_OPT_INTERVAL=\"soon\" (main ConfigMap GLOBAL_OPT_INTERVAL): it is not a \
             duration: it is not a sequence of numbers with units; write a duration from 1s to \
             1h0m0s, like 90s or 1m30s; the layers below apply"]
    );
    let fine = sources(&[], &[("GLOBAL_OPT_INTERVAL", "2s")]);
    let repaired = transition(&started.generation, &fine);
    assert_eq!(texts(&repaired.diagnostics.problems), Vec::<String>::new());
    let repaired = repaired.next.unwrap();
    assert_eq!((repaired.number, repaired.dynamic.interval), (2, Duration::from_secs(2)));

    let kept = transition(&repaired, &broken);
    assert_eq!(kept.next, None);
    assert!(texts(&kept.diagnostics.problems)[0].ends_with("what was in force stays in force"));
    let removed = transition(&repaired, &sources(&[], &[])).next.unwrap();
    assert_eq!(removed.dynamic.interval, Duration::from_mins(1));
}

#[test]
fn a_shadowed_value_neither_acts_nor_hides_its_faults() {
    let fine = sources(&[("GLOBAL_OPT_INTERVAL", "5s")], &[("GLOBAL_OPT_INTERVAL", "7s")]);
    let before = start(&fine).unwrap().generation;
    assert_eq!(before.dynamic.interval, Duration::from_secs(5));
    let broken = sources(&[("GLOBAL_OPT_INTERVAL", "5s")], &[("GLOBAL_OPT_INTERVAL", "soon")]);
    let after = transition(&before, &broken);
    assert_eq!(after.next, None);
    assert!(
        texts(&after.diagnostics.problems)[0].ends_with("a flag or the environment is in force")
    );
}

#[test]
fn a_change_is_named_with_its_documented_words() {
    let before = start(&sources(&[], &[])).unwrap().generation;
    let mut edited =
        sources(&[], &[("GLOBAL_OPT_INTERVAL", "2s"), ("PROMETHEUS_METRICS_CACHE_TTL", "0")]);
    edited.saturation = global_sources(data(&[("default", "priority: 2"), ("m", "modelId: m")]));
    edited.saturation.namespaces.insert(Arc::from("ns"), data(&[("default", "priority: 3")]));
    let after = transition(&before, &edited);
    let texts: Vec<String> = after
        .changes
        .iter()
        .map(|change| {
            format!(
                "{} {} {:?}: {} -> {} {:?}",
                change.message,
                change.key,
                change.namespace,
                change.old,
                change.new,
                change.entries
            )
        })
        .collect();
    assert_eq!(
        texts,
        [
            "Updated Prometheus cache config from ConfigMap PROMETHEUS_METRICS_CACHE_TTL None: 30s -> 0s []",
            "Updated optimization interval GLOBAL_OPT_INTERVAL None: 1m0s -> 2s []",
            "Updated saturation config saturation None: 0 entries -> 2 entries [\"default (new)\", \"m (new)\"]",
            "Updated saturation config saturation Some(\"ns\"): 0 entries -> 1 entry [\"default (new)\"]",
        ]
    );
    let after = after.next.unwrap();
    // Who an entry is for is content as well.
    edited.saturation.global = Some(data(&[("default", "priority: 2"), ("m", "modelId: n")]));
    let moved = transition(&after, &edited);
    assert_eq!(moved.changes.len(), 1);
    assert_eq!(moved.changes[0].entries, ["m"]);
    edited.saturation.global = Some(data(&[("default", "priority: 2")]));
    let gone = transition(&moved.next.unwrap(), &edited);
    assert_eq!(gone.changes[0].entries, ["m (removed)"]);
}

#[test]
fn the_same_content_is_the_same_generation() {
    let before = start(&sources(&[], &[("GLOBAL_OPT_INTERVAL", "90s")])).unwrap().generation;
    for same in [
        sources(&[], &[("GLOBAL_OPT_INTERVAL", "1m30s")]),
        sources(&[], &[("global_opt_interval", "1.5m"), ("V", "0"), ("LOG_LEVEL", "INFO")]),
    ] {
        let after = transition(&before, &same);
        assert_eq!((after.next, after.changes), (None, Vec::new()));
    }
}

#[test]
fn a_config_map_whose_document_is_broken_changes_nothing() {
    let before = start(&sources(&[], &[("config.yaml", "GLOBAL_OPT_INTERVAL: 5s")])).unwrap();
    let before = before.generation;
    assert_eq!(before.dynamic.interval, Duration::from_secs(5));
    let after = transition(&before, &sources(&[], &[("config.yaml", "GLOBAL_OPT_INTERVAL: [")]));
    assert_eq!(after.next, None);
    assert_eq!(after.rejected, []);
    assert_eq!(after.diagnostics.problems.len(), 1);
}

#[test]
fn names_that_are_old_unknown_or_out_of_place_are_mentioned() {
    let mut sources = sources(
        &[("METRICS_ADDR", ":1")],
        &[
            ("GLOBAL_OPT_INTERVALL", "5s"),
            ("POD_NAMESPACE", "x"),
            ("PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD", "3m"),
        ],
    );
    let inert = GivenFlag { name: "zap-devel", text: "true".to_owned() };
    sources.flags.insert("ZAP_DEVEL", inert);
    let started = start(&sources).unwrap();
    let texts: Vec<String> = started.diagnostics.notices.iter().map(Warning::to_string).collect();
    assert_eq!(
        texts,
        [
            "environment METRICS_ADDR is an older name; write METRICS_BIND_ADDRESS",
            "main ConfigMap: no setting is named \"GLOBAL_OPT_INTERVALL\"; did you mean \
             \"GLOBAL_OPT_INTERVAL\"?",
            "main ConfigMap POD_NAMESPACE has no effect there; set it in the environment",
            "ZAP_DEVEL is accepted, inert",
        ]
    );
    let refused = &started.diagnostics.problems[0];
    assert_eq!(
        refused.to_string(),
        "PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD=\"3m0s\" (main ConfigMap \
         PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD): it is above \
         PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD, which is 2m0s; write at most 2m0s, or raise \
         PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD; the layers below apply"
    );
    assert_eq!(started.generation.dynamic.freshness, FreshnessBands::default());
}

#[test]
fn nothing_that_is_printed_for_debugging_shows_a_secret() {
    let secret = sources(
        &[
            ("PROMETHEUS_BASE_URL", "https://user:s3cret@p"),
            ("EPP_METRIC_READER_BEARER_TOKEN", "s3cret"),
        ],
        &[("PROMETHEUS_BEARER_TOKEN", "s3cret")],
    );
    let started = start(&secret).unwrap();
    let token = &started.generation.statics.prometheus.token;
    assert_eq!(*token, TokenSource::Value(Secret::new("s3cret")));
    let edited = sources(&[], &[("PROMETHEUS_BEARER_TOKEN", "s3cret2")]);
    let after = transition(&started.generation, &edited);
    assert_eq!(after.rejected.len(), 1);
    let shown = format!("{secret:?} {started:?} {after:?}");
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[test]
fn explicit_targets_beat_those_of_the_class_which_beat_inferred_ones() {
    use wva_policy::params::LatencyGoal;
    let mut configured = sources(&[], &[]);
    let model = ModelKey::new("ns", "m");
    let goal = |sources: &Sources| {
        let dynamic = start(sources).unwrap().generation.dynamic;
        match dynamic.latency_goal(&model, None) {
            LatencyGoal::Explicit(targets) => format!("explicit {:?}", targets.time_to_first_token),
            LatencyGoal::Class { class, targets } => {
                format!("{class} {:?}", targets.time_to_first_token)
            }
            LatencyGoal::Inferred { slo_multiplier } => format!("inferred {slo_multiplier}"),
        }
    };
    assert_eq!(goal(&configured), "inferred 3");
    let class = "name: A\npriority: 1\ndata: [{model: m, slo-tpot: 24, slo-ttft: 500}]";
    configured.service_classes = Some(data(&[("a", class)]));
    assert_eq!(goal(&configured), "A 500ms");
    let explicit = "model_id: m\nnamespace: ns\ntargetTTFT: 400\ntargetITL: 20";
    configured.queueing_model.global = Some(data(&[("m", explicit)]));
    assert_eq!(goal(&configured), "explicit 400ms");
}

#[test]
fn invalid_entries_are_counted_per_config_map() {
    let mut broken = sources(&[], &[("V", "loud")]);
    broken.saturation.global = Some(data(&[("default", "["), ("x", "["), ("y", "modelId: m")]));
    broken.scale_to_zero.namespaces.insert(Arc::from("ns"), data(&[("default", "x: [")]));
    let diagnostics = start(&broken).unwrap().diagnostics;
    let counts: Vec<String> = diagnostics
        .invalid_entries()
        .into_iter()
        .map(|((purpose, namespace), count)| format!("{} {namespace:?} {count}", purpose.as_str()))
        .collect();
    assert_eq!(counts, ["main None 1", "saturation None 2", "scale-to-zero Some(\"ns\") 1"]);
    assert!(matches!(diagnostics.problems[0], Problem::Setting { .. }));
}

#[test]
fn a_second_spelling_of_one_setting_is_named() {
    let notices = |environment, main| -> Vec<String> {
        let found = start(&sources(environment, main)).unwrap().diagnostics.notices;
        found.iter().map(ToString::to_string).collect()
    };
    assert_eq!(notices(&[("METRICS_BIND_ADDRESS", ":10")], &[]), [""; 0]);
    assert_eq!(
        notices(&[("METRICS_ADDR", ":9"), ("METRICS_BIND_ADDRESS", ":10")], &[]),
        [
            "environment METRICS_ADDR does not count next to METRICS_BIND_ADDRESS, which names the same setting; remove one"
        ]
    );
    assert_eq!(
        notices(&[], &[("GLOBAL_OPT_INTERVAL", "2s"), ("global_opt_interval", "3s")]),
        [
            "main ConfigMap global_opt_interval does not count next to GLOBAL_OPT_INTERVAL, which names the same setting; remove one"
        ]
    );
}

#[test]
fn a_field_inside_a_field_gets_its_nearest_name() {
    let entry = "{analyzers: [{nmae: saturation}], kvSpareTriger: 0.1}";
    let mut sources = sources(&[], &[]);
    sources.saturation = global_sources(data(&[("default", entry)]));
    let found = start(&sources).unwrap().diagnostics.notices;
    let texts = texts(&found);
    for part in [
        "unknown field \"analyzers[0].nmae\"; did you mean \"name\"?",
        "unknown field \"kvSpareTriger\"; did you mean \"kvSpareTrigger\"?",
    ] {
        assert!(texts.iter().any(|text| text.contains(part)), "{part}: {texts:?}");
    }
}

#[test]
fn pod_autoscalers_are_on_unless_a_setting_or_the_list_of_controllers_switches_them_off() {
    let support = |environment: &[(&str, &str)], main: &[(&str, &str)], list: Option<&str>| {
        let mut sources = sources(environment, main);
        if let Some(list) = list {
            let given = GivenFlag { name: "controllers", text: list.to_owned() };
            sources.flags.insert("CONTROLLERS", given);
        }
        let started = start(&sources).map_err(|errors| errors[0].to_string())?;
        Ok::<_, String>(started.generation.statics.pod_autoscalers)
    };
    let (on, off) = (Ok(FeatureSwitch::Enabled), Ok(FeatureSwitch::Disabled));
    let switched = |text| [("POD_AUTOSCALERS_ENABLED", text)];
    assert_eq!(support(&[], &[], None), on);
    assert_eq!(support(&switched("false"), &[], None), off);
    assert_eq!(support(&[], &switched("false"), None), off);
    assert_eq!(support(&switched("true"), &switched("false"), None), on);
    assert_eq!(support(&[], &[], Some("-pod-autoscaler-controller")), off);
    assert_eq!(support(&[], &[], Some("pod-autoscaler-controller")), on);
    assert_eq!(support(&switched("false"), &[], Some("*")), off);
    let refused = support(&[], &[], Some("kv-cache-controller")).unwrap_err();
    let words = "\"kv-cache-controller\" is no controller of this program";
    assert!(refused.contains(words), "{refused}");
}
