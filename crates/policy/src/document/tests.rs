use std::time::Duration;

use proptest::prelude::*;

use super::{DocumentError, Situation, SnapshotDocument};
use crate::learned::Learned;
use crate::signal::FreshnessBands;
use crate::snapshot::{GpuInventory, TargetView};
use crate::tests::fleet::world;
use crate::tests::world::{at, settings};
use crate::units::Gpus;
use crate::{learn, plan};

const SMALL: &str = "
version: 1
variants:
- namespace: ns
  name: a
  model: m
  target: {current: 2}
  pods:
  - name: a-1
    signals: {kvUsage: 0.5, queueLength: {state: knownZero}}
  - name: a-2
    ready: false
    signals: {kvUsage: {state: failed}, queueLength: {state: failed, why: tooOld}}
";

fn read(text: &str) -> Result<Situation, DocumentError> {
    SnapshotDocument::parse(text)?.situation(&FreshnessBands::default())
}

#[test]
fn a_small_document_needs_little_and_the_rest_is_not_known() {
    let situation = read(SMALL).unwrap();
    let view = situation.snapshot.variants.values().next().unwrap();
    let TargetView::Resolved(target) = &view.target else {
        panic!("{view:?}");
    };
    assert_eq!((target.current.0, target.ready.0), (2, 1));
    assert_eq!(view.desired, None);
    let pods = situation.snapshot.metrics.models.values().next().unwrap();
    let first = &pods["a-1"];
    assert_eq!(first.queue_length.map(|sample| sample.value), Some(0.0));
    assert_eq!(first.kv_capacity, None);
    let second = &pods["a-2"];
    assert_eq!(second.kv_usage, None);
    let too_old = second.queue_length.unwrap().age;
    assert_eq!(too_old, FreshnessBands::default().unavailable);
    assert_eq!(situation.learned, None);
    assert_eq!(situation.snapshot.gpus, None);
}

