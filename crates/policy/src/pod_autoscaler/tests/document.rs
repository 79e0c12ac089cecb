//! Autoscalers of a snapshot document.

use serde_json::Value;

use crate::document::SnapshotDocument;
use crate::pod_autoscaler::claims::TargetRivals;
use crate::pod_autoscaler::decide::decide;
use crate::signal::FreshnessBands;

const HEAD: &str = "
version: 1
time: {uptime: 1h}
variants: []
podAutoscalers:
";

fn entry(name: &str, target: &str, rest: &str) -> String {
    format!(
        "
- object:
    apiVersion: autoscaling.aibrix.ai/v1alpha1
    kind: PodAutoscaler
    metadata: {{namespace: ns, name: {name}, uid: u, resourceVersion: '5'}}
    spec:
      scalingStrategy: KPA
      maxReplicas: 4
      scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {target}}}
      metricsSources:
      - {{metricSourceType: custom, targetMetric: load, targetValue: '10'}}
      - {{metricSourceType: external, targetMetric: queue, targetValue: '10'}}
    status: {{actualScale: 1}}
  current: 1
  {rest}
"
    )
}

fn faults(entries: &[String]) -> Vec<String> {
    let text = format!("{HEAD}{}", entries.concat());
    let document = SnapshotDocument::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let written = serde_yaml::to_string(&document).unwrap();
    assert_eq!(SnapshotDocument::parse(&written).unwrap(), document);
    match document.situation(&FreshnessBands::default()) {
        Ok(situation) => {
            assert_eq!(situation.autoscalers.len(), entries.len());
            Vec::new()
        }
        Err(error) => error.to_string().lines().map(str::to_owned).collect(),
    }
}

#[test]
fn a_manifest_is_read_as_it_is_printed() {
    let rest = "
  pods: [{name: p}]
  sources: [{pods: {p: 3}}, {total: {value: 4, age: 90s}}]";
    let good = entry("a", "t", rest);
    assert_eq!(faults(&[good]), Vec::<String>::new());
}

#[test]
fn what_cannot_be_is_named_with_path_and_remedy() {
    let rest = "
  pods: [{name: p}, {name: p}, {name: q, state: pending, readyFor: 1m}]
  sources: [{pods: {p: 1.1e100}, total: 3}, {pods: {x: 1}, total: -1}, {}]
  state: {idle_since: {monotonic: {secs: 9999, nanos: 0}, wall: 0}, windows: 5}";
    let found = faults(&[entry("a", "t", rest), entry("a", "t", "")]);
    let expected = [
        "podAutoscalers[0].pods[1].name: \"p\" stands twice; give each pod its own name",
        "podAutoscalers[0].pods[2].readyFor: a pod that is not ready has been so for no time; drop it",
        "podAutoscalers[0].state.idle_since.monotonic: 9999 s after the start of the process is after now, which is 3600 s after it; write less, or the right time.uptime",
        "podAutoscalers[0].state: windows: invalid type: integer `5`, expected a map; copy it from where it was written",
        "podAutoscalers[0].sources: 3 are written for 2 entries of spec.metricsSources; write one for each, {} for one that reports nothing",
        "podAutoscalers[0].sources[0].total: custom load does not report it; write pods",
        "podAutoscalers[0].sources[0].pods.p: 1.1e100 is no amount; write 0 to 1e100",
        "podAutoscalers[0].sources[1].pods: external queue does not report it; write total",
        "podAutoscalers[0].sources[1].pods.x: the target has no pod of this name; add it to pods, or drop it",
        "podAutoscalers[0].sources[1].total: -1.0 is no amount; write 0 to 1e100",
        "podAutoscalers[1].object.metadata.name: podAutoscalers[0] has this name, too; give it another",
        "podAutoscalers[1].sources: 0 are written for 2 entries of spec.metricsSources; write one for each, {} for one that reports nothing",
    ];
    assert_eq!(found, expected);
    let bad = entry("B b", "t", "sources: [{}, {}]").replace("maxReplicas: 4", "maxReplicas: 0");
    let found = faults(&[bad]);
    assert!(
        found[0]
            .starts_with("podAutoscalers[0].object.metadata.name: \"B b\" is not an object name"),
        "{found:?}"
    );
    assert_eq!(
        found[1],
        "podAutoscalers[0].object.spec.maxReplicas: 0 must be positive; write at least 1 (ns/B b)"
    );
}

