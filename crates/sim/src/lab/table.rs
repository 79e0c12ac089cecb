//! The runs of a folder as a table: one line a run for programs, one a scenario and policy for people.

use std::collections::BTreeMap;

use super::number;
use super::record::{LabRecord, Quantiles, ScenarioSummary};
use super::report::Spread;

const COLUMNS: &str = "scenario,policy,family,knob,seed,attainment,gpu_hours,cost,requests,good,\
                       good_tokens_per_gpu_s,ttft_p50,ttft_p90,ttft_p99,itl_p50,itl_p90,itl_p99,\
                       e2e_p50,e2e_p90,e2e_p99,overload_s,scalings,reversals,goal,classes\n";

/// What follows the name of a best fixed fleet that is none.
pub(super) const MISSED: &str = ", below its goal of 99 %";

pub(super) fn csv(records: &[LabRecord]) -> String {
    let optional = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let quantiles = |of: Quantiles| [of.p50, of.p90, of.p99].map(optional).join(",");
    let lines = records.iter().map(|record| {
        let score = &record.score;
        let classes = score.classes.iter();
        let classes = classes.map(|(name, class)| {
            let minutes = class.minutes;
            let minutes = minutes.map_or_else(String::new, |share| format!(" minutes={share}"));
            format!("{name}={}{minutes}", class.attainment)
        });
        let classes: Vec<String> = classes.collect();
        let fields = [
            record.scenario.clone(),
            record.policy.clone(),
            record.family.clone(),
            optional(record.knob),
            record.seed.to_string(),
            score.attainment.to_string(),
            record.score.gpu_hours().to_string(),
            score.cost.to_string(),
            score.requests.to_string(),
            score.good.to_string(),
            optional(score.goodput()),
            quantiles(score.ttft_seconds),
            quantiles(score.itl_seconds),
            quantiles(score.e2e_seconds),
            score.overload_seconds.to_string(),
            score.scalings.to_string(),
            score.reversals.to_string(),
            (if record.misses_goal() { "missed" } else { "" }).to_owned(),
            format!("\"{}\"", classes.join(";").replace('"', "\"\"")),
        ];
        fields.join(",") + "\n"
    });
    std::iter::once(COLUMNS.to_owned()).chain(lines).collect()
}

/// Attainment in percent over GPU-hours, the mean with the range over seeds.
pub(super) fn markdown(
    records: &[LabRecord],
    scenarios: &BTreeMap<String, ScenarioSummary>,
) -> String {
    let mut cells: BTreeMap<(&str, &str), Vec<&LabRecord>> = BTreeMap::new();
    for record in records {
        let place = (&*record.scenario, &*record.policy);
        cells.entry(place).or_default().push(record);
    }
    let mut text = String::new();
    let mut last = "";
    for ((scenario, policy), runs) in cells {
        if scenario != last {
            last = scenario;
            text.push_str(&heading(scenario, scenarios.get(scenario)));
        }
        let of = |value: fn(&LabRecord) -> f64, digits| {
            let values: Vec<f64> = runs.iter().map(|run| value(run)).collect();
            Spread::of(&values).map_or_else(String::new, |spread| range(spread, digits))
        };
        let attainment = of(|run| run.score.attainment * 100.0, 1);
        let hours = of(|run| run.score.gpu_hours(), 2);
        let cost = of(|run| run.score.cost, 1);
        let scalings = of(|run| number::real(run.score.scalings), 0);
        let misses = runs.first().is_some_and(|run| run.misses_goal());
        let mark = if misses { MISSED } else { "" };
        let cells = [attainment, hours, cost, scalings].join(" | ");
        text.extend([format!("| {policy}{mark} | {cells} |\n")]);
    }
    text
}

fn heading(name: &str, summary: Option<&ScenarioSummary>) -> String {
    let mut text = format!("\n### {name}\n\n");
    if let Some(summary) = summary {
        let load = match (summary.load_to_capacity, summary.is_feasible) {
            (Some(load), true) => format!("{load:.2}, feasible"),
            (Some(load), false) => format!("{load:.2}, infeasible"),
            (None, _) => "unknown for prefill and decode".to_owned(),
        };
        text.extend([format!(
            "{} Load over capacity at the maximum: {load}. The first {} s are not scored.",
            summary.about, summary.from
        )]);
        if let Some(bound) = summary.clairvoyant {
            text.extend([format!(
                " Clairvoyant: {:.1} % at {:.2} GPU-h.",
                bound.attainment * 100.0,
                bound.gpu_hours
            )]);
        }
        text.push_str("\n\n");
    }
    text.push_str("| policy | SLO % | GPU-h | cost | scalings |\n|---|---|---|---|---|\n");
    text
}

fn range(spread: Spread, digits: usize) -> String {
    let shown = |value: f64| format!("{value:.digits$}");
    let (least, mean, most) = (shown(spread.low), shown(spread.mean), shown(spread.high));
    if least == most { mean } else { format!("{mean} ({least}–{most})") }
}
