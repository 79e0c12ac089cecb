//! Whole runs: exact sums, equal runs for equal seeds, and files that are not played again.

use std::sync::Mutex;

use super::{Folder, TINY, tiny};
use crate::lab::campaign::{Campaign, LabProgress, run};
use crate::lab::play::LabRun;
use crate::lab::policies::PolicyChoice;
use crate::lab::record::LabRecord;
use crate::lab::scenario::{LoadedScenario, prepare};

fn play(scenario: &LoadedScenario, policy: &str, seed: u64, traces: &Folder) -> LabRecord {
    let policy = PolicyChoice::parse(policy).unwrap();
    let play = LabRun { scenario, policy: &policy, traces: Some(traces.path()), seed };
    let mut record = play.run().unwrap();
    record.cpu_seconds = 0.0;
    record
}

#[test]
fn known_requests_give_known_sums() {
    let traces = Folder::with_trace("sums");
    let record = play(&tiny(), "static-2", 1, &traces);
    let score = &record.score;
    assert_eq!((score.requests, score.good, score.refused), (11, 10, 1));
    assert_eq!((score.late, score.failed, score.unfinished), (0, 0, 0));
    assert!((score.good_tokens - 500.0).abs() < 1e-9);
    // Two replicas of two GPUs for a minute, ready since the prelude; each costs 3.6 an hour.
    assert!((score.gpu_seconds.serving - 240.0).abs() < 1e-9, "{score:?}");
    assert!((score.gpu_seconds.total - 240.0).abs() < 1e-9, "{score:?}");
    assert!((score.cost - 0.12).abs() < 1e-9, "{score:?}");
    assert_eq!((score.scalings, score.reversals), (0, 0));
}

#[test]
fn starts_are_paid_for_from_the_place_on_a_node() {
    let traces = Folder::with_trace("starts");
    let text = TINY.replace("prelude: 30s", "prelude: 0s");
    let scenario = LoadedScenario::read(&text, "tiny.yaml").unwrap();
    let score = play(&scenario, "static-2", 1, &traces).score;
    // A start of ten seconds, seen at the ends of seconds; the scheduler needs less than one.
    let (starting, total) = (score.gpu_seconds.starting, score.gpu_seconds.total);
    assert!((36.0..=44.0).contains(&starting), "{score:?}");
    assert!((236.0..=240.0).contains(&total), "{score:?}");
    assert!(score.good < 10, "the first requests wait for the start: {score:?}");
}

#[test]
fn equal_seeds_give_equal_records() {
    let traces = Folder::with_trace("equal");
    let text = TINY.replace("jitter: 0s", "jitter: 2s");
    let scenario = LoadedScenario::read(&text, "tiny.yaml").unwrap();
    for policy in ["wva-default", "keda-epp", "knative-kpa"] {
        let json = |seed| serde_json::to_string(&play(&scenario, policy, seed, &traces)).unwrap();
        assert_eq!(json(7), json(7), "{policy}");
        assert_ne!(json(7), json(8).replace("\"seed\":8", "\"seed\":7"), "{policy}");
    }
}

/// Plays and returns how many runs were found as files, the problems, and the table.
fn campaign(
    folder: &Folder,
    scenario: LoadedScenario,
    policies: &[&str],
) -> (usize, Vec<String>, String) {
    let found = Mutex::new(0);
    let policies = policies.iter().map(|name| PolicyChoice::parse(name).unwrap());
    let campaign = Campaign {
        scenarios: vec![scenario],
        policies: policies.collect(),
        seeds: 2,
        jobs: 2,
        out: folder.path().join("out"),
        traces: Some(folder.path().to_owned()),
    };
    let report = |progress: &LabProgress| *found.lock().unwrap() = progress.found;
    let (problems, table) = run(&campaign, &report).unwrap();
    assert!(!problems.is_empty() || table.contains("### tiny"), "{table}");
    (found.into_inner().unwrap(), problems, table)
}

#[test]
fn what_was_played_is_not_played_again() {
    let folder = Folder::with_trace("resume");
    let policies = ["static-1", "keda-epp"];
    let played = |scenario| {
        let (found, problems, _) = campaign(&folder, scenario, &policies);
        (found, problems)
    };
    let none = Vec::<String>::new();
    assert_eq!(played(tiny()), (0, none.clone()));
    assert_eq!(played(tiny()), (4, none.clone()));
    let text = TINY.replace("about: Known", "about: Other known");
    let other = LoadedScenario::read(&text, "tiny.yaml").unwrap();
    assert_eq!(played(other), (0, none));
    let out = folder.path().join("out");
    let csv = std::fs::read_to_string(out.join("summary.csv")).unwrap();
    assert_eq!(csv.lines().count(), 5, "{csv}");
    for line in csv.lines() {
        assert_eq!(line.split(',').count(), 25, "{line}");
    }
    let scenarios = std::fs::read_to_string(out.join("scenarios.json")).unwrap();
    assert!(scenarios.contains("\"isFeasible\": true"), "{scenarios}");
}

#[test]
fn the_best_fixed_fleet_is_searched_for() {
    let folder = Folder::with_trace("search");
    let (_, problems, table) = campaign(&folder, tiny(), &["static-best"]);
    assert!(problems.is_empty(), "{problems:?}");
    let runs = folder.path().join("out/runs");
    let text = std::fs::read_to_string(runs.join("tiny__static-best__s2.json")).unwrap();
    let record: LabRecord = serde_json::from_str(&text).unwrap();
    // One request is refused by every fleet, so that none meets the objective.
    assert_eq!((record.knob, &*record.family), (Some(3.0), "static-best"));
    let read = |name: &str| std::fs::read_to_string(folder.path().join("out").join(name)).unwrap();
    for line in read("summary.csv").lines().filter(|line| line.contains("static-best")) {
        assert!(line.ends_with(",missed,\"default=0.9090909090909091\""), "{line}");
    }
    assert!(read("scenarios.json").contains("\"missesGoal\": true"));
    assert!(table.contains("| static-best, below its goal of 99 % | 90.9 |"), "{table}");
}

