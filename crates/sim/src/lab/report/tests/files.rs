//! Files that are no run of the laboratory.

use std::fs;

use serde_json::{Value, json};

use super::super::{compare, explain, write};
use super::sample;
use crate::lab::files::records;
use crate::lab::tests::Folder;

fn good() -> Value {
    sample::run("step", "keda-epp", 1, (0.9, 7.5))
}

/// One field of a good run, what stands there instead, and the message.
const MALFORMED: [(&str, &str, &str); 5] = [
    ("/version", "1", "version: 1 is not supported, only 2 is"),
    ("", "{\"version\": 7}", "version: 7 is not supported, only 2 is"),
    ("", "{\"kind\": \"List\"}", "the top level: missing field `version`"),
    ("/score", "{}", "score: missing field `from`"),
    (
        "/score/gpuSeconds/total",
        "\"7\"",
        "score.gpuSeconds.total: invalid type: string \"7\", expected f64",
    ),
];

#[test]
fn a_malformed_run_is_refused_with_its_field() {
    let folder = Folder::of_step("malformed");
    let path = folder.put_run(&good());
    for (field, value, message) in MALFORMED {
        fs::write(&path, good().to_string()).unwrap();
        write(folder.path()).unwrap();
        let mut run = good();
        *run.pointer_mut(field).unwrap() = serde_json::from_str(value).unwrap();
        fs::write(&path, run.to_string()).unwrap();
        let expected = format!("{}: {message}", path.display());
        for refused in [write(folder.path()), explain(&path, 10.0).map(drop)] {
            let text = refused.unwrap_err();
            assert!(text.starts_with(&expected), "{field}: {text}");
        }
    }
}

/// A campaign reads every file in its folder.
#[test]
fn a_campaign_names_the_remedy_for_a_file_that_it_cannot_read() {
    let folder = Folder::of_step("remedies");
    let path = folder.put_run(&good());
    let runs = folder.path().join("runs");
    assert_eq!(records(&runs).unwrap().len(), 1);
    let mut other = good();
    other["version"] = json!(7);
    for text in ["PK".to_owned(), other.to_string()] {
        fs::write(&path, text).unwrap();
        let refused = explain(&path, 10.0).unwrap_err();
        let text = records(&runs).unwrap_err();
        assert_eq!(text, format!("{refused}; delete it"));
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let text = records(&runs).unwrap_err();
    assert!(text.starts_with(&path.display().to_string()), "{text}");
    assert!(text.ends_with("; check --out"), "{text}");
}

#[test]
fn what_is_no_json_is_refused_with_its_place() {
    let folder = Folder::of_step("no-json");
    let path = folder.put_run(&good());
    for text in ["", "PK\u{3}\u{4}", "{\"version\": 1"] {
        fs::write(&path, text).unwrap();
        let error = write(folder.path()).unwrap_err();
        let file = format!("{}: ", path.display());
        assert!(error.starts_with(&file), "{error}");
        assert!(error.contains("line 1"), "{error}");
    }
    fs::write(&path, format!("{} tail", good())).unwrap();
    let text = write(folder.path()).unwrap_err();
    assert!(text.contains("after the object: trailing characters"), "{text}");
}

#[test]
fn runs_that_contradict_each_other_are_refused() {
    let folder = Folder::of_step("contradiction");
    folder.put_run(&good());
    write(folder.path()).unwrap();
    let second = folder.path().join("runs").join("zz.json");
    fs::write(&second, good().to_string()).unwrap();
    for error in [write(folder.path()), compare(folder.path(), folder.path()).map(drop)] {
        let text = error.unwrap_err();
        let expected = "zz.json: seed: 1 has another file with this scenario and policy";
        assert!(text.ends_with(expected), "{text}");
    }
    let mut other = good();
    other["seed"] = json!(2);
    other["knob"] = json!(16.0);
    fs::write(&second, other.to_string()).unwrap();
    let text = write(folder.path()).unwrap_err();
    assert!(
        text.ends_with("family: policy `keda-epp` has another family or knob elsewhere"),
        "{text}"
    );
    other["knob"] = Value::Null;
    other["scenario"] = json!("wave");
    fs::write(&second, other.to_string()).unwrap();
    let text = write(folder.path()).unwrap_err();
    assert!(text.ends_with("zz.json: scenario: `wave` is missing in scenarios.json"), "{text}");
}

#[test]
fn a_folder_without_runs_or_scenarios_is_refused() {
    let folder = Folder::new("empty");
    let text = write(folder.path()).unwrap_err();
    let file = folder.path().join("scenarios.json");
    let expected = format!("cannot read {}: ", file.display());
    assert!(text.starts_with(&expected), "{text}");
    folder.put_scenarios(&json!({}));
    fs::write(folder.path().join("runs").join("notes.txt"), "not a run").unwrap();
    let error = write(folder.path()).unwrap_err();
    assert!(error.contains(" holds no run: run "), "{error}");
    folder.put_scenarios(&json!({"step": {"about": "x"}}));
    let text = write(folder.path()).unwrap_err();
    assert!(text.contains("scenarios.json: step: missing field `isFeasible`"), "{text}");
}
