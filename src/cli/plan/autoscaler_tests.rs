use serde_json::Value;

use super::tests::{block_of, how};
use super::{Format, PlanFlags, answer, explained_autoscaler};
use crate::docs::check_block;
use crate::policy::document::SnapshotDocument;
use crate::policy::key::ObjectKey;
use crate::policy::signal::FreshnessBands;
use crate::settings::bundle::read_noted;

const FILE: &str = "docs/development/plan.md";
const PAGE: &str = include_str!("../../../docs/development/plan.md");

fn block(after: &str) -> &'static str {
    block_of(PAGE, after)
}

fn shown(snapshot: &str, format: Format) -> String {
    let arguments =
        PlanFlags { snapshot: Some("chat.yaml".to_owned()), settings: None, ..how(format, true) };
    answer(snapshot, "", &arguments).unwrap_or_else(|errors| panic!("{}", errors.join("\n")))
}

#[test]
fn the_worked_example_of_an_autoscaler_gives_what_the_docs_show() {
    let text = shown(block("`chat.yaml`:"), Format::Table);
    check_block(FILE, "chat.yaml --explain` shows:", &text);
}

#[test]
fn what_is_remembered_goes_into_the_next_snapshot() {
    let snapshot = block("`chat.yaml`:");
    let first: Value = serde_json::from_str(&shown(snapshot, Format::Json)).unwrap();
    let row = &first["podAutoscalers"]["prod/chat"];
    assert_eq!(row["desired"], 6);
    assert_eq!(row["nextBoundary"], "2026-03-02T18:00:00Z");
    assert_eq!(row["bounds"]["active"], "office");
    assert!(row["hpa"].is_null());
    let mut next: serde_yaml::Value = serde_yaml::from_str(snapshot).unwrap();
    next["podAutoscalers"][0]["state"] = serde_yaml::to_value(&row["state"]).unwrap();
    let next = serde_yaml::to_string(&next).unwrap();
    let again: Value = serde_json::from_str(&shown(&next, Format::Json)).unwrap();
    let again = &again["podAutoscalers"]["prod/chat"]["state"];
    let recommendations = |state: &Value| state["recommendations"].as_array().unwrap().len();
    assert_eq!(recommendations(again), recommendations(&row["state"]) + 1);
}

#[test]
fn what_mode_auto_would_decide_is_shown_with_a_forecast() {
    let would_be = |strategy: &str| {
        let snapshot = block("`chat.yaml`:").replace("scalingStrategy: APA", strategy);
        let mut whole: Value = serde_json::from_str(&shown(&snapshot, Format::Json)).unwrap();
        whole["podAutoscalers"]["prod/chat"]["wouldBe"].take()
    };
    assert_eq!(would_be("scalingStrategy: APA"), Value::Null);
    let forecast = "predictive: {mode: Preview}";
    for (strategy, expected) in [("APA", Value::from(6)), ("HPA", Value::Null)] {
        let found = would_be(&format!("scalingStrategy: {strategy}\n      {forecast}"));
        assert_eq!(found, expected, "{strategy}");
    }
}

#[test]
fn a_generated_object_is_shown_whole() {
    let snapshot = block("`chat.yaml`:").replace("APA", "HPA");
    let text = shown(&snapshot, Format::Yaml);
    let whole: Value = serde_yaml::from_str(&text).unwrap();
    let row = &whole["podAutoscalers"]["prod/chat"];
    assert_eq!(row["reason"], "HorizontalPodAutoscaler chat-hpa decides");
    assert_eq!(row["hpa"]["spec"]["minReplicas"], 3);
    assert!(!row["state"].is_null());
}