#[test]
fn what_stands_twice_is_named_by_place() {
    let objects = [("a", "t"), ("b", "u"), ("c", "t"), ("a", "u"), ("a", "t")];
    let expected = [(3, 0), (4, 0), (4, 3)].map(|(index, other)| {
        format!(
            "podAutoscalers[{index}].object.metadata.name: podAutoscalers[{other}] has this name, too; give it another"
        )
    });
    let entries = objects.map(|(name, target)| entry(name, target, "sources: [{}, {}]"));
    assert_eq!(faults(&entries), expected);
}

/// The name of each object with those of its rivals: behind `<` the one that scales, behind `>` those that give way.
fn rivals(entries: &[String]) -> Vec<String> {
    let document = SnapshotDocument::parse(&format!("{HEAD}{}", entries.concat())).unwrap();
    let situation = document.situation(&FreshnessBands::default()).unwrap();
    let shown = situation.autoscalers.iter().map(|one| {
        let (sign, others) = match &one.rivals {
            TargetRivals::Owner(owner) => ('<', std::slice::from_ref(owner)),
            TargetRivals::Yielding(others) => ('>', others.as_slice()),
        };
        let others: Vec<&str> = others.iter().map(|other| &*other.key.name).collect();
        format!("{} {sign} {}", one.policy.metadata.name, others.join(" "))
    });
    shown.collect()
}

#[test]
fn of_several_objects_on_a_target_the_oldest_scales_it() {
    let created = |name: &str, target: &str, day: &str| {
        let created = format!("creationTimestamp: '2026-03-{day}T12:00:00Z'");
        entry(name, target, "sources: [{}, {}]").replace("resourceVersion: '5'", &created)
    };
    let ages = [
        created("a", "t", "03"),
        created("b", "t", "01"),
        created("c", "t", "02"),
        created("d", "u", "01"),
    ];
    assert_eq!(rivals(&ages), ["a < b", "b > a c", "c < b", "d > "]);
    assert_eq!(faults(&ages), Vec::<String>::new());
    let equal = [created("b", "t", "01"), created("a", "t", "01")];
    assert_eq!(rivals(&equal), ["b < a", "a > b"]);
    // What states no time is the oldest.
    let timeless = entry("z", "t", "sources: [{}, {}]");
    let null = created("y", "t", "01").replace("'2026-03-01T12:00:00Z'", "null");
    let found = rivals(&[created("a", "t", "01"), timeless, null]);
    assert_eq!(found, ["a < y", "z < y", "y > a z"]);
}

#[test]
fn a_count_that_is_too_large_is_named_with_its_object() {
    let entry = |name| entry(name, name, "sources: [{}, {}]");
    let found = faults(&[entry("a").replace("current: 1", "current: 2147483648")]);
    let expected = "podAutoscalers[0].current: 2147483648 replicas are more than there can be; write at most 2147483647 (ns/a)";
    assert_eq!(found, [expected]);
    for (field, from) in [("current", "current: 1"), ("object.spec.maxReplicas", "maxReplicas: 4")]
    {
        let key = from.trim_end_matches(char::is_numeric);
        let large = entry("b").replace(from, &format!("{key}4294967296"));
        let text = format!("{HEAD}{}{large}", entry("a"));
        let error = SnapshotDocument::parse(&text).unwrap_err().to_string();
        let start = format!(
            "podAutoscalers[1].{field}: invalid value: integer `4294967296`; write a whole number from 0 to 2147483647 at line "
        );
        assert!(error.starts_with(&start), "{error}");
        assert!(error.contains(" (ns/b); "), "{error}");
    }
}

