//! Healthy facts have no finding, and each cause has exactly its own.

/// Causes as rows: code, the fields that are set, and what is done then.
macro_rules! causes {
    ($($code:ident $(: $($kind:ident $name:tt $field:literal = $value:tt),+)? $(=> $plant:expr)?;)*) => {
        &[$(($crate::doctor::FindingCode::$code, |facts: &mut $crate::doctor::Facts| {
            $($(
                let kind = $crate::doctor::facts::LiveKind::$kind;
                $crate::doctor::tests::causes::edit(facts, kind, $name, $field, serde_json::json!($value));
            )+)?
            $(
                let plant: fn(&mut $crate::doctor::Facts) = $plant;
                plant(facts);
            )?
        })),*]
    };
}

mod answers;
mod autoscaler_manifests;
mod autoscalers;
mod causes;
mod cluster;
mod declared;
mod devices;
mod fleets;
mod folders;
mod foreign;
mod harmless;
mod healthy;
mod look;
mod manifests;
mod outages;
mod page;
mod planted;
mod queries;
mod said;
mod tiers;

use std::collections::BTreeSet;

use serde_json::json;

use self::causes::{CONTROLLER, VARIANTS, WAKING, absent, bundle, edit, main_config, objects, pod};
use self::cluster::CLUSTER;
use self::healthy::{controller, facts, resolve};
use super::checks::count_queries;
use super::facts::{Facts, LiveKind, Reading};
use super::finding::FindingGroup;
use super::object::ObjectName;
use super::observed::observe;
use super::report::CheckOutcome;
use super::{Diagnosis, Finding, FindingCode, examine};
use crate::actors::variants::tests::with_annotated_scalers;
use crate::cluster::kinds::WatchedKind;
use crate::roles::Role;
use wva_supervise::Epoch;

/// The codes of what is found.
fn codes(facts: &Facts) -> Vec<FindingCode> {
    let mut facts = facts.clone();
    facts.declare();
    let diagnosis = examine(&facts);
    let mut codes: Vec<FindingCode> = diagnosis.findings().map(|one| one.code).collect();
    codes.sort();
    codes.dedup();
    codes
}

#[test]
fn healthy_facts_have_no_finding() {
    let diagnosis = examine(&facts());
    let found: Vec<_> = diagnosis.findings().collect();
    assert_eq!(found, Vec::<&Finding>::new());
    assert_eq!(diagnosis.unseen().count(), 0, "{}", diagnosis.to_text());
    assert_eq!(diagnosis.verdict().exit_code(), 0);
}

#[test]
fn healthy_fleets_that_differ_have_no_finding() {
    for (fleet, arrange) in fleets::FLEETS {
        let mut facts = facts();
        arrange(&mut facts);
        let diagnosis = examine(&facts);
        let text = diagnosis.to_text();
        assert_eq!(codes(&facts), Vec::new(), "{fleet}: {text}");
        assert_eq!(diagnosis.unseen().count(), 0, "{fleet}: {text}");
    }
}

const ALL: [&[causes::Cause]; 7] = [
    CLUSTER,
    CONTROLLER,
    VARIANTS,
    WAKING,
    answers::ANSWERS,
    answers::SCALERS,
    autoscalers::AUTOSCALERS,
];

