//! The content of the page.

use std::fs;

use serde_json::json;

use super::super::write;
use super::sample::{self, Spread};
use crate::lab::tests::Folder;

fn page(folder: &Folder) -> String {
    write(folder.path()).unwrap();
    fs::read_to_string(folder.path().join("report.html")).unwrap()
}

/// Two scenarios, one of them infeasible, three policies, two seeds.
fn small(name: &str) -> Folder {
    let folder = Folder::new(name);
    let mut heavy = sample::scenario(7200.0);
    heavy["loadToCapacity"] = json!(0.97);
    heavy["bestStatic"] = json!(null);
    folder.put_scenarios(&json!({"step": sample::scenario(7200.0), "heavy": heavy}));
    for (policy, seed, share, hours) in [
        ("keda-epp", 1, 0.943, 7.4),
        ("keda-epp", 2, 0.957, 7.6),
        ("wva-slo", 1, 0.9996, 9.0),
        ("wva-slo", 2, 0.9998, 9.0),
        ("apa", 1, 0.90, 12.0),
    ] {
        folder.put_run(&sample::run("step", policy, seed, (share, hours)));
    }
    folder.put_run(&sample::run("heavy", "keda-epp", 1, (0.5, 7.0)));
    let mut idle = sample::run("heavy", "apa", 1, (0.0, 3.0));
    idle["score"]["requests"] = json!(0);
    folder.put_run(&idle);
    folder
}

#[test]
fn cells_have_means_ranges_and_marks() {
    let page = page(&small("cells"));
    let rows = [
        "<tr><th>apa</th><td>no requests / 3.00</td><td><b>90.0</b> / 12.0\
         <small>278 tokens/s, E2E –</small></td></tr>",
        "<tr><th>keda-epp</th><td class=\"best\">★ <b>50.0</b> / 7.00\
         <small>476 tokens/s, E2E –</small></td>\
         <td class=\"front\">● <b>95.0</b> / 7.50<small>94.3–95.7 / 7.40–7.60</small>\
         <small>445 tokens/s, E2E –</small></td></tr>",
        "<tr><th>wva-slo</th><td class=\"none\">–</td>\
         <td class=\"best\">★ <b>99.97</b> / 9.00<small>99.96–99.98 / 9.00</small>\
         <small>370 tokens/s, E2E –</small></td></tr>",
        "<tr class=\"ref\"><th>clairvoyant bound</th><td>99.0 / 5.50</td><td>99.0 / 5.50</td></tr>",
        "<tr class=\"ref\"><th>best static fleet</th><td>–</td><td>98.0 / 8.30</td></tr>",
        "<th class=\"off\"><a href=\"#s0\">heavy</a><small>load/capacity 0.97 \
         <b class=\"infeasible\">infeasible</b></small></th>",
        "<th><a href=\"#s1\">step</a><small>load/capacity 0.62</small></th>",
    ];
    for row in rows {
        assert!(page.contains(row), "{row}");
    }
}

#[test]
fn goodput_the_whole_time_and_classes_are_in_the_table() {
    let folder = Folder::of_step("classes");
    for (seed, chat, p99) in [(1, 0.8, 30.0), (2, 0.9, 40.0)] {
        let mut run = sample::run("step", "keda-epp", seed, (0.95, 7.5));
        run["score"]["e2eSeconds"]["p99"] = json!(p99);
        run["score"]["classes"] = json!({
            "chat": {"requests": 10, "good": 8, "attainment": chat},
            "code": {"requests": 10, "good": 10, "attainment": 1.0},
        });
        folder.put_run(&run);
    }
    let page = page(&folder);
    // 12 million tokens over 27 000 GPU-seconds.
    let cell = "<small>444 tokens/s, E2E 35.0 s</small><small>chat 85.0, code 100</small></td>";
    assert!(page.contains(cell), "{page}");
    let facts = "E2E 1.00 s / 2.00 s / 30.0 s; 444 good tokens a GPU-second;";
    assert!(page.contains(facts), "{page}");
}

