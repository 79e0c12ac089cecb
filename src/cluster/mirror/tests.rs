use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::{MirrorError, MirrorWriter, ObjectKey, ObjectUpdate, SyncState};
use crate::cluster::kinds::WatchedKind;
use crate::roles::Role;
use crate::state::mirrors::tests::at;
use wva_supervise::Epoch;

fn epoch(number: u64) -> Epoch {
    Epoch::for_test(Role::Watcher(WatchedKind::Pod), number)
}

fn key(text: &str) -> ObjectKey {
    let (namespace, name) = text.split_once('/').unwrap();
    ObjectKey::new(namespace, name)
}

fn keys(texts: &[&str]) -> BTreeSet<ObjectKey> {
    texts.iter().map(|text| key(text)).collect()
}

fn update(key_text: &str, before: Option<u32>, after: Option<u32>) -> ObjectUpdate<u32> {
    ObjectUpdate { key: key(key_text), before: before.map(Arc::new), after: after.map(Arc::new) }
}

fn names_of(changed: &[ObjectUpdate<u32>]) -> BTreeSet<ObjectKey> {
    changed.iter().map(|changed| changed.key.clone()).collect()
}

fn filled(objects: &[(&str, u32)]) -> MirrorWriter<u32> {
    let mirror = MirrorWriter::default();
    for (name, value) in objects {
        mirror.apply(&epoch(1), key(name), *value).unwrap();
    }
    mirror
}

#[test]
fn an_equal_projection_changes_nothing() {
    let mirror = MirrorWriter::default();
    let watcher = epoch(1);
    assert_eq!(mirror.revision(), 0);
    assert_eq!(mirror.apply(&watcher, key("a/x"), 1), Ok(Some(update("a/x", None, Some(1)))));
    assert_eq!(mirror.revision(), 1);
    assert_eq!(mirror.apply(&watcher, key("a/x"), 1), Ok(None));
    assert_eq!(mirror.revision(), 1);
    assert_eq!(mirror.apply(&watcher, key("a/x"), 2), Ok(Some(update("a/x", Some(1), Some(2)))));
    assert_eq!(mirror.get(&key("a/x")).as_deref(), Some(&2));
    assert_eq!(mirror.delete(&watcher, &key("a/x")), Ok(Some(update("a/x", Some(2), None))));
    assert_eq!(mirror.delete(&watcher, &key("a/x")), Ok(None));
    assert_eq!(mirror.revision(), 3);
    assert!(mirror.all().is_empty());
}

#[test]
fn a_fresh_list_replaces_everything_at_once_and_returns_the_differences() {
    let mirror = filled(&[("a/same", 1), ("a/changed", 1), ("b/gone", 1)]);
    let same = mirror.get(&key("a/same")).unwrap();
    let mut list = mirror.relist();
    for (name, value) in [("a/same", 1), ("a/changed", 2), ("c/new", 1)] {
        list.add(key(name), value).unwrap();
    }
    assert!(!mirror.synced());
    assert_eq!(mirror.all().len(), 3);
    assert!(mirror.get(&key("b/gone")).is_some(), "readable until the end of the list");

    let changed = mirror.replace(&epoch(1), list).unwrap();
    let expected = [
        update("a/changed", Some(1), Some(2)),
        update("c/new", None, Some(1)),
        update("b/gone", Some(1), None),
    ];
    assert_eq!(changed, expected);
    assert!(mirror.synced());
    assert_eq!(mirror.get(&key("b/gone")), None);
    assert!(Arc::ptr_eq(&same, &mirror.get(&key("a/same")).unwrap()));
}

#[test]
fn an_equal_list_does_not_move_the_revision() {
    let mirror = filled(&[("a/x", 1)]);
    let before = mirror.revision();
    let mut list = mirror.relist();
    list.add(key("a/x"), 1).unwrap();
    assert_eq!(mirror.replace(&epoch(1), list), Ok(Vec::new()));
    assert_eq!(mirror.revision(), before);
}

#[test]
fn a_list_that_never_ends_has_no_effect() {
    let mirror = filled(&[("a/x", 1)]);
    let mut list = mirror.relist();
    list.add(key("a/y"), 1).unwrap();
    drop(list);
    assert_eq!(mirror.get(&key("a/y")), None);
    assert!(!mirror.synced());
}

#[test]
fn an_older_incarnation_writes_nothing_any_more() {
    let mirror = MirrorWriter::default();
    let (old, new) = (epoch(1), epoch(2));
    mirror.apply(&old, key("a/x"), 1).unwrap();
    mirror.apply(&new, key("a/x"), 2).unwrap();

    assert!(matches!(mirror.apply(&old, key("a/x"), 3), Err(MirrorError::Superseded(_))));
    assert!(mirror.delete(&old, &key("a/x")).is_err());
    assert!(mirror.replace(&old, mirror.relist()).is_err());
    assert!(mirror.kind_absent(&old).is_err());
    assert!(mirror.touch(&old, at(1)).is_err());
    assert_eq!(mirror.get(&key("a/x")).as_deref(), Some(&2));
    assert_eq!(mirror.last_contact(), None);
}