#[test]
fn a_best_fixed_fleet_that_meets_its_goal_has_no_mark() {
    let folder = Folder::with_trace("met");
    // Without the request that is refused.
    let scenario =
        LoadedScenario::read(&TINY.replace("jitter: 0s", "to: 50s"), "tiny.yaml").unwrap();
    let (_, problems, table) = campaign(&folder, scenario, &["static-best"]);
    assert!(problems.is_empty(), "{problems:?}");
    assert!(table.contains("| static-best | 100.0 |"), "{table}");
    let csv = std::fs::read_to_string(folder.path().join("out/summary.csv")).unwrap();
    assert!(csv.lines().skip(1).all(|line| line.ends_with(",,\"default=1\"")), "{csv}");
}

#[test]
fn a_trace_that_is_missing_stops_its_scenario_alone() {
    let folder = Folder::new("missing");
    let (_, problems, _) = campaign(&folder, tiny(), &["static-1"]);
    let [problem] = problems.as_slice() else {
        panic!("{problems:?}");
    };
    assert!(problem.starts_with("scenario tiny: known.csv: No such file"), "{problem}");
    assert!(problem.ends_with("give the folder of the traces"), "{problem}");
}

#[test]
fn a_clip_that_ends_before_the_scored_part_is_refused() {
    let folder = Folder::with_trace("short");
    let problems = |duration: &str, trace: &str| {
        let text = TINY.replace("duration: 60s", &format!("duration: {duration}"));
        let text = text.replace("jitter: 0s", trace);
        let scenario = LoadedScenario::read(&text, "tiny.yaml").unwrap();
        prepare(&scenario.spec, Some(folder.path()), 1).err()
    };
    // Requests of 51 s, where a minute may lack.
    assert_eq!(problems("111s", "jitter: 0s"), None);
    let expected = |ends: &str, duration: &str| {
        Some(format!(
            "scenario tiny: known.csv: its requests end after {ends} of the duration {duration}; shorten duration, \
             widen from and to, or give repeat"
        ))
    };
    assert_eq!(problems("112s", "jitter: 0s"), expected("51s", "1m 52s"));
    assert_eq!(problems("112s", "repeat: 2"), None);
    // A clip of 120 s by its fields, and of 51 s by its trace.
    assert_eq!(problems("112s", "to: 120s"), expected("51s", "1m 52s"));
    assert_eq!(problems("112s", "from: 5s"), expected("46s", "1m 52s"));
    assert_eq!(problems("112s", "to: 30s"), expected("30s", "1m 52s"));
    assert_eq!(problems("172s", "to: 120s, repeat: 2"), None);
}

#[test]
fn a_router_that_orders_by_deadlines_serves_the_class_that_is_in_a_hurry() {
    let traces = Folder::new("order");
    let part = |class: &str, ttft: &str, rate: u32| {
        format!(
            "  - class: {class}\n    slo: {{ttft: {ttft}, itl: 1s}}\n    constant: {{rate: {rate}}}\n    \
             lengths: {{prompt: {{median: 2000}}, output: {{median: 100}}}}\n"
        )
    };
    let text = TINY
        .replace(
            "  - trace: {file: known.csv, jitter: 0s}\n",
            &(part("slow", "10m", 32) + &part("fast", "2s", 8)),
        )
        .replace("startUp:", "limits: {maxNumSeqs: 8}\n    startUp:");
    let attainment = |order: &str| {
        let router = format!("  router: {{order: {order}}}\n  variants:");
        let text = text.replace("  variants:", &router);
        let scenario = LoadedScenario::read(&text, "tiny.yaml").unwrap();
        let score = play(&scenario, "static-3", 1, &traces).score;
        score.classes["fast"].attainment
    };
    let (fcfs, deadlines) = (attainment("fcfs"), attainment("slo-deadline"));
    assert!(fcfs < 0.1 && deadlines > 0.9, "{fcfs} {deadlines}");
}

#[test]
fn a_router_that_binds_early_lets_requests_wait_in_servers() {
    let traces = Folder::new("early");
    let text = TINY
        .replace(
            "  - trace: {file: known.csv, jitter: 0s}",
            "  - constant: {rate: 40}\n    lengths: {prompt: {median: 2000}, output: {median: 100}}",
        )
        .replace("startUp:", "limits: {maxNumSeqs: 8}\n    startUp:");
    let waiting = |binding: &str| {
        let router = format!("  router: {{binding: {binding}}}\n  variants:");
        let text = text.replace("  variants:", &router);
        let scenario = LoadedScenario::read(&text, "tiny.yaml").unwrap();
        let record = play(&scenario, "static-2", 1, &traces);
        let series = record.series.models.values().next().unwrap();
        let last = |samples: &[Option<f64>]| samples.last().unwrap().unwrap();
        (last(&series.held), last(&series.queue))
    };
    let (held, queue) = waiting("late");
    assert!(held > 50.0 && queue <= 6.0, "{held} {queue}");
    for binding in ["early", "early-round-robin"] {
        let (held, queue) = waiting(binding);
        assert!(held < 1.0 && queue > 50.0, "{binding}: {held} {queue}");
    }
}