#[test]
fn a_best_fleet_that_misses_its_goal_says_so() {
    let folder = small("missed");
    let cell =
        |mark: &str| format!("<th>best static fleet</th><td>–</td><td>98.0 / 8.30{mark}</td>");
    let ratio = "<td>1.08</td>";
    let met = page(&folder);
    assert!(met.contains(&cell("")) && met.contains(ratio));
    let mut step = sample::scenario(7200.0);
    step["bestStatic"]["missesGoal"] = json!(true);
    folder.put_scenarios(&json!({"step": step, "heavy": sample::scenario(7200.0)}));
    let missed = page(&folder).replace("<td>98.0 / 8.30</td>", "<td>–</td>");
    assert!(missed.contains(&cell(", below its goal of 99 %")), "{missed}");
    assert!(missed.contains("best static fleet: 8 × llama-h100, below its goal of 99 %</p>"));
}

#[test]
fn the_overall_table_leaves_infeasible_scenarios_out() {
    let page = page(&small("overall"));
    let overall = page.split("<table class=\"overall\">").nth(1).unwrap();
    let overall = overall.split("</table>").next().unwrap();
    let rows: Vec<&str> = overall.lines().filter(|line| line.starts_with("<tr><th>")).collect();
    let row = |policy: &str, cells: [&str; 8]| {
        let cells: Vec<String> = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
        format!("<tr><th>{policy}</th>{}</tr>", cells.concat())
    };
    // By falling attainment; 9, 7.5 and 12 GPU-hours to 5.5 and 8.3.
    let expected = [
        row("wva-slo", ["99.97", "99.97", "step", "1.64", "1.08", "1 of 1", "1", "1"]),
        row("keda-epp", ["95.0", "95.0", "step", "1.36", "0.90", "1 of 1", "1", "0"]),
        row("apa", ["90.0", "90.0", "step", "2.18", "1.45", "1 of 1", "0", "0"]),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn each_policy_has_a_timeline_with_its_reasons() {
    let folder = small("timelines");
    let page = page(&folder);
    assert_eq!(page.matches("<details class=").count(), 5);
    // Two fronts and five timelines, beyond the keys of the legends.
    assert_eq!(page.matches("<svg class=\"chart\"").count(), 7);
    let reason = "<title>0:00:12: llama-h100 2 → 5: backlog of 12 requests</title>";
    assert_eq!(page.matches(reason).count(), 5);
    assert!(!page.contains("steady</title>"), "a decision that changes nothing has a mark");
    assert!(page.contains(
        "<title>keda-epp: 95.0 % (94.3–95.7), 7.50 GPU-hours (7.40–7.60), seeds: 2</title>"
    ));
    assert!(page.contains("<title>apa: 90.0 %, 12.0 GPU-hours, seeds: 1</title>"));
    assert!(page.contains("clairvoyant 5.50 h, 99.0 %"));
    assert!(page.contains("best static 8.30 h, 98.0 %"));
    assert!(page.contains("SLO 1.00 s</text>"));
    assert!(page.contains("<summary><b>keda-epp</b> 94.3 % / 7.40 GPU-hours (seed 1)</summary>"));
}

#[test]
fn the_page_is_the_same_each_time_and_leaves_no_draft() {
    let folder = small("again");
    assert_eq!(page(&folder), page(&folder));
    assert!(!folder.path().join("report.part").exists());
}

#[test]
fn every_text_is_escaped_and_nothing_is_fetched() {
    let folder = Folder::new("escaped");
    let evil = "<img src=x>&\"'";
    let mut scenario = sample::scenario(7200.0);
    scenario["about"] = json!(format!("about {evil}"));
    scenario["bestStatic"]["replicas"] = json!({evil: 2});
    folder.put_scenarios(&json!({evil: scenario}));
    let mut run = sample::run(evil, &format!("a-policy-{evil}"), 1, (0.9, 7.5));
    run["family"] = json!(format!("a-family-{evil}"));
    let model = run["series"]["models"]["llama"].clone();
    let counts = model["variants"]["llama-h100"].clone();
    let mut models = json!({evil: model, "second": model});
    models[evil]["variants"] = json!({evil: counts});
    run["series"]["models"] = models;
    run["decisions"] = json!([{"at": 9.0, "variant": evil, "from": 0, "to": 4, "why": evil}]);
    run["score"]["classes"] = json!({evil: {"requests": 0, "good": 0, "attainment": 1.0},
        "chat": {"requests": 9, "good": 9, "attainment": 1.0}});
    run["score"]["models"] = run["score"]["classes"].clone();
    folder.put_run(&run);
    let page = page(&folder);
    assert!(!page.contains("<img"), "a name is markup");
    let escaped = "&lt;img src=x&gt;&amp;&quot;&#39;";
    for text in [
        format!("<h2>{escaped}</h2>"),
        format!("<p>about {escaped}</p>"),
        format!("2 × {escaped}"),
        format!("<title>0:00:09: {escaped} 0 → 4: {escaped}</title>"),
        format!("<h3>{escaped}</h3>"),
        format!("By class: {escaped} – of 0; chat 100 % of 9"),
        format!("{escaped}: {escaped}: "),
        format!("<b>a-policy-{escaped}</b>"),
        format!("a-family-{escaped}</span>"),
    ] {
        assert!(page.contains(&text), "{text}");
    }
    for foreign in ["http:", "https:", "//", " src=\"", "<link", "@import", "url("] {
        assert!(!page.contains(foreign), "{foreign}");
    }
}

#[test]
fn runs_without_samples_requests_or_decisions_have_charts_too() {
    let folder = Folder::new("awkward");
    let mut bare = sample::scenario(0.0);
    for field in ["bestStatic", "clairvoyant"] {
        bare[field] = json!(null);
    }
    folder.put_scenarios(&json!({"bare": bare, "idle": sample::scenario(7200.0)}));
    let mut empty = sample::run("bare", "empty", 1, (1.0, 0.0));
    empty["decisions"] = json!([]);
    empty["series"] = json!({"every": 10.0, "at": [], "models": {}});
    folder.put_run(&empty);
    let mut nulls = sample::run("bare", "nulls", 1, (1.0, 0.0));
    nulls["series"]["at"] = json!([0.0]);
    let model = nulls["series"]["models"]["llama"].as_object_mut().unwrap();
    for (name, samples) in &mut *model {
        if name != "variants" {
            *samples = json!([null]);
        }
    }
    for samples in model["variants"]["llama-h100"].as_object_mut().unwrap().values_mut() {
        *samples = json!([null]);
    }
    folder.put_run(&nulls);
    let mut idle = sample::run("idle", "idle", 1, (0.0, 0.17));
    idle["score"]["requests"] = json!(0);
    folder.put_run(&idle);
    let page = page(&folder);
    assert!(page.contains("<p>No policy had a request on this scenario.</p>"));
    assert!(page.contains("<summary><b>idle</b> – / 0.17 GPU-hours (seed 1)</summary>"));
    // The front of the bare scenario, its run with one sample, and the idle run.
    assert_eq!(page.matches("<svg class=\"chart\"").count(), 3);
}

#[test]
fn many_knob_points_leave_one_timeline_a_family() {
    let folder = Folder::of_step("knob-points");
    for number in 0..181_u32 {
        let family = if number % 2 == 0 { "even" } else { "odd" };
        let policy = if number == 8 { "even".to_owned() } else { format!("{family}-{number}") };
        let share = if number == 77 { 0.95 } else { 0.9 };
        let mut run = sample::run("step", &policy, 1, (share, 7.5));
        run["family"] = json!(family);
        run["knob"] = json!(number);
        folder.put_run(&run);
    }
    let page = page(&folder);
    assert!(page.contains("<p>2 of 181 policies have a timeline: one a family.</p>"));
    // The one with the name of the family, and the one of the highest attainment.
    assert!(page.contains("<summary><b>even</b>"));
    assert!(page.contains("<summary><b>odd-77</b>"));
    assert_eq!(page.matches("<summary>").count(), 2);
}

#[test]
fn a_restless_timeline_stays_small() {
    let folder = Folder::of_step("size");
    for seed in 0..6 {
        let mut chance = Spread::new(seed);
        let mut run = sample::long_run(&format!("restless-{seed}"), 1440, || chance.next() * 60.0);
        let decision = |number: u32| {
            json!({"at": f64::from(number) * 24.0, "variant": "llama-h100", "from": number % 2,
                "to": number % 9 + 2, "why": "demand 30.0/s of 6/s a replica at 70 %, backlog 12"})
        };
        run["decisions"] = (0..600).map(decision).collect();
        run["virtualSeconds"] = json!(14_400.0);
        folder.put_run(&run);
    }
    let page = page(&folder);
    let timelines: Vec<&str> = page.split("<details").skip(1).collect();
    assert_eq!(timelines.len(), 6);
    for timeline in timelines {
        // 5 MB for 13 scenarios and 12 policies.
        assert!(timeline.len() < 5_000_000 / (13 * 12), "{} bytes", timeline.len());
    }
}
