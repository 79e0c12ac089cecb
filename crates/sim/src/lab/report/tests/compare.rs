//! Two folders side by side.

use serde_json::json;

use super::super::compare;
use super::sample;
use crate::lab::tests::Folder;

fn rows(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with("| ")).skip(1).collect()
}

#[test]
fn means_are_over_common_seeds() {
    let (a, b) = (Folder::new("compare-a"), Folder::new("compare-b"));
    for (seed, more) in [(1, 0.01), (2, 0.02), (3, 0.03), (4, 0.0), (5, 0.04)] {
        a.put_run(&sample::run("step", "keda-epp", seed, (0.9, 8.0)));
        b.put_run(&sample::run("step", "keda-epp", seed, (0.9 + more, 6.0)));
    }
    // A sixth seed that A alone has.
    a.put_run(&sample::run("step", "keda-epp", 6, (0.1, 80.0)));
    let text = compare(a.path(), b.path()).unwrap();
    assert_eq!(rows(&text), ["| step | keda-epp | 5 | 90.0 | 92.0 | +2.0 | 8.00 | 6.00 | -25.0 |"]);
    assert!(!text.contains("Not compared"), "{text}");
}

#[test]
fn lone_runs_are_listed() {
    let (a, b) = (Folder::new("lone-a"), Folder::new("lone-b"));
    for folder in [&a, &b] {
        let mut run = sample::run("idle", "keda|epp", 1, (0.0, 0.0));
        run["score"]["requests"] = json!(0);
        run["score"]["attainment"] = json!(0.0);
        folder.put_run(&run);
    }
    a.put_run(&sample::run("step", "tokens", 1, (0.9, 8.0)));
    b.put_run(&sample::run("step", "tokens", 2, (0.9, 8.0)));
    a.put_run(&sample::run("step", "apa", 1, (0.9, 8.0)));
    b.put_run(&sample::run("wave", "apa", 1, (0.9, 8.0)));
    let text = compare(a.path(), b.path()).unwrap();
    assert_eq!(rows(&text), ["| idle | keda\\|epp | 1 | – | – | – | 0 | 0 | – |"]);
    let lone = "\nNot compared:\n\n- step, apa: in A alone\n- step, tokens: no common seed\n\
                - wave, apa: in B alone\n";
    assert!(text.ends_with(lone), "{text}");
}
