//! InferencePools of all groups.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::project;
use crate::api::inference_pool::InferencePool;
use crate::cluster::kinds::WatchedKind;
use crate::cluster::mirror::{MirrorWriter, ObjectKey};
use crate::cluster::project::pool::{InferencePools, PoolObject};
use crate::policy::object::Lifecycle;
use crate::roles::Role;
use crate::settings::pool_group::PoolGroup;
use wva_supervise::Epoch;

#[derive(Deserialize)]
struct PoolVectors {
    projected: Vec<PoolVector>,
    lookups: Vec<LookupVector>,
}

#[derive(Deserialize)]
struct PoolVector {
    id: String,
    v1: Option<Value>,
    v1alpha2: Option<Value>,
    selector: BTreeMap<Arc<str>, Arc<str>>,
    picker: Option<Arc<str>>,
}

#[derive(Deserialize)]
struct LookupVector {
    id: String,
    pools: BTreeMap<String, BTreeMap<Arc<str>, Arc<str>>>,
    namespace: String,
    labels: BTreeMap<Arc<str>, Arc<str>>,
    expect: Option<String>,
}

#[test]
fn pools_of_both_groups_are_read_as_the_vectors_say() {
    let vectors: PoolVectors = vectors!("pool.yaml");
    assert!(vectors.projected.len() > 3);
    for vector in vectors.projected {
        let metadata = json!({"namespace": "ns1", "name": "p"});
        let specs = [&vector.v1, &vector.v1alpha2].into_iter().flatten();
        let [spec] = specs.collect::<Vec<_>>()[..] else {
            panic!("{}: one group each", vector.id);
        };
        let object = json!({"metadata": metadata, "spec": spec});
        let pool = project::<InferencePool>(&object);
        let expected = PoolObject {
            namespace: Arc::from("ns1"),
            name: Arc::from("p"),
            selector: vector.selector,
            picker: vector.picker,
            lifecycle: Lifecycle::Live,
        };
        assert_eq!(pool, expected, "{}", vector.id);
    }
}

fn pool(key: &ObjectKey, selector: BTreeMap<Arc<str>, Arc<str>>) -> PoolObject {
    PoolObject {
        namespace: Arc::clone(&key.namespace),
        name: Arc::clone(&key.name),
        selector,
        picker: None,
        lifecycle: Lifecycle::Live,
    }
}

type PoolWriters = [MirrorWriter<PoolObject>; PoolGroup::ALL.len()];

fn pools() -> (PoolWriters, InferencePools, Epoch) {
    let writers = PoolWriters::default();
    let pools = InferencePools {
        group: PoolGroup::default(),
        mirrors: writers.each_ref().map(MirrorWriter::reader),
    };
    let role = Role::Watcher(WatchedKind::InferencePoolV1);
    (writers, pools, Epoch::for_test(role, 1))
}

#[test]
fn pools_are_looked_up_as_the_vectors_say() {
    let vectors: PoolVectors = vectors!("pool.yaml");
    assert!(vectors.lookups.len() > 5);
    for vector in vectors.lookups {
        let (writers, pools, epoch) = pools();
        for (index, (name, selector)) in vector.pools.into_iter().enumerate() {
            let (namespace, name) = name.split_once('/').unwrap();
            let key = ObjectKey::new(namespace, name);
            let view = pool(&key, selector);
            // The groups take turns: where a pool comes from makes no difference.
            writers[index % writers.len()].apply(&epoch, key, view).unwrap();
        }
        let found = pools.selecting(&vector.namespace, &vector.labels);
        let found = found.map(|pool| format!("{}/{}", pool.namespace, pool.name));
        assert_eq!(found, vector.expect, "{}", vector.id);
    }
}

#[test]
fn of_a_pool_in_several_groups_the_stable_one_counts() {
    let ([v1, _, llm_d, v1alpha2], pools, epoch) = pools();
    let key = ObjectKey::new("ns1", "p");
    let labels = |text: &str| BTreeMap::from([(Arc::from("app"), Arc::from(text))]);
    let old = pool(&key, labels("old"));
    v1alpha2.apply(&epoch, key.clone(), old).unwrap();
    assert_eq!(pools.get(&key).unwrap().selector, labels("old"));
    assert!(pools.selecting("ns1", &labels("old")).is_some());

    let next = pool(&key, labels("next"));
    llm_d.apply(&epoch, key.clone(), next).unwrap();
    assert_eq!(pools.get(&key).unwrap().selector, labels("next"));
    let all = pools.all();
    assert_eq!(all[&key].selector, labels("next"));
    assert!(pools.selecting("ns1", &labels("old")).is_none());

    let new = pool(&key, labels("new"));
    v1.apply(&epoch, key.clone(), new).unwrap();
    assert_eq!(pools.get(&key).unwrap().selector, labels("new"));
    assert!(pools.selecting("ns1", &labels("old")).is_none());

    let mut going = pool(&key, labels("new"));
    going.lifecycle = Lifecycle::Deleting;
    v1.apply(&epoch, key.clone(), going).unwrap();
    assert_eq!(pools.get(&key), None);
    assert!(pools.selecting("ns1", &labels("new")).is_none());
}