#[test]
fn a_source_that_no_controller_can_read_is_noted() {
    let notes = |from: &str, to: &str| -> Vec<String> {
        let snapshot = block("`chat.yaml`:");
        assert!(snapshot.contains(from), "{from}");
        let mut whole: Value =
            serde_json::from_str(&shown(&snapshot.replace(from, to), Format::Json)).unwrap();
        let notes: Vec<String> = serde_json::from_value(whole["notes"].take()).unwrap();
        let notes = notes.into_iter();
        notes.filter(|note| !note.contains("scale-down-tolerance")).collect()
    };
    let start = "chat.yaml: prod/chat: spec.metricsSources[0]";
    assert_eq!(notes("8000", "8001"), Vec::<String>::new());
    for (from, to, expected) in [
        ("8000", "0", ".port: port \"0\" is no number from 1 to 65535; write one"),
        (
            "num_requests_waiting",
            "drain_rate_1m",
            ".targetMetric: drain_rate_1m is the result of a Prometheus query",
        ),
    ] {
        let found = notes(from, to);
        let [note] = &found[..] else { panic!("{found:?}") };
        assert!(note.starts_with(&format!("{start}{expected}")), "{note}");
    }
    let hpa = block("`chat.yaml`:").replace("APA", "HPA").replace("8000", "0");
    let whole: Value = serde_json::from_str(&shown(&hpa, Format::Json)).unwrap();
    assert!(!whole["notes"].to_string().contains("metricsSources"));
}

#[test]
fn a_target_that_no_controller_can_scale_is_noted() {
    let notes = |reference: &str| -> Vec<String> {
        let snapshot =
            block("`chat.yaml`:").replace("apiVersion: apps/v1, kind: Deployment", reference);
        let mut whole: Value = serde_json::from_str(&shown(&snapshot, Format::Json)).unwrap();
        let notes: Vec<String> = serde_json::from_value(whole["notes"].take()).unwrap();
        let notes = notes.into_iter();
        notes.filter(|note| !note.contains("scale-down-tolerance")).collect()
    };
    for served in
        ["apiVersion: apps/v1, kind: ReplicaSet", "apiVersion: example.com/v1, kind: Fleet"]
    {
        assert_eq!(notes(served), Vec::<String>::new(), "{served}");
    }
    let other = "apiVersion and kind of an object that has a scale subresource";
    let unread = "; AbleToScale will be False (FailedGetScale)";
    for (reference, expected) in [
        (
            "apiVersion: apps/v1, kind: DaemonSet",
            format!("\"apps/v1\" has no DaemonSet that can be scaled; write {other}{unread}"),
        ),
        (
            "apiVersion: v1, kind: ConfigMap",
            format!("\"v1\" has no ConfigMap that can be scaled; write {other}{unread}"),
        ),
        (
            "kind: Deployment",
            format!("must be set; write apps/v1{unread}"),
        ),
        (
            "apiVersion: apps/v2, kind: Deployment",
            "\"apps/v2\" has no Deployment that can be scaled; write apps/v1; AbleToScale will be False \
             (FailedUpdateScale)"
                .to_owned(),
        ),
    ] {
        let start = "chat.yaml: prod/chat: spec.scaleTargetRef.apiVersion: ";
        assert_eq!(notes(reference), [format!("{start}{expected}")]);
    }
}

#[test]
fn of_two_objects_on_a_target_the_oldest_is_planned_and_both_say_so() {
    let first = block("`chat.yaml`:");
    let (head, entry) = first.split_once("podAutoscalers:\n").unwrap();
    let of = |name: &str, created: &str| {
        let named = format!("name: {name}\n      creationTimestamp: \"{created}\"\n");
        entry.replacen("name: chat\n", &named, 1)
    };
    let (young, old) = (of("young", "2026-02-02T00:00:00Z"), of("old", "2026-02-01T00:00:00Z"));
    let both = format!("{head}podAutoscalers:\n{young}{old}");
    let whole: Value = serde_json::from_str(&shown(&both, Format::Json)).unwrap();
    let (young, old) =
        (&whole["podAutoscalers"]["prod/young"], &whole["podAutoscalers"]["prod/old"]);
    assert_eq!(old["desired"], 6);
    assert_eq!(old["reason"], "apa above target");
    assert!(old["scaledBy"].is_null());
    let why = "Deployment prod/chat is scaled by PodAutoscaler prod/old; remove one of them";
    assert_eq!(young["reason"], why);
    assert_eq!(young["scaledBy"], "PodAutoscaler prod/old");
    assert_eq!(young["desired"], 4);
    assert_eq!(young["action"], "no-change");
    assert!(young["bounds"].is_null() && young["steps"].as_array().unwrap().is_empty());
    let shared = "chat.yaml: prod/old: Deployment prod/chat is also named by PodAutoscaler prod/young; this object \
                  scales it, remove the others";
    let notes = whole["notes"].as_array().unwrap();
    assert!(notes.contains(&shared.into()), "{notes:?}");
    let table = shown(&both, Format::Table);
    let lines: Vec<&str> = table.lines().take(3).collect();
    assert!(lines[1].starts_with("prod/young") && lines[1].ends_with(why), "{table}");
    // A loser has no steps.
    assert!(lines[2].starts_with("prod/old"), "{table}");
}