#[test]
fn each_cause_has_exactly_its_code() {
    let mut planted = BTreeSet::new();
    let mut wrong = Vec::new();
    for (code, plant) in ALL.into_iter().flatten() {
        let mut facts = facts();
        assert_eq!(codes(&facts), Vec::new());
        plant(&mut facts);
        if codes(&facts) != [*code] {
            wrong.push(format!("{code:?}: {}", examine(&facts).to_text()));
        }
        planted.insert(*code);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let missing: Vec<FindingCode> =
        FindingCode::ALL.into_iter().filter(|code| !planted.contains(code)).collect();
    assert_eq!(missing, Vec::new(), "codes that no cause has");
}

#[test]
fn what_is_far_off_is_no_finding() {
    let mut facts = facts();
    edit(
        &mut facts,
        LiveKind::ValidatingWebhookConfiguration,
        "wva",
        "/webhooks/0/clientConfig/caBundle",
        bundle(9),
    );
    assert_eq!(codes(&facts), Vec::new());
    // A pod that has just been created finds its node later.
    pod(
        &mut facts,
        &json!({ "phase": "Pending", "conditions": [
        { "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "" }] }),
        &json!({}),
    );
    edit(
        &mut facts,
        LiveKind::Pod,
        "a-1",
        "/metadata/creationTimestamp",
        json!("2025-12-31T23:59:50Z"),
    );
    assert_eq!(codes(&facts), Vec::new());
}

#[test]
fn harmless_variations_have_no_finding() {
    for (place, plant) in harmless::HARMLESS.iter().enumerate() {
        let mut facts = facts();
        plant(&mut facts);
        let text = examine(&facts).to_text();
        assert_eq!(codes(&facts), Vec::new(), "row {place}: {text}");
    }
}

#[test]
fn a_summary_counts_one_thing_as_one() {
    let mut diagnosis = Diagnosis::default();
    for (expected, finding) in wva_base::cases! {
        ("1 object read, 0 errors, 0 warnings, 1 check could not look\n", None),
        ("1 object read, 1 error, 0 warnings, 2 checks could not look\n", Some(FindingCode::NoScaler)),
        ("1 object read, 1 error, 1 warning, 3 checks could not look\n", Some(FindingCode::CostsEqual)),
    } {
        let unseen = CheckOutcome::Unseen(vec!["a refusal".to_owned()]);
        diagnosis.add(FindingGroup::Variants, "pods start", unseen);
        let object = ObjectName::new("VariantAutoscaling", "ns", "a");
        let found = finding.map(|code| CheckOutcome::Found(vec![code.at(object, "a cause")]));
        if let Some(found) = found {
            diagnosis.add(FindingGroup::Variants, "a check", found);
        }
        diagnosis.objects_read = Some(1);
        let text = diagnosis.to_text();
        assert!(text.ends_with(&format!("\n{expected}")), "{text}");
    }
}

#[test]
fn what_keeps_several_checks_from_looking_is_said_once() {
    let mut diagnosis = Diagnosis::default();
    for (title, why) in
        [("one", "Prometheus: no answer"), ("two", "Prometheus: no answer"), ("three", "pods: 403")]
    {
        let unseen = CheckOutcome::Unseen(vec![why.to_owned()]);
        diagnosis.add(FindingGroup::Variants, title, unseen);
    }
    let text = diagnosis.to_text();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("could not look: ")).collect();
    let expected = ["Prometheus: no answer", "Prometheus: as above", "pods: 403"];
    assert_eq!(lines, expected.map(|why| format!("    could not look: {why}")));
    assert_eq!(diagnosis.unseen().filter(|(_, why)| why[0].contains("no answer")).count(), 2);
}

#[test]
fn what_cannot_be_read_is_never_fine() {
    let mut facts = facts();
    let why = "the API server answered 403: pods is forbidden";
    facts.objects.insert(LiveKind::Pod, Reading::Failed(why.to_owned()));
    let diagnosis = examine(&facts);
    assert_eq!(diagnosis.findings().count(), 0);
    assert_eq!(diagnosis.verdict().exit_code(), 2);
    let text = diagnosis.to_text();
    // The first check that misses them says why.
    assert!(text.contains(&format!("could not look: pods: {why}")), "{text}");
    assert!(text.contains("? pods start\n    could not look: pods: as above"), "{text}");
    assert!(!text.contains("√ pods start"), "{text}");
}

#[test]
fn nothing_of_a_controller_is_fine_without_one() {
    let titles = [
        "controllers handle different objects",
        "settings are accepted",
        "every ConfigMap of settings is read",
        "rights are granted",
        "a replica leads",
        "every variant has a controller",
        "models at zero can be woken",
    ];
    let mut facts = facts();
    let healthy = examine(&facts).to_text();
    resolve(&mut facts, &[]);
    facts.rights = Reading::Known(Vec::new());
    let alone = examine(&facts).to_text();
    facts.controllers = Reading::Failed("403".to_owned());
    let unseen = examine(&facts).to_text();
    for title in titles {
        assert!(healthy.contains(&format!("√ {title}\n")), "{healthy}");
        assert!(!alone.contains(title), "{alone}");
        assert!(unseen.contains(&format!("? {title}\n")), "{unseen}");
    }
}

#[test]
fn the_definition_may_be_missing_where_annotated_scalers_are_variants() {
    for (enabled, codes_then) in [("false", &[FindingCode::VariantKindMissing][..]), ("true", &[])]
    {
        let mut facts = facts();
        absent(&mut facts, LiveKind::VariantAutoscaling);
        main_config(&mut facts, "ANNOTATED_SCALERS_ENABLED", enabled);
        assert_eq!(codes(&facts), codes_then, "{enabled}");

        let shared = with_annotated_scalers(enabled);
        let kind = WatchedKind::VariantAutoscaling;
        let epoch = Epoch::for_test(Role::Watcher(kind), 1);
        let variants = &shared.writers.mirrors.variants;
        variants.kind_absent(&epoch).unwrap();
        let found = observe(&shared).into_iter().map(|(code, _)| code);
        assert_eq!(found.collect::<Vec<_>>(), codes_then, "{enabled}");
    }
}

#[test]
fn an_annotated_scaler_contests_a_target_where_a_controller_takes_it() {
    let mut facts = facts();
    let annotations = json!({ "llm-d.ai/managed": "true", "llm-d.ai/model-id": "meta/llama" });
    let place = "/metadata/annotations";
    let kind = LiveKind::HorizontalPodAutoscaler;
    edit(&mut facts, kind, "a", place, annotations);
    assert_eq!(codes(&facts), [FindingCode::AnnotationsNotTaken]);

    let mut object = controller("wva");
    let mut set = |facts: &mut Facts, name: &str, value: &str| {
        let container = &mut object["spec"]["template"]["spec"]["containers"][0];
        let variables = container["env"].as_array_mut().unwrap();
        variables.push(json!({ "name": name, "value": value }));
        resolve(facts, &[object.clone()]);
    };
    set(&mut facts, "ANNOTATED_SCALERS_ENABLED", "true");
    assert_eq!(codes(&facts), [FindingCode::TargetContested]);
    let diagnosis = examine(&facts);
    let mut remedies: Vec<String> = diagnosis.findings().map(Finding::remedy).collect();
    remedies.sort();
    let of_both = [
        "kubectl annotate horizontalpodautoscaler a --namespace ns llm-d.ai/managed-",
        "kubectl delete variantautoscaling a --namespace ns",
    ];
    assert_eq!(remedies, of_both);
    set(&mut facts, "CONTROLLER_INSTANCE", "blue");
    let found = codes(&facts);
    assert!(!found.contains(&FindingCode::TargetContested), "{found:?}");
}

/// Nothing that a finding is about is without a name.
#[test]
fn every_finding_names_its_object_and_what_was_asked() {
    let asked = "http://localhost:9090";
    let empty = |facts: &mut Facts| {
        for reading in facts.series.values_mut() {
            *reading = Reading::Known(Vec::new());
        }
        facts.triggers = Reading::NotAsked;
    };
    let text = |address: Option<&str>| {
        let mut facts = facts();
        empty(&mut facts);
        facts.prometheus_address = address.map(str::to_owned);
        examine(&facts).to_text()
    };
    let setting = "https://prometheus.monitoring.svc:9090";
    for (address, shown) in [(None, setting), (Some(asked), asked)] {
        let text = text(address);
        let finding = format!(
            "× WVA042 Prometheus holds no target at all: Prometheus {shown}\n    {shown} answers, and has no series `up`\n"
        );
        assert!(text.contains(&finding), "{text}");
    }
    for (code, plant) in ALL.into_iter().flatten() {
        let mut facts = facts();
        plant(&mut facts);
        for finding in examine(&facts).findings() {
            assert_ne!(finding.object.name, "", "{code:?}: {finding:?}");
        }
    }
}

/// Prometheus has the series of the variant, and the query selects its namespace by the controller's label.
#[test]
fn a_query_by_the_wrong_label_names_the_right_one() {
    let causes = |query: &str| {
        let mut facts = facts();
        let place = "/spec/triggers/0/metadata/query";
        edit(&mut facts, LiveKind::ScaledObject, "b", place, json!(query));
        answers::triggers(&mut facts, Ok(Vec::new()));
        let diagnosis = examine(&facts);
        let found = diagnosis.findings().map(|one| (one.code, one.cause.clone()));
        found.collect::<Vec<_>>()
    };
    let nothing = FindingCode::QueryFindsNothing;
    let other = healthy::QUERY.replace("variant_name=\"b\"", "variant_name=\"b\",job=\"x\"");
    assert_eq!(causes(&other), [(nothing, format!("it asks {other}"))]);
    let wrong = healthy::QUERY.replace("exported_namespace=", "namespace=");
    let cause = format!("it asks {wrong}; the label is exported_namespace");
    assert_eq!(causes(&wrong), [(nothing, cause)]);
}

/// An adapter asks Prometheus for the selector. The controller itself serves both labels.
#[test]
fn a_selector_by_the_wrong_label_names_the_right_one() {
    let mut facts = facts();
    let labels = json!({ "variant_name": "a", "namespace": "ns" });
    answers::selects_nothing(&mut facts, labels);
    let diagnosis = examine(&facts);
    let found = diagnosis.findings().map(|one| (one.code, &*one.cause));
    let cause = "it asks max by (variant_name, exported_namespace) \
        (wva_desired_replicas{namespace=\"ns\",variant_name=\"a\"}); the label is exported_namespace";
    assert_eq!(found.collect::<Vec<_>>(), [(FindingCode::QueryFindsNothing, cause)]);
    // A controller that is no Deployment has decided, too.
    let mut alone = facts.clone();
    resolve(&mut alone, &[]);
    let missing = FindingCode::ControllerMissing;
    assert_eq!(codes(&alone), [missing, FindingCode::QueryFindsNothing]);
    // Its adapter has another rule than that of the samples.
    let mut works = facts.clone();
    let active = json!({ "conditions": [{ "type": "ScalingActive", "status": "True", "reason": "ValidMetricFound" }] });
    let kind = LiveKind::HorizontalPodAutoscaler;
    edit(&mut works, kind, "a", "/status", active);
    assert_eq!(codes(&works), Vec::new());
    let service = "v1beta1.external.metrics.k8s.io";
    let name = json!("wva-external-metrics");
    let kind = LiveKind::APIService;
    edit(&mut facts, kind, service, "/spec/service/name", name);
    assert_eq!(codes(&facts), Vec::new());
}

#[test]
fn selectors_are_asked_as_an_adapter_asks_them() {
    let asked = |selector: serde_json::Value| {
        let mut facts = facts();
        objects(&mut facts, LiveKind::ScaledObject).clear();
        let place = "/spec/metrics/0/external/metric/selector";
        let kind = LiveKind::HorizontalPodAutoscaler;
        edit(&mut facts, kind, "a", place, selector);
        let queries = count_queries(&facts).into_iter();
        queries.map(|(_, query)| query).collect::<Vec<_>>()
    };
    let query = |matchers: &str| {
        format!("max by (variant_name, exported_namespace) (wva_desired_replicas{{{matchers}}})")
    };
    let labels = json!({ "variant_name": "a", "exported_namespace": "ns" });
    assert_eq!(
        asked(json!({ "matchLabels": labels })),
        [query(r#"exported_namespace="ns",variant_name="a""#)]
    );
    let expressions = json!([
        { "key": "exported_namespace", "operator": "In", "values": ["ns"] },
        { "key": "job", "operator": "NotIn", "values": ["x", "y"] },
        { "key": "pod", "operator": "Exists" },
        { "key": "node", "operator": "DoesNotExist" },
    ]);
    assert_eq!(
        asked(json!({ "matchExpressions": expressions })),
        [query(r#"exported_namespace=~"ns",job!~"x|y",pod!="",node="""#)]
    );
    // The adapter adds the namespace by its own rule.
    let labels = json!({ "variant_name": "a" });
    assert_eq!(asked(json!({ "matchLabels": labels })), Vec::<String>::new());
}