#[test]
fn a_kind_that_goes_takes_its_objects_along() {
    let mirror = filled(&[("a/x", 1), ("b/y", 1)]);
    assert_eq!(mirror.sync(), SyncState::Never);
    let gone = mirror.kind_absent(&epoch(1)).unwrap();
    assert_eq!(names_of(&gone), keys(&["a/x", "b/y"]));
    assert_eq!(mirror.sync(), SyncState::KindAbsent);
    assert!(mirror.synced() && mirror.all().is_empty());
    assert_eq!(mirror.kind_absent(&epoch(1)), Ok(Vec::new()));
}

#[test]
fn one_object_too_many_is_refused_by_name_and_the_rest_goes_on() {
    let mirror = MirrorWriter::with_capacity(2);
    let watcher = epoch(1);
    mirror.apply(&watcher, key("a/x"), 1).unwrap();
    mirror.apply(&watcher, key("a/y"), 1).unwrap();
    let error = mirror.apply(&watcher, key("a/z"), 1).unwrap_err();
    assert!(error.to_string().starts_with("a/z is not mirrored"), "{error}");
    assert!(mirror.apply(&watcher, key("a/x"), 2).unwrap().is_some());
    assert_eq!(mirror.all().len(), 2);

    let mut list = mirror.relist();
    list.add(key("a/x"), 1).unwrap();
    list.add(key("a/y"), 1).unwrap();
    assert!(list.add(key("a/z"), 1).is_err());
    list.add(key("a/y"), 5).unwrap();
}

#[test]
fn a_namespace_is_a_range() {
    let mirror = filled(&[("a/x", 1), ("aa/x", 2), ("b/x", 3), ("b/y", 4), ("c/x", 5)]);
    let names = |namespace| {
        mirror
            .in_namespace(namespace)
            .iter()
            .map(|(key, value)| (key.to_string(), **value))
            .collect::<Vec<_>>()
    };
    assert_eq!(names("a"), [("a/x".to_owned(), 1)]);
    assert_eq!(names("b"), [("b/x".to_owned(), 3), ("b/y".to_owned(), 4)]);
    assert_eq!(names("bb"), []);
    assert_eq!(names(""), []);
}

#[test]
fn contact_is_noted_without_a_change() {
    let mirror = filled(&[("a/x", 1)]);
    let before = mirror.revision();
    assert_eq!(mirror.last_contact(), None);
    mirror.touch(&epoch(1), at(7)).unwrap();
    assert_eq!(mirror.last_contact(), Some(at(7)));
    assert_eq!(mirror.revision(), before);
}

fn content() -> impl Strategy<Value = Vec<(u8, u8)>> {
    prop::collection::vec((0_u8..20, 0_u8..3), 0..30)
}

proptest! {
    /// Whatever was known before and whatever the list says: afterwards the mirror is the list, and
    /// exactly the differences were returned.
    #[test]
    fn after_a_list_the_mirror_is_the_list(before in content(), after in content()) {
        let name = |number: u8| ObjectKey::new("n", number.to_string());
        let mirror = MirrorWriter::default();
        for (number, value) in before {
            mirror.apply(&epoch(1), name(number), value).unwrap();
        }
        let old = mirror.all();
        let mut list = mirror.relist();
        for (number, value) in after {
            list.add(name(number), value).unwrap();
        }
        let expected = list.objects.clone();
        let changed = mirror.replace(&epoch(1), list).unwrap();

        let new = mirror.all();
        prop_assert_eq!(&new, &expected.into_iter().collect::<Vec<_>>());
        for number in 0..20 {
            let find = |all: &[(ObjectKey, Arc<u8>)]| {
                all.iter().find(|(key, _)| *key == name(number)).map(|(_, value)| **value)
            };
            let is_named = changed.iter().any(|changed| changed.key == name(number));
            prop_assert_eq!(find(&old) != find(&new), is_named);
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "an index reads any projection")]
fn tens(value: &u32) -> Vec<ObjectKey> {
    let tens = (*value >= 10).then(|| ObjectKey::new("tens", (value / 10).to_string()));
    tens.into_iter().collect()
}

fn naming(mirror: &MirrorWriter<u32>, tens: &str) -> Vec<String> {
    let named = ObjectKey::new("tens", tens);
    mirror.naming(&named).into_iter().map(|(key, _)| key.to_string()).collect()
}

#[test]
fn objects_are_found_by_what_they_name_through_every_kind_of_write() {
    let mirror = MirrorWriter::indexed(tens);
    let watcher = epoch(1);
    for (name, value) in [("a/x", 10), ("a/y", 11), ("a/z", 3)] {
        mirror.apply(&watcher, key(name), value).unwrap();
    }
    assert_eq!(naming(&mirror, "1"), ["a/x", "a/y"]);

    mirror.apply(&watcher, key("a/x"), 20).unwrap();
    assert_eq!(
        (naming(&mirror, "1"), naming(&mirror, "2")),
        (vec!["a/y".to_owned()], vec!["a/x".to_owned()])
    );

    mirror.delete(&watcher, &key("a/y")).unwrap();
    assert!(naming(&mirror, "1").is_empty());

    let mut list = mirror.relist();
    list.add(key("b/w"), 12).unwrap();
    mirror.replace(&watcher, list).unwrap();
    assert_eq!((naming(&mirror, "1"), naming(&mirror, "2")), (vec!["b/w".to_owned()], Vec::new()));

    mirror.kind_absent(&watcher).unwrap();
    assert!(naming(&mirror, "1").is_empty());
}