#[test]
fn a_service_and_its_role_are_one_target_and_two_roles_are_two() {
    let role = |name: &str, role: &str| {
        let entry = entry(name, "t", "sources: [{}, {}]").replace(
            "apps/v1, kind: Deployment",
            "orchestration.aibrix.ai/v1alpha1, kind: StormService",
        );
        entry.replace(
            "maxReplicas: 4",
            &format!("maxReplicas: 4\n      subTargetSelector: {{roleName: '{role}'}}"),
        )
    };
    let apart = ["a > ", "b > "];
    let shared = ["a > b", "b < a"];
    assert_eq!(rivals(&[role("a", "x"), role("b", "y")]), apart);
    assert_eq!(rivals(&[role("a", "x"), role("b", "x")]), shared);
    let whole = |name: &str| {
        let nameless = "pooled and spec.subTargetSelector.roleName is empty";
        let entry = role(name, "");
        assert!(faults(std::slice::from_ref(&entry))[0].contains(nameless));
        // Of a service that states mode Replica itself.
        entry.replace("current: 1", "current: 1\n  podsPerReplica: 2")
    };
    assert_eq!(rivals(&[role("a", "x"), whole("b")]), shared);
    assert_eq!(rivals(&[whole("a"), role("b", "y")]), shared);
    // By the annotation the whole service is scaled, whatever the role.
    let replica = |name: &str, of: &str| {
        let mode = "annotations: {autoscaling.aibrix.ai/storm-service-mode: replica}";
        role(name, of).replace("resourceVersion: '5'", mode)
    };
    for first in [role("a", "x"), replica("a", "x")] {
        for other in ["x", "y"] {
            assert_eq!(rivals(&[first.clone(), replica("b", other)]), shared);
        }
    }
    let other = entry("b", "t", "sources: [{}, {}]");
    let beta = other.replace("apps/v1,", "apps/v1beta1,");
    assert_eq!(rivals(&[entry("a", "t", "sources: [{}, {}]"), beta]), shared);
}

#[test]
fn pods_per_replica_are_stated_or_those_of_the_kind() {
    let storm = |rest: &str, spec: &str| {
        let entry = entry("a", "t", &format!("sources: [{{}}, {{}}]\n  {rest}"));
        let entry = entry.replace(
            "apps/v1, kind: Deployment",
            "orchestration.aibrix.ai/v1alpha1, kind: StormService",
        );
        entry.replace("maxReplicas: 4", &format!("maxReplicas: 4\n      {spec}"))
    };
    let role = "subTargetSelector: {roleName: x}";
    for (entry, expected) in [
        (entry("a", "t", "sources: [{}, {}]"), 1),
        (storm("", ""), 0),
        (storm("", role), 1),
        (storm("podsPerReplica: 5", ""), 5),
        (storm("podsPerReplica: 2", role), 2),
        // Of a service that states mode Replica itself.
        (storm("podsPerReplica: 6", "subTargetSelector: {roleName: ''}"), 6),
    ] {
        let document = SnapshotDocument::parse(&format!("{HEAD}{entry}")).unwrap();
        let situation = document.situation(&FreshnessBands::default()).unwrap();
        let view = &situation.autoscalers[0].view;
        assert_eq!(view.pods_per_replica.0, expected, "{entry}");
    }
}

/// The plan of an object whose release needs a minute of history, in a document of some time.
fn released(time: &str, state: Option<&Value>) -> (u32, Value) {
    let rest = "pods: [{name: p}, {name: q}]\n  sources: [{pods: {p: 1, q: 1}}, {total: 1}]";
    let entry = entry("a", "t", rest).replace("current: 1", "current: 2");
    let minute = "maxReplicas: 4\n      observeWindowSeconds: 60";
    let entry = entry.replace("maxReplicas: 4", minute);
    let entry = entry.replace(
        "resourceVersion: '5'",
        "annotations: {autoscaling.aibrix.ai/scale-down-cooldown-window: 0s}",
    );
    let text = format!("{HEAD}{entry}").replace("{uptime: 1h}", time);
    let mut document = SnapshotDocument::parse(&text).unwrap();
    document.pod_autoscalers[0].state = state.cloned();
    let situation = document.situation(&FreshnessBands::default()).unwrap();
    let one = &situation.autoscalers[0];
    let (decision, state) = decide(&one.policy, &one.view, &one.state, situation.now);
    (decision.desired.0, serde_json::to_value(state).unwrap())
}

