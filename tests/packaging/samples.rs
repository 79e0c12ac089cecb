//! The samples of `PodAutoscaler`: each is an object that the controller acts on.

use std::collections::BTreeSet;

use serde::Deserialize as _;
use serde_json::{Value, json};
use wva::policy::pod_autoscaler::PodAutoscalerObject;

use super::{path, text, yaml};

const FOLDER: &str = "config/samples/pod-autoscalers";

fn read(mut sample: Value) -> PodAutoscalerObject {
    let namespace = sample["metadata"]["namespace"].take();
    assert_eq!(namespace, Value::Null, "a sample goes into any namespace");
    sample["metadata"]["namespace"] = json!("default");
    serde_json::from_value(sample).unwrap()
}

#[test]
fn every_sample_of_a_pod_autoscaler_is_valid_and_listed() {
    let listed = yaml(&format!("{FOLDER}/kustomization.yaml"));
    let listed: BTreeSet<&str> =
        (listed["resources"].as_array().unwrap().iter()).filter_map(Value::as_str).collect();
    let mut found = BTreeSet::new();
    let (mut strategies, mut kinds, mut names) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for entry in std::fs::read_dir(path(FOLDER)).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        if file == "kustomization.yaml" {
            continue;
        }
        let source = text(&format!("{FOLDER}/{file}"));
        assert!(source.starts_with("# "), "{file}: says what it shows");
        for document in serde_yaml::Deserializer::from_str(&source) {
            let object = read(Value::deserialize(document).unwrap());
            let policy = object.check().unwrap_or_else(|why| panic!("{file}: {why}"));
            assert_eq!(policy.faults, [], "{file}");
            assert!(names.insert(object.metadata.name), "{file}: one name twice");
            strategies.insert(policy.strategy.as_str());
            let sources = object.spec.metrics_sources.into_iter();
            kinds.extend(sources.map(|source| source.metric_source_type));
        }
        found.insert(file);
    }
    let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    assert_eq!(found, listed);
    assert_eq!(strategies, BTreeSet::from(["APA", "HPA", "KPA"]));
    let kinds: BTreeSet<&str> = kinds.iter().map(|kind| &**kind).collect();
    assert_eq!(kinds, BTreeSet::from(["external", "pod", "resource"]));
}

#[test]
fn a_sample_that_is_wrong_would_be_noticed() {
    let mut sample = yaml(&format!("{FOLDER}/kpa.yaml"));
    assert!(read(sample.clone()).check().is_ok());
    sample["spec"]["metricsSources"][0]["targetValue"] = json!("8m");
    assert!(read(sample).check().is_err());
}