#[test]
fn a_key_that_stands_twice_is_named_in_yaml_and_json() {
    let json = |types: &str| {
        format!(r#"{{"version": 1, "variants": [], "inventory": {{"types": {{{types}}}}}}}"#)
    };
    let yaml = |gpus: &str| SMALL.replace("model: m", &format!("model: m\n  gpus: {{{gpus}}}"));
    let h100 = r#""H100": {"total": 8}"#;
    for (once, twice, path) in wva_base::cases! {
        (json(h100), json(&format!("{h100}, {h100}")), "inventory.types: \"H100\""),
        (yaml("nvidia.com/gpu: 8"), yaml("nvidia.com/gpu: 8, 'nvidia.com/gpu': 1"),
         "variants[0].gpus: \"nvidia.com/gpu\""),
        (format!("{SMALL}context: {{1: a, 2: a}}"), format!("{SMALL}context: {{1: a, '1': b}}"), "context: \"1\""),
    } {
        assert!(read(&once).is_ok(), "{once}");
        let error = read(&twice).unwrap_err().to_string();
        let expected = format!("{path} stands twice; write it once at line ");
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn a_mark_of_the_byte_order_is_no_part_of_a_document() {
    let marked = |text: &str| read(&format!("\u{feff}{text}"));
    assert_eq!(marked(SMALL.trim_start()), read(SMALL));
    let json = r#"{"version": 1, "variants": []}"#;
    assert_eq!(marked(json), read(json));
}

#[test]
fn an_inventory_is_one_of_three_things() {
    let with = |inventory: &str| read(&format!("{SMALL}inventory: {inventory}\n"));
    let types = with("{types: {H100: {total: 8, used: 2}}}").unwrap();
    let Some(GpuInventory::Types { limits, used }) = types.snapshot.gpus.as_deref() else {
        panic!("{types:?}");
    };
    assert_eq!((limits["H100"], used["H100"]), (Gpus(8), Gpus(2)));
    assert!(with("{unknown: no permission}").is_ok());
    assert!(with("{nodes: {}, pods: []}").is_ok());
    for contradiction in ["{}", "{nodes: {}}", "{types: {}, unknown: x}"] {
        assert!(with(contradiction).is_err(), "{contradiction}");
    }
}

/// What to write instead of what, the path of the fault, and a part of its remedy; `\n` is a new line.
const FAULTS: &str = r"
version: 1 | version: 2 | version | write 1
kvUsage: 0.5 | kvUsage: 50 | variants[0].pods[0].signals.kvUsage | write 0.5
kvUsage: 0.5 | kvUsage: -1 | variants[0].pods[0].signals.kvUsage | at least 0
kvUsage: 0.5 | kvUsage: .nan | variants[0].pods[0].signals.kvUsage | leave
kvUsage: 0.5 | interTokenLatency: 700 | signals.interTokenLatency | 0.7 for 700 ms
kvUsage: 0.5 | interTokenLatency: 25 | signals.interTokenLatency | 25 s is longer than any engine takes for one token; write 0.025 for 25 ms
kvUsage: 0.5 | timeToFirstToken: 700 | signals.timeToFirstToken | 0.7 for 700 ms
kvUsage: 0.5 | interTokenLatency: 0 | signals.interTokenLatency | leave the signal out
kvUsage: 0.5 | timeToFirstToken: {state: knownZero} | signals.timeToFirstToken | leave the signal out
kvUsage: 0.5 | kvUsage: 0.5, ranks: {'0': {kvUsage: 0.6}, '1': {kvUsage: 0.8}} | variants[0].pods[0].signals.kvUsage | write the mean
kvUsage: 0.5 | ranks: {'0': {kvUsage: 6}} | variants[0].pods[0].signals.ranks.0.kvUsage | write 0.06
{current: 2} | {current: 2, surge: 3} | variants[0].target | write at most 2
{current: 2} | {current: 2, why: x} | variants[0].target.why | drop it
kvUsage: 0.5 | kvUsage: {age: 3s} | signals.kvUsage | write one
{state: knownZero} | {state: knownZero, value: 2} | queueLength | known
{state: knownZero} | {state: stale, value: 2} | queueLength | at least 60s
{state: knownZero} | {state: known, value: 2, age: 2m} | queueLength | stale
name: a-2 | name: a-1 | variants[0].pods[1].name | own name
{current: 2} | {ready: 2} | variants[0].target | replicas that exist
{current: 2} | {kind: Pod, current: 2} | variants[0].target.kind | Deployment
{current: 2} | {kind: Rollout, apiVersion: a/b/c, current: 2} | variants[0].target.apiVersion | argoproj.io/v1alpha1
{current: 2} | {kind: Roll-out, apiVersion: argoproj.io/v1alpha1, current: 2} | variants[0].target.kind | like Rollout
namespace: ns | namespace: n/s | variants[0].namespace | write a valid name
  target: |   gpus: {gpu: 2}\n  target: | variants[0].gpus.gpu | nvidia.com/gpu
  target: |   bounds: {max: 2147483648}\n  target: | variants[0].bounds.max | 2147483648 replicas are more than there can be; write at most 2147483647
  target: |   bounds: {min: 4294967295, max: 2147483647}\n  target: | variants[0].bounds.min | write at most 2147483647
{current: 2} | {current: 2147483648} | variants[0].target.current | 2147483648 replicas are more than there can be; write at most 2147483647 (ns/a)
{current: 2} | {current: 2, ready: 4294967295} | variants[0].target.ready | write at most 2147483647 (ns/a)
  target: |   desired: 2147483648\n  target: | variants[0].desired | write at most 2147483647 (ns/a)
version: 1 | version: 1\ncollection: {ago: 48h} | collection.ago | at most
version: 1 | version: 1\nlearned: {version: 0} | learned.version | leave learned out
version: 1 | version: 1\nmodels: [{namespace: x, model: m, router: {}}] | models[0] | m|ns
";

#[test]
fn every_fault_has_a_path_and_a_remedy() {
    for row in FAULTS.trim_matches('\n').lines() {
        let row = row.replace("\\n", "\n");
        let columns: Vec<&str> = row.split(" | ").collect();
        let [from, to, path, remedy] = columns[..] else {
            panic!("{row}");
        };
        let text = SMALL.replacen(from, to, 1);
        assert_ne!(text, SMALL);
        let Err(DocumentError::Faults(faults)) = read(&text) else {
            panic!("{to}: {:?}", read(&text));
        };
        let said = faults[0].to_string();
        assert!(said.contains(path) && said.contains(remedy), "{to}: {said}");
    }
}

#[test]
fn a_replica_may_say_the_mean_of_its_ranks_with_them() {
    for (kv, ranks) in [
        (0.7, "'0': {kvUsage: 0.6}, '1': {kvUsage: 0.8}"),
        (0.5, "'0': {kvUsage: 0.5}"),
        // One of them does not say.
        (0.5, "'0': {kvUsage: 0.6}, '1': {queueLength: 0}"),
        (0.5, ""),
    ] {
        let both = format!("kvUsage: {kv}, ranks: {{{ranks}}}");
        let text = SMALL.replacen("kvUsage: 0.5", &both, 1);
        assert!(read(&text).is_ok(), "{both}");
    }
}

#[test]
fn of_many_faults_the_first_are_shown_and_the_rest_counted() {
    let message = |pods: usize| {
        let nameless = "\n  - {name: '', age: 2h, signals: {}}".repeat(pods);
        let pods = format!("pods:{nameless}");
        let start = SMALL.split("pods:").next().unwrap();
        read(&format!("{start}{pods}")).unwrap_err().to_string()
    };
    // One that is no name, and for every further one that it stands twice, too.
    let few = message(2);
    assert_eq!(few.lines().count(), 3, "{few}");
    let many = message(1_000);
    assert_eq!(many.lines().count(), 51);
    assert_eq!(many.lines().last(), Some("and 1949 more; mend these first"));
}

#[test]
fn a_message_is_short_whatever_it_quotes() {
    let long = "x".repeat(100_000);
    for (from, to) in [
        ("name: a-2", format!("name: {long}")),
        ("namespace: ns", format!("namespace: {long}")),
        ("{current: 2}", format!("{{current: 2, kind: {long}}}")),
        ("{current: 2}", format!("{{current: {long}}}")),
        ("kvUsage: 0.5", format!("kvUsage: {{state: {long}}}")),
        ("version: 1", format!("version: 1\nlearned: {{version: 2, at_zero: {long}}}")),
    ] {
        let error = read(&SMALL.replacen(from, &to, 1)).unwrap_err().to_string();
        let longest = error.lines().map(str::len).max();
        assert!(longest < Some(1_000), "{from}: {longest:?}");
        assert!(error.contains("xxx"), "{error}");
    }
}

#[test]
fn a_form_that_is_not_documented_is_named_with_its_place() {
    for (from, to, said) in wva_base::cases! {
        ("kvUsage: 0.5", "kvUsge: 0.5", "variants[0].pods[0].signals: unknown field `kvUsge`"),
        ("kvUsage: 0.5", "kvUsage: lots", "a number, or a mapping"),
        ("kvUsage: 0.5", "kvUsage: {value: 0.5, age: 30}", "with its unit, like 30s"),
        ("kvUsage: 0.5", "kvUsage: {value: 0.5, age: 30 parsecs}", "write for example 30s"),
        ("{current: 2}", "{current: -2}", "variants[0].target.current"),
        ("{current: 2}", "{current: 4294967296}", "variants[0].target.current: invalid value: integer `4294967296`; \
          write a whole number from 0 to 2147483647 at line 7 column "),
        ("{current: 2}", "{current: 4294967296}", " (ns/a)"),
        ("model: m", "model: m\n  cost: cheap", "like 10.0"),
        ("version: 1", "version: [", "line"),
    } {
        let text = SMALL.replacen(from, to, 1);
        let Err(DocumentError::Form(why)) = read(&text) else {
            panic!("{to}: {:?}", read(&text));
        };
        assert!(why.contains(said), "{to}: {why}");
    }
}

/// What the controller writes is read whatever names hold, and to the last digit.
#[test]
fn json_is_read_as_json() {
    let name = format!("m{}", "[".repeat(100));
    let text = SMALL.replacen("model: m", &format!("model: '{name}'"), 1).replacen(
        "0.5",
        "0.12345678901234567",
        1,
    );
    let error = read(&text).unwrap_err().to_string();
    assert!(error.starts_with("brackets are nested deeper"), "{error}");
    let document: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
    let situation = read(&serde_json::to_string(&document).unwrap()).unwrap();
    let (model, pods) = situation.snapshot.metrics.models.first_key_value().unwrap();
    assert_eq!(*model.model, *name);
    let usage = pods["a-1"].kv_usage.unwrap().value;
    assert_eq!(usage.to_bits(), 0.123_456_789_012_345_67_f64.to_bits());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_snapshot_that_was_written_down_gives_the_same_plan(world in world(), lag in 0..40_u64) {
        let now = at(2_000);
        let mut snapshot = world.snapshot(now);
        let collected = at(2_000 - lag);
        std::sync::Arc::make_mut(&mut snapshot.metrics).collected = Some(collected);
        let learned = learn(&snapshot, &Learned::default(), &settings(), now);
        let made = plan(&snapshot, &learned, &settings(), 1, now);

        let written = SnapshotDocument::of(&snapshot, &learned, now);
        let json = serde_json::to_string(&written).unwrap();
        let yaml = serde_yaml::to_string(&written).unwrap();
        for text in [json, yaml] {
            let read = SnapshotDocument::parse(&text).unwrap();
            prop_assert_eq!(&read, &written);
            let situation = read.situation(&settings().freshness).unwrap();
            prop_assert_eq!(situation.now, now);
            let known = learn(&situation.snapshot, &situation.learned.unwrap(), &settings(), now);
            let again = plan(&situation.snapshot, &known, &settings(), 1, now);
            prop_assert_eq!(&again, &made);
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[a-z0-9:\\[\\]{}\\n \\-,.\"]{0,200}") {
        drop(read(&text));
        drop(read(&SMALL.replacen("0.5", &text, 1)));
    }

    #[test]
    fn ages_survive_to_the_nanosecond(seconds in 0..1_000_000_u64, nanos in 0..1_000_000_000_u32) {
        let span = super::Span(Duration::new(seconds, nanos));
        let text = serde_json::to_string(&span).unwrap();
        prop_assert_eq!(serde_json::from_str::<super::Span>(&text).unwrap(), span);
    }
}

#[test]
fn aliases_cannot_make_it_grow_without_end() {
    let part = "x, ".repeat(1_000);
    let with = |uses: usize| {
        let uses = "*a, ".repeat(uses);
        read(&format!("{SMALL}context: {{a: &a [{part}], b: [{uses}]}}\n"))
    };
    assert!(with(2).is_ok());
    let error = with(1_000).unwrap_err().to_string();
    assert!(error.contains("too large"), "{error}");
}

#[test]
fn a_signal_of_any_kind_can_be_too_old_and_is_read_again_with_its_age() {
    let bands = FreshnessBands::default();
    let text = "
version: 1
variants:
- namespace: ns
  name: a
  model: m
  target: {current: 1, ready: 5}
  pods:
  - {name: p, signals: {kvCapacity: {state: failed, why: tooOld}, ranks: {r: {kvCapacity: {state: failed, why: tooOld}}}}}
";
    let situation = read(text).unwrap();
    let pods = situation.snapshot.metrics.models.values().next().unwrap();
    assert_eq!(pods["p"].kv_capacity.unwrap().age, bands.unavailable);
    let ranks = pods["p"].ranks.values().next().unwrap();
    assert_eq!(ranks.kv_capacity.unwrap().age, bands.unavailable);
    let written = SnapshotDocument::of(&situation.snapshot, &Learned::default(), situation.now);
    let again = read(&serde_json::to_string(&written).unwrap()).unwrap();
    assert_eq!(again.snapshot, situation.snapshot);
}

#[test]
fn a_sample_that_is_no_number_is_no_series_that_is_missing() {
    for (why, is_there) in [("absent", false), ("invalid", true)] {
        let failed = format!("{{state: failed, why: {why}}}");
        let signals = format!("arrivalRate: {failed}, ranks: {{'0': {{kvUsage: {failed}}}}}");
        let text = SMALL.replacen("kvUsage: 0.5", &format!("kvUsage: 0.5, {signals}"), 1);
        let situation = read(&text).unwrap();
        let mut models = situation.snapshot.metrics.models.values();
        let pod = models.next().unwrap().values().next().unwrap();
        let rate = pod.arrival_rate.map(|sample| sample.value.is_nan());
        assert_eq!(rate, is_there.then_some(true), "{why}");
        let written = SnapshotDocument::of(&situation.snapshot, &Learned::default(), situation.now);
        let json = serde_json::to_string(&written).unwrap();
        assert_eq!(json.contains("\"invalid\""), is_there, "{why}");
        assert_eq!(SnapshotDocument::parse(&json).unwrap(), written);
    }
}