#[test]
fn a_memory_goes_on_at_a_later_time() {
    let at = |second: u32| {
        let (minute, second) = (second / 60, second % 60);
        format!("{{now: 2026-03-01T12:{minute:02}:{second:02}Z}}")
    };
    let (mut counts, mut state) = (Vec::new(), None);
    for tick in 0..20 {
        let (count, next) = released(&at(tick * 10), state.as_ref());
        counts.push(count);
        state = Some(next);
    }
    // A minute after the first.
    assert_eq!(counts, [[2; 6].as_slice(), &[1; 14]].concat());
    // The same time, and a stated clock, which counts alone.
    let (_, state) = released(&at(0), None);
    for (time, expected) in [
        (at(0), 2),
        (at(59), 2),
        (at(60), 1),
        ("{}".to_owned(), 2),
        (at(60).replace('}', ", uptime: 24h}"), 2),
        (at(0).replace('}', ", uptime: 1441m}"), 1),
    ] {
        assert_eq!(released(&time, Some(&state)).0, expected, "{time}");
    }
}

#[test]
fn demands_that_none_wrote_are_named() {
    let found = |slot: &str, low: &str, high: &str| {
        let state = format!(
            "state: {{windows: {{w: {{slots: {{'{slot}': {{low: {low}, high: {high}}}}}}}}}}}"
        );
        faults(&[entry("a", "t", &format!("sources: [{{}}, {{}}]\n  {state}"))])
    };
    assert_eq!(found("3600", "0", "0"), Vec::<String>::new());
    assert_eq!(found("3600", "3", "1.5e110"), Vec::<String>::new());
    let path = "podAutoscalers[0].state.windows.w.slots";
    let end = "copy it from where it was written";
    let wrong = format!("is no demand: low is 0 or more, and high no less; {end}");
    for (slot, low, high, why) in [
        ("3601", "0", "0", format!("is after now; {end}")),
        ("18446744073709551615", "0", "0", format!("is after now; {end}")),
        ("3600", "-1", "0", wrong.clone()),
        ("3600", "2", "1", wrong.clone()),
        ("3600", "1", "1.5e308", wrong),
    ] {
        let expected = format!("{path}.{slot}: {why}");
        assert_eq!(found(slot, low, high), [expected]);
    }
}

#[test]
fn absent_fields_and_annotations_of_a_refused_object_are_named() {
    let bad = entry("a", "t", "sources: [{}, {}]")
        .replace("maxReplicas: 4", "minReplicas: -1")
        .replace("{metricSourceType: custom,", "{metricSourceType: custom, endpoint: 'a:80',")
        .replace(
            "resourceVersion: '5'",
            "annotations: {autoscaling.aibrix.ai/panic-threshold: '1'}",
        );
    let expected = [
        "spec.minReplicas: -1 must not be negative; write at least 0 (ns/a)",
        "spec.maxReplicas: must be set; write at least 1 (ns/a)",
        "metadata.annotations: annotation autoscaling.aibrix.ai/panic-threshold: \"1\" must be above 1; write for example 2; 2 is kept (ns/a)",
        "spec.metricsSources[0].endpoint: has no effect: the metrics API is read, which has none; remove it (ns/a)",
    ];
    let expected = expected.map(|line| format!("podAutoscalers[0].object.{line}"));
    assert_eq!(faults(&[bad]), expected);
}

#[test]
fn a_variant_and_an_autoscaler_do_not_scale_one_target() {
    let faults = |target: &str| {
        let variant =
            format!("variants:\n- {{namespace: ns, name: v, model: m, target: {target}}}");
        let text = format!("{HEAD}{}", entry("a", "t", "sources: [{}, {}]"));
        let document = SnapshotDocument::parse(&text.replace("variants: []", &variant)).unwrap();
        let found = document.situation(&FreshnessBands::default());
        found.err().map(|error| error.to_string())
    };
    assert_eq!(faults("{name: u, current: 1}"), None);
    assert_eq!(faults("{name: t, kind: StatefulSet, current: 1}"), None);
    let contested = "{name: t, state: contested, owner: PodAutoscaler ns/a}";
    assert_eq!(faults(contested), None);
    let why = "podAutoscalers[0].object.spec.scaleTargetRef: variants[0] scales it, too; leave one of them out, or write state: contested there";
    assert_eq!(faults("{name: t, current: 1}").as_deref(), Some(why));
}
