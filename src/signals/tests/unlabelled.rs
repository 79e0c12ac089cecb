//! Series that do not say which pod they are of are left out, and their models are noted.

use std::collections::BTreeSet;

use super::collect::{moment, run, settings};
use super::stub::Stub;
use crate::signals::query::QueryName;

const KV: &str = "vllm:kv_cache_usage_perc";

#[test]
fn the_models_of_series_without_namespace_or_pod_are_noted() {
    let mut stub = Stub::new();
    for labels in wva_base::cases! {
        [("namespace", "ns"), ("model_name", "whole"), ("pod", "p")],
        [("namespace", "ns"), ("model_name", "no-pod"), ("pod", "")],
        [("namespace", ""), ("model_name", "no-namespace"), ("pod", "p")],
        [("namespace", "ns"), ("model_name", ""), ("pod", "")],
    } {
        let labels: Vec<_> = labels.into_iter().chain([("source", KV)]).collect();
        stub.push(QueryName::KvUsage, &labels, 0.5);
    }
    let snapshot = run(&stub, &settings()).into_snapshot(moment());
    let names =
        |names: &[&str]| -> BTreeSet<_> { names.iter().map(|name| (*name).into()).collect() };
    assert_eq!(snapshot.unlabelled.without_namespace, names(&["no-namespace"]));
    let without_pod = snapshot.unlabelled.without_pod;
    assert_eq!(without_pod.len(), 1);
    assert_eq!(without_pod["ns"], names(&["no-pod"]));
}
