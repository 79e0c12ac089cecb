//! One moment of a run.

use serde_json::json;

use super::super::explain;
use super::sample;
use crate::lab::tests::Folder;

#[test]
fn a_moment_has_the_state_and_the_decisions_before_it() {
    let folder = Folder::new("explain");
    let path = folder.put_run(&sample::run("step", "keda-epp", 1, (0.9, 7.5)));
    let before = explain(&path, 4.0).unwrap();
    assert!(before.ends_with("ready 2, starting 0\n\nno decision until then\n"), "{before}");
    let text = explain(&path, 15.5).unwrap();
    assert_eq!(
        text,
        "step under keda-epp, seed 1, at 15.5 s (0:00:15); last sample at 10 s; not scored yet\n\
         \n\
         model llama\n  \
           arrivals 6.00 a second, held by the router 12.0\n  \
           a ready server: waiting 1.50, running 4.00, KV cache 25.0 %\n  \
           TTFT p95 500 ms, within SLO 100 %\n  \
           variant llama-h100: desired 2, scale 2, ready 2, starting 0\n\
         \n\
         last decisions, of 2 until then\n  \
           12 s (0:00:12) llama-h100 2 -> 5: backlog of 12 requests\n  \
           5 s (0:00:05) llama-h100 2 -> 2: steady\n"
    );
    let first = explain(&path, 0.0).unwrap();
    assert!(first.contains("TTFT p95 –, within SLO –"), "{first}");
    assert!(first.contains("desired –, scale 2"), "{first}");
}

#[test]
fn the_latest_terms_of_each_model_are_shown() {
    let folder = Folder::new("terms");
    let mut run = sample::run("step", "wva-slo", 1, (0.9, 7.5));
    let terms =
        |at: f64, model: &str, line: &str| json!({"at": at, "model": model, "lines": [line]});
    run["terms"] = json!([
        terms(0.0, "org/llama", "slo: old"),
        terms(60.0, "org/llama", "slo: new"),
        terms(60.0, "org/qwen", "slo: other"),
        terms(120.0, "org/llama", "slo: later"),
    ]);
    let path = folder.put_run(&run);
    let first = explain(&path, 59.0).unwrap();
    assert!(first.ends_with("\nterms of org/llama at 0 s (0:00:00)\n  slo: old\n"), "{first}");
    let both = explain(&path, 119.0).unwrap();
    assert!(
        both.ends_with(
            "\nterms of org/llama at 60 s (0:01:00)\n  slo: new\n\
             \nterms of org/qwen at 60 s (0:01:00)\n  slo: other\n"
        ),
        "{both}"
    );
}

#[test]
fn a_moment_outside_of_the_run_is_refused() {
    let folder = Folder::new("outside");
    let path = folder.put_run(&sample::run("step", "keda-epp", 1, (0.9, 7.5)));
    explain(&path, 7200.0).unwrap();
    for at in [-1.0, 7200.5, f64::NAN, f64::INFINITY] {
        let error = explain(&path, at).unwrap_err();
        assert!(error.contains(": no sample at "), "{error}");
    }
    let text = explain(&path, 9000.0).unwrap_err();
    let expected = "no sample at 9000 s: the run has samples from 0 s to 7200 s";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn the_last_decision_of_each_variant_is_shown() {
    let folder = Folder::new("variants");
    let mut run = sample::run("step", "keda-epp", 1, (0.9, 7.5));
    let mut decisions =
        vec![json!({"at": 1.0, "variant": "llama-l40s", "from": 0, "to": 1, "why": "lone"})];
    for number in 0..20_u32 {
        decisions.push(json!({"at": f64::from(number), "variant": "llama-h100", "from": number,
            "to": number + 1, "why": format!("step {number}")}));
    }
    run["decisions"] = json!(decisions);
    let path = folder.put_run(&run);
    let text = explain(&path, 15.0).unwrap();
    let shown: Vec<&str> =
        text.lines().filter_map(|line| line.rsplit_once(": ")).map(|part| part.1).collect();
    let expected = [
        "step 15", "step 14", "step 13", "step 12", "step 11", "step 10", "step 9", "step 8",
        "lone",
    ];
    assert_eq!(shown[shown.len() - 9..], expected);
    assert!(text.contains("llama-l40s 0 -> 1: lone"), "{text}");
}
