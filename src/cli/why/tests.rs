//! Explanations from each source.

use clap::Parser as _;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::WhyFlags;
use super::source::{from_decisions, from_recording, from_snapshot};
use crate::cli::replay::tests::{both_recording, named_recording};
use crate::policy::key::ObjectKey;
use wva_base::moment::WallTime;
use wva_recording::RecordingReader;

const SNAPSHOT: &str = "
version: 1
variants:
- namespace: serving
  name: l4
  model: llama
  cost: 10
  accelerator: L4
  target: {current: 1}
  pods:
  - {name: a, age: 2h, signals: {kvUsage: 0.66, queueLength: 1}}
";

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("serving", name)
}

#[test]
fn a_snapshot_shows_the_steps_and_the_distance_of_each_threshold() {
    let text = from_snapshot(&key("l4"), "fleet.yaml", SNAPSHOT, "").unwrap();
    for line in [
        "serving/l4  model llama, accelerator L4, cost 10.0\n",
        "reported   1 of 1 ready replicas, 1 exist; metrics are available\n",
        "    KV spare 0.140: growth begins below 0.100, 0.040 away\n",
        "    queue spare 4.000: growth begins below 3.000, 1.000 away\n",
        "    base         1 -> 1  ",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let settings = "saturation: {default: {kvSpareTrigger: 0.2}}";
    let text = from_snapshot(&key("l4"), "fleet.yaml", SNAPSHOT, settings).unwrap();
    let line = "    KV spare 0.140: below 0.200, where growth begins, by 0.060\n";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("1 -> 2 (scale-up)"), "{text}");
}

#[test]
fn every_value_of_the_policy_is_shown_with_its_source() {
    let line = |snapshot: &str, settings: &str| {
        let text = from_snapshot(&key("l4"), "fleet.yaml", snapshot, settings).unwrap();
        let mut lines = text.lines().map(str::to_owned);
        let line = lines.find(|line| line.starts_with("    kvSpareTrigger "));
        (line.unwrap(), text)
    };
    let (built_in, _) = line(SNAPSHOT, "");
    assert_eq!(built_in, "    kvSpareTrigger       0.1        built in");
    let (_, text) = line(SNAPSHOT, "saturation: {default: {kvSpareTrigger: 0.1}}");
    let page = include_str!("../../../docs/user-guide/decisions.md");
    assert!(page.contains(&text[text.find("policy\n").unwrap()..]), "{text}");
    let (_, text) = line(SNAPSHOT, "saturation: {default: {analyzerName: slo}}");
    assert!(text.contains("    scaleDownBoundary    0.8075     built in\n"), "{text}");
    let settings = "saturation: {default: {kvSpareTrigger: 0.15}, gold: {kvSpareTrigger: 0.2}}";
    let (default, _) = line(SNAPSHOT, settings);
    assert_eq!(default, "    kvSpareTrigger       0.15       global entry \"default\"");
    let named = |tier: &str| {
        let policy = format!("model: llama\n  policy: {{scalingPolicy: {tier}}}");
        line(&SNAPSHOT.replace("model: llama", &policy), settings)
    };
    let (gold, text) = named("gold");
    assert_eq!(gold, "    kvSpareTrigger       0.2        global entry \"gold\"");
    assert!(!text.contains("note: "), "{text}");
    let (unknown, text) = named("silver");
    assert_eq!(unknown, default);
    assert!(text.contains("note: scalingPolicy \"silver\" names no tier"), "{text}");
}

