//! Generated fleets: the same number gives the same snapshot.
//!
//! The process plans each fleet every 30 s, since some analyzers confirm a decision in a second cycle,
//! and wait for each other at first. `fleets.txt` holds the last of eight plans under one of the settings
//! with its reasons; `targets.txt` holds the targets of the first two plans under all of them.

mod generate;

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use wva::policy::document::{SnapshotDocument, Span};
use wva::policy::params::DynamicSettings;
use wva::settings::bundle::read_bundle;

use self::generate::fleet;
use super::decisions::{COLUMNS, Made, count, line, made};
use super::{is_golden, is_golden_with};

const FLEETS: u64 = 200;
/// Uptime of the process at the first plan, and the time to the next one.
const START: Duration = Duration::from_hours(2);
const CYCLE: Duration = Duration::from_secs(30);
/// Plans after which analyzers no longer wait for each other.
const PLANS: u32 = 8;

/// Every way to decide, alone and together, by a name without spaces.
const SETTINGS: [(&str, &str); 14] = [
    ("percentages", ""),
    ("tokens", "saturation: {default: {analyzerName: saturation}}"),
    ("limiter", "saturation: {default: {analyzerName: saturation, enableLimiter: true}}"),
    (
        "voters",
        "saturation: {default: {analyzers: [{name: saturation}, {name: queueing-model, score: 2}, {name: throughput}]}}",
    ),
    (
        "queueing",
        "queueingModel: {default: {}, one: {model_id: m, namespace: ns, targetTTFT: 500, targetITL: 24}}",
    ),
    ("hybrid", "EXPERIMENTAL_PROACTIVE_MODEL: true"),
    (
        "hybrid-tokens",
        "EXPERIMENTAL_PROACTIVE_MODEL: true\nsaturation: {default: {analyzerName: saturation}}",
    ),
    (
        "hybrid-targets",
        "EXPERIMENTAL_PROACTIVE_MODEL: true\nqueueingModel: {default: {}, one: {model_id: m, namespace: ns, targetTTFT: 500, targetITL: 24}}",
    ),
    (
        "zero",
        "WVA_LIMITED_MODE: true\nscaleToZero: {default: {enable_scale_to_zero: true, retention_period: 1m}}",
    ),
    ("throughput", "saturation: {default: {analyzers: [{name: throughput}]}}"),
    (
        "rescale",
        "saturation: {default: {analyzers: [{name: saturation}, {name: throughput}], enableLimiter: true, enableRescale: true}, one: {modelId: n, namespace: ns, priority: 3}}",
    ),
    (
        "quota",
        "saturation: {default: {analyzerName: saturation, enableLimiter: true, enableRescale: true, limiters: [{name: q, type: quota, scope: cluster, quotas: {H100: 6}}]}}",
    ),
    (
        "queueing-tokens",
        "queueingModel: {default: {}, one: {model_id: m, namespace: ns, targetTTFT: 500, targetITL: 24}}\nsaturation: {default: {analyzers: [{name: saturation}, {name: queueing-model}]}}",
    ),
    (
        "queueing-quota",
        "queueingModel: {default: {}, one: {model_id: m, namespace: ns, targetTTFT: 500, targetITL: 24}}\nsaturation: {default: {enableLimiter: true, enableRescale: true, limiters: [{name: q, type: quota, scope: cluster, quotas: {H100: 6}}]}}",
    ),
];

/// Plans a fleet so many times, each with what the plan before taught, and returns the last ones.
fn plans<const KEPT: usize>(
    number: u64,
    document: &SnapshotDocument,
    settings: &DynamicSettings,
    plans: u32,
) -> [Made; KEPT] {
    let name = format!("fleet {number:03}");
    let mut document = document.clone();
    let mut all: Vec<Made> = Vec::new();
    for plan in 0..plans {
        document.time.uptime = Some(Span(START + CYCLE * plan));
        let before = all.last().map(|made| made.learned.clone());
        all.push(made(&name, &document, before.unwrap_or_default(), settings));
    }
    let last = all.split_off(all.len() - KEPT);
    last.try_into().map_err(drop).unwrap()
}

fn document(number: u64) -> SnapshotDocument {
    let text = fleet(number);
    SnapshotDocument::parse(&text).unwrap_or_else(|error| panic!("{number}: {error}\n{text}"))
}

fn all_settings() -> Vec<(&'static str, DynamicSettings)> {
    let read = |(name, text): (&'static str, &str)| {
        let settings = read_bundle(text).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
        (name, settings)
    };
    SETTINGS.into_iter().map(read).collect()
}

/// Writes what repeats the lines of `fleets.txt` with `wva plan`; returns where.
fn keep(settings: &[(&str, DynamicSettings)]) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("golden");
    fs::create_dir_all(&folder).unwrap();
    for (name, text) in SETTINGS {
        fs::write(folder.join(format!("{name}.yaml")), text).unwrap();
    }
    for (number, (_, settings)) in (0..FLEETS).zip(settings.iter().cycle()) {
        let [made] = plans(number, &document(number), settings, PLANS);
        let (snapshot, now) = (&made.situation.snapshot, made.situation.now);
        let document = SnapshotDocument::of(snapshot, &made.learned, now);
        let text = serde_json::to_string_pretty(&document).unwrap();
        fs::write(folder.join(format!("{number:03}.json")), text).unwrap();
    }
    folder
}

#[test]
fn generated_fleets() {
    let settings = all_settings();
    let mut page = format!("# fleet  settings, then:\n{COLUMNS}");
    for (number, (name, settings)) in (0..FLEETS).zip(settings.iter().cycle()) {
        let [made] = plans(number, &document(number), settings, PLANS);
        for decision in made.plan.decisions.values() {
            writeln!(page, "{number:03} {name:<15} {}", line(decision)).unwrap();
        }
    }
    is_golden_with("fleets.txt", &page, || {
        let folder = keep(&settings);
        let folder = folder.display();
        format!(
            "`wva plan --snapshot {folder}/NUMBER.json --settings {folder}/NAME.yaml` repeats a line"
        )
    });
}

#[test]
fn targets_under_every_setting() {
    let settings = all_settings();
    let mut page = String::from(
        "# Targets of the fleets: the first plan, after a comma the second one where it differs.\n",
    );
    page.push_str("# The first number is that of existing replicas. Columns:");
    for (name, _) in &settings {
        write!(page, " {name}").unwrap();
    }
    page.push('\n');
    for number in 0..FLEETS {
        let document = document(number);
        let all: Vec<[Made; 2]> =
            settings.iter().map(|(_, settings)| plans(number, &document, settings, 2)).collect();
        for (key, decision) in &all[0][0].plan.decisions {
            let current = count(decision.current);
            write!(page, "{number:03} {key} {current}:").unwrap();
            for both in &all {
                let [first, second] =
                    both.each_ref().map(|made| count(made.plan.decisions[key].target));
                let cell = if first == second { first } else { format!("{first},{second}") };
                write!(page, " {cell:>3}").unwrap();
            }
            page.push('\n');
        }
    }
    is_golden("targets.txt", &page);
}