#[test]
fn a_value_without_its_quotes_is_noted() {
    let notes = |to: &str| -> Value {
        let snapshot = block("`chat.yaml`:").replace("\"1.5\"", to);
        let mut whole: Value = serde_json::from_str(&shown(&snapshot, Format::Json)).unwrap();
        whole["notes"].take()
    };
    let as_ever = notes("\"1.5\"");
    assert_eq!(as_ever.as_array().unwrap().len(), 1);
    let mut expected = as_ever.clone();
    let note = "chat.yaml: podAutoscalers[0].object.metadata.annotations.autoscaling.aibrix.ai/max-scale-up-rate: \
                invalid type: floating point `1.5`, expected a string; write it in quotes";
    expected.as_array_mut().unwrap().push(note.into());
    assert_eq!(notes("1.5"), expected);
}

#[test]
fn what_the_settings_rule_out_is_noted() {
    let notes = |host: &str, settings: &str| {
        let endpoint = format!("metricSourceType: external, endpoint: \"{host}:8080\"");
        let values = "pods: {chat-a: 25, chat-b: {value: 19, age: 12s}, chat-c: {state: failed}}";
        let mut snapshot = block("`chat.yaml`:").to_owned();
        for (from, to) in [
            ("metricSourceType: pod", endpoint.as_str()),
            ("port: \"8000\", ", ""),
            (values, "total: 20"),
            ("scale-down-tolerance: \"2\"", "scale-down-tolerance: \"0.2\""),
        ] {
            assert!(snapshot.contains(from), "{from}");
            snapshot = snapshot.replace(from, to);
        }
        let arguments =
            PlanFlags { snapshot: Some("chat.yaml".to_owned()), ..how(Format::Json, false) };
        let text = answer(&snapshot, settings, &arguments).unwrap();
        let mut whole: Value = serde_json::from_str(&text).unwrap();
        serde_json::from_value::<Vec<String>>(whole["notes"].take()).unwrap_or_default()
    };
    let other = "POD_AUTOSCALER_ENDPOINT_HOSTS: metrics.team.example";
    let endpoint = "chat.yaml: prod/chat: spec.metricsSources[0].endpoint: endpoint host";
    for (host, settings, expected) in [
        ("opt.prod.svc", "", None),
        ("opt.prod.svc", other, Some(endpoint)),
        ("metrics.team.example", "", Some(endpoint)),
        ("metrics.team.example", other, None),
        (
            "opt.prod.svc",
            "POD_AUTOSCALERS_ENABLED: false",
            Some("chat.yaml: podAutoscalers: a controller with these settings decides on none"),
        ),
    ] {
        let found = notes(host, settings);
        assert_eq!(found.len(), usize::from(expected.is_some()), "{found:?}");
        let is_expected = |note: &String| expected.is_some_and(|start| note.starts_with(start));
        assert!(found.iter().all(is_expected), "{host} {settings}: {found:?}");
    }
}

#[test]
fn the_explanation_of_one_object_ends_with_its_notes() {
    let last = |snapshot: &str| {
        let document = SnapshotDocument::parse(snapshot).unwrap();
        let situation = document.situation(&FreshnessBands::default()).unwrap();
        let statics = read_noted("").unwrap().statics;
        let object = ObjectKey::new("prod", "chat");
        let text = explained_autoscaler(&situation, &statics, &object).unwrap();
        text.lines().last().unwrap().trim_start().to_owned()
    };
    let snapshot = block("`chat.yaml`:");
    let good = snapshot.replace("scale-down-tolerance: \"2\"", "scale-down-tolerance: \"0.2\"");
    let boundary = "note         the bounds change next at 2026-03-02T18:00:00Z";
    assert_eq!(last(&good), boundary);
    let note = "note: prod/chat: annotation autoscaling.aibrix.ai/scale-down-tolerance: \"2\" must be at least 0 and \
                below 1; write for example 0.1; 0.1 is kept";
    assert_eq!(last(snapshot), note);
}
