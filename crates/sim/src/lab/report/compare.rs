//! Two laboratory folders against each other, as Markdown.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::super::files::{read_run, run_files, wrong};
use super::results::Spread;
use super::text::{cell, percent, put, quantity};

/// Attainment, `None` without requests, and GPU-hours.
type Score = (Option<f64>, f64);

type Scores = BTreeMap<(String, String), BTreeMap<u64, Score>>;

fn read_scores(dir: &Path) -> Result<Scores, String> {
    let mut scores = Scores::new();
    for path in run_files(dir)? {
        let run = read_run(&path)?;
        let score = (run.score.share(), run.score.gpu_hours());
        let seeds = scores.entry((run.scenario, run.policy)).or_default();
        if seeds.insert(run.seed, score).is_some() {
            let problem = format!("{} has another file with this scenario and policy", run.seed);
            return Err(wrong(&path, "seed", &problem));
        }
    }
    Ok(scores)
}

/// Returns a Markdown table of two folders: attainment and GPU-hours of each scenario and policy, and
/// their differences.
pub(crate) fn compare(a: &Path, b: &Path) -> Result<String, String> {
    let (ours, theirs) = (read_scores(a)?, read_scores(b)?);
    let mut text = format!(
        "A: {}, B: {}. Means over the seeds that both have; differences are B less A.\n\n\
         | scenario | policy | seeds | attainment A, % | B, % | points | GPU-hours A | B | \
         change, % |\n|---|---|--:|--:|--:|--:|--:|--:|--:|\n",
        cell(&a.to_string_lossy()),
        cell(&b.to_string_lossy()),
    );
    let keys: BTreeSet<&(String, String)> = ours.keys().chain(theirs.keys()).collect();
    let mut single = Vec::new();
    for key in keys {
        match (ours.get(key), theirs.get(key)) {
            (Some(first), Some(second)) => match row(key, first, second) {
                Some(row) => text.push_str(&row),
                None => single.push(format!("- {}: no common seed", name(key))),
            },
            (Some(_), None) => single.push(format!("- {}: in A alone", name(key))),
            (None, _) => single.push(format!("- {}: in B alone", name(key))),
        }
    }
    if !single.is_empty() {
        put!(text, "\nNot compared:\n\n{}\n", single.join("\n"));
    }
    Ok(text)
}

fn name((scenario, policy): &(String, String)) -> String {
    format!("{}, {}", cell(scenario), cell(policy))
}

/// None without a seed that both have.
fn row(
    (scenario, policy): &(String, String),
    first: &BTreeMap<u64, Score>,
    second: &BTreeMap<u64, Score>,
) -> Option<String> {
    let pairs = first.iter().filter_map(|(seed, score)| Some((*score, *second.get(seed)?)));
    let pairs: Vec<(Score, Score)> = pairs.collect();
    let shares: Vec<(f64, f64)> = pairs.iter().filter_map(|(a, b)| Some((a.0?, b.0?))).collect();
    let hours: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (a.1, b.1)).collect();
    let (hours_a, hours_b) = means(&hours)?;
    let change = if hours_a > 0.0 {
        format!("{:+.1}", (hours_b / hours_a - 1.0) * 100.0)
    } else {
        "–".to_owned()
    };
    let attained = match means(&shares) {
        Some((a, b)) => {
            let points = (b - a) * 100.0;
            format!("{} | {} | {points:+.1}", percent(a), percent(b))
        }
        None => "– | – | –".to_owned(),
    };
    let (scenario, policy) = (cell(scenario), cell(policy));
    Some(format!(
        "| {scenario} | {policy} | {} | {attained} | {} | {} | {change} |\n",
        pairs.len(),
        quantity(hours_a),
        quantity(hours_b),
    ))
}

fn means(pairs: &[(f64, f64)]) -> Option<(f64, f64)> {
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    Some((Spread::of(&a)?.mean, Spread::of(&b)?.mean))
}