#[test]
fn scale_to_zero_is_shown_by_the_setting_that_decides() {
    let shown = |settings: &str| {
        let text = from_snapshot(&key("l4"), "fleet.yaml", SNAPSHOT, settings).unwrap();
        let lines = text.lines().skip_while(|line| !line.starts_with("    priority "));
        lines.skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let off = "    WVA_SCALE_TO_ZERO    false      settings or built in";
    let retained = "    retention_period     10m0s      built in";
    let map = "scaleToZero: {default: {enable_scale_to_zero: true, retention_period: 5m}}";
    let both = format!("{map}\nsaturation: {{default: {{scaleToZero: {{enabled: false}}}}}}");
    let soon = "    retention_period     5m0s       global entry \"default\"";
    for (settings, expected) in wva_base::cases! {
        ("", [off, retained]),
        ("WVA_SCALE_TO_ZERO: false", [off, retained]),
        ("WVA_SCALE_TO_ZERO: true", ["    WVA_SCALE_TO_ZERO    true       settings", retained]),
        (map, ["    enable_scale_to_zero true       global entry \"default\"", soon]),
        (both.as_str(), ["    scaleToZero.enabled  false      global entry \"default\"", soon]),
    } {
        assert_eq!(shown(settings), expected, "{settings}");
    }
}

#[test]
fn votes_show_the_band_of_their_analyzer() {
    let snapshot = SNAPSHOT.replace(
        "queueLength: 1",
        "queueLength: 1, kvCapacity: 10000, inputTokens: 100, outputTokens: 10",
    );
    let settings = "saturation: {default: {analyzerName: saturation, scaleUpThreshold: 0.9}}";
    let text = from_snapshot(&key("l4"), "fleet.yaml", &snapshot, settings).unwrap();
    assert!(text.contains("    saturation: demand "), "{text}");
    assert!(text.contains("where growth begins") || text.contains("growth begins above"), "{text}");
}

#[test]
fn what_has_no_decision_is_named() {
    let error = from_snapshot(&key("l5"), "fleet.yaml", SNAPSHOT, "").unwrap_err();
    assert!(error.starts_with("fleet.yaml has no serving/l5"), "{error}");
    let error = from_decisions(&key("l4"), json!({})).unwrap_err();
    assert!(error.contains("has made no plan"), "{error}");
    let plan = json!({
        "cycle": 1, "generation": 1, "decisions": {}, "models": {},
        "at": {"monotonic": {"secs": 1, "nanos": 0}, "wall": 0},
    });
    let error = from_decisions(&key("l4"), plan).unwrap_err();
    assert!(error.starts_with("the last plan has no serving/l4"), "{error}");
}

#[test]
fn a_pod_autoscaler_is_explained_from_what_the_controller_shows() {
    let explained = |would_be: Value| {
        let decisions = json!({"podAutoscalers": {"serving/l4": {
            "target": "Deployment serving/l4",
            "decided": "2026-03-01T12:00:00Z",
            "notes": ["a note"],
            "decision": {
                "current": 1, "desired": 2, "reason": "load grows", "wouldBe": would_be,
                "steps": [{"stage": "window", "from": 1, "to": 2, "reason": "load grows"}],
            },
        }}});
        from_decisions(&key("l4"), decisions).unwrap()
    };
    let wanted = "\
serving/l4  Deployment serving/l4
decided    1 -> 2 at 2026-03-01T12:00:00Z
because    load grows
note       a note
steps
    window       1 -> 2  load grows
";
    assert_eq!(explained(Value::Null), wanted);
    assert_eq!(explained(json!(2)), wanted);
    let forecast = "note       a note\nforecast   mode Auto would decide 4\n";
    let differs = wanted.replace("note       a note\n", forecast);
    assert_eq!(explained(json!(4)), differs);
}

fn explained(bytes: &[u8], name: &str, at: Option<&str>) -> Result<String, String> {
    let at = at.map(|at| WallTime(at.parse::<Timestamp>().unwrap().as_millisecond()));
    let key = ObjectKey::new("ns", name);
    from_recording(&key, &mut RecordingReader::new(bytes), at)
}

#[test]
fn the_newest_decision_on_a_name_is_explained_of_whichever_kind() {
    let bytes = named_recording("a", "x");
    let text = explained(&bytes, "a", Some("2026-03-01T12:01:59Z")).unwrap();
    let begin = "ns/a  Deployment ns/llm\ndecided    1 -> 2 at 2026-03-01T12:01:00Z\n";
    assert!(text.starts_with(begin), "{text}");
    // A cycle has decided on a variant of the name since.
    let text = explained(&bytes, "a", None).unwrap();
    assert!(text.starts_with("ns/a  model m"), "{text}");
}

#[test]
fn a_recorded_decision_on_a_pod_autoscaler_is_explained() {
    let bytes = both_recording("x");
    let explained = |name: &str, at: Option<&str>| explained(&bytes, name, at);
    let text = explained("chat", Some("2026-03-01T12:00:59Z")).unwrap();
    let begin = "ns/chat  Deployment ns/llm\ndecided    1 -> 1 at 2026-03-01T12:00:00Z\nbecause    stable\n";
    assert!(text.starts_with(begin), "{text}");
    let text = explained("chat", None).unwrap();
    for line in [
        "decided    1 -> 2 at 2026-03-01T12:01:00Z\nbecause    apa above target\n",
        "\nsteps\n",
        "\n    combine      1 -> 2  external queue needs most\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let error = explained("other", None).unwrap_err();
    assert_eq!(error, "the recording has no decision on ns/other up to that time");
}

#[test]
fn flags_without_effect_are_refused() {
    let question = |line: &str| {
        let words = ["why"].into_iter().chain(line.split(' '));
        WhyFlags::try_parse_from(words).unwrap().question().map(drop)
    };
    for (line, said) in wva_base::cases! {
        ("l4", "write NAMESPACE/NAME"),
        ("serving/l4 --settings s", "with --snapshot only"),
        ("serving/l4 --at 2026-03-01T12:00:00Z", "with --recording or --address only"),
        ("serving/l4 --recording r --snapshot s", "--recording excludes --snapshot"),
        ("serving/l4 --address foo", "--address is \"foo\"; give a URL like https://127.0.0.1:8443"),
        ("serving/l4 --token-file /none/file --address http://c", "name a file that can be read"),
    } {
        let error = question(line).unwrap_err().to_string();
        assert!(error.contains(said), "{line}: {error}");
    }
    assert!(question("serving/l4 --snapshot f").is_ok());
    assert!(question("serving/l4").is_ok());
}
