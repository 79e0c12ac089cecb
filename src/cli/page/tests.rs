//! What a page of a recording holds.

use std::ffi::OsStr;

use clap::Parser as _;
use serde_json::{Value, json};

use super::PageFlags;
use crate::cli::replay::tests::{autoscaler_recording, both_recording, recording};
use crate::page;
use crate::page::film::{FilmLimits, film, film_within};
use wva_recording::RecordingReader;

fn film_of(argument: &str) -> Value {
    let bytes = recording(argument);
    let film = film(&mut RecordingReader::new(&*bytes)).unwrap();
    serde_json::to_value(&film).unwrap()
}

#[test]
fn a_recording_becomes_frames_and_each_change_has_its_steps_once() {
    let film = film_of("--x");
    let frames = film["frames"].as_array().unwrap();
    let of = |path: &str| -> Vec<&Value> {
        let values = frames.iter().map(|frame| frame.pointer(path));
        values.map(|value| value.unwrap_or(&Value::Null)).collect()
    };
    assert_eq!(of("/seconds"), [0.0, 60.0, 120.0]);
    assert_eq!(of("/frame/models/0/name"), ["ns/m"; 3]);
    assert_eq!(of("/frame/models/0/kv_usage"), [0.2, 0.5, 0.78]);
    assert_eq!(of("/frame/cost_per_hour"), [10.0; 3]);
    assert_eq!(of("/frame/models/0/slo_ms/0"), [2_000.0; 3]);
    let variant = "/frame/models/0/variants/0";
    assert_eq!(of(&format!("{variant}/ready")), [1; 3]);
    let desired = of(&format!("{variant}/desired"));
    assert_eq!(desired, [1, 1, 2]);
    let decided = of(&format!("{variant}/action"));
    assert_eq!(decided[0], "2026-03-01T12:00:00Z");
    assert_eq!(decided[1], &Value::Null);
    assert_eq!(decided[2], "2026-03-01T12:02:00Z");
    let steps = of(&format!("{variant}/steps"))[2].as_array().unwrap();
    let grown = steps[1].as_str().unwrap();
    assert!(grown.starts_with("saturation: 1 → 2, "), "{steps:?}");
    assert_eq!((&film["changes"], &film["run"]), (&1.into(), &"9.9.9".into()));
    assert_eq!(film["cost"], 10.0 / 30.0);
    assert_eq!(film["latest"]["seconds"], 120.0);
}

/// Three cycles of one variant: the limit of variants counts those of all frames.
#[test]
fn a_film_of_too_many_frames_or_variants_keeps_every_other_frame() {
    for (frames, rows, kept) in [
        (3, 3, vec![0.0, 60.0, 120.0]),
        (2, 3, vec![0.0, 120.0]),
        (3, 2, vec![0.0, 120.0]),
        (3, 1, vec![0.0]),
        (3, 0, vec![0.0]),
    ] {
        let bytes = recording("--x");
        let limits = FilmLimits { frames, rows };
        let film = film_within(&mut RecordingReader::new(&*bytes), limits).unwrap();
        let film = serde_json::to_value(&film).unwrap();
        let shots = film["frames"].as_array().unwrap();
        let seconds: Vec<f64> =
            shots.iter().map(|shot| shot["seconds"].as_f64().unwrap()).collect();
        assert_eq!(seconds, kept, "{limits:?}");
        assert_eq!(film["latest"]["seconds"], 120.0);
    }
}

#[test]
fn a_pod_autoscaler_is_drawn_like_a_model_of_one_variant() {
    let bytes = both_recording("--x");
    let film = film(&mut RecordingReader::new(&*bytes)).unwrap();
    let film = serde_json::to_value(&film).unwrap();
    let models = |frame: usize| film["frames"][frame]["frame"]["models"].as_array().unwrap();
    let [model, autoscaled] = models(0).as_slice() else {
        panic!("{film}");
    };
    assert_eq!(model["facts"], Value::Null);
    assert_eq!(autoscaled["name"], "PodAutoscaler ns/chat");
    assert_eq!(autoscaled["facts"], "APA, 1 to 5 replicas");
    let target = &autoscaled["variants"][0];
    let counts = ["desired", "scaled_to", "ready", "gpus", "cost"].map(|name| &target[name]);
    assert_eq!(json!(counts), json!([2, 1, 0, null, null]));
    assert_eq!(
        (&target["name"], &target["action"]),
        (&"llm".into(), &"2026-03-01T12:01:00Z".into())
    );
    let steps = target["steps"].as_array().unwrap();
    assert!(
        steps.iter().any(|step| step.as_str().unwrap().starts_with("combine: 1 → 2, external")),
        "{steps:?}"
    );
    let [_, silent] = models(2).as_slice() else {
        panic!("{film}");
    };
    let facts = "APA, 1 to 5 replicas, no decision since 2026-03-01T12:01:00Z";
    assert_eq!(silent["facts"], facts);
    assert_eq!(silent["variants"][0]["desired"], 2);
    assert_eq!(film["changes"], 2);
}

#[test]
fn decisions_about_pod_autoscalers_alone_are_no_film() {
    let shown = |bytes: &[u8]| film(&mut RecordingReader::new(bytes)).map(drop);
    assert_eq!(shown(&both_recording("--x")), Ok(()));
    let error = shown(&autoscaler_recording()).unwrap_err();
    let expected = "the recording has decisions about PodAutoscalers alone, and ";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn what_a_recording_holds_ends_no_element_of_the_page() {
    let film = serde_json::to_string(&film_of("</script><b>")).unwrap();
    let document = page::recorded("Decisions", "{\"run\":\"</script><b>\"}");
    assert!(document.contains(r#"id="film">{"run":"\u003c/script>\u003cb>"}</script>"#));
    assert!(!page::recorded("Decisions", &film).contains("</script><b>"));
    assert_eq!(document.matches("<script").count(), 2);
    assert!(document.contains("default-src 'none'; script-src 'sha256-"));
    assert!(!document.contains("<!--") && !document.contains("/* title */"));
    for outside in ["src=", "http://", "https://", "connect-src"] {
        assert!(!document.contains(outside), "{outside}");
    }
}

#[test]
fn one_source_is_given() {
    for (line, said) in [
        ("", "no recording; give --recording FILE"),
        ("--recording f --address http://a", "--recording excludes --address; give one"),
    ] {
        let words = ["page"].into_iter().chain(line.split_whitespace());
        let flags = PageFlags::try_parse_from(words.map(OsStr::new)).unwrap();
        let refused = flags.source().unwrap_err();
        assert!(refused.0.starts_with(said), "{}", refused.0);
    }
}
