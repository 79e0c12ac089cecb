//! The tables of the page: scenarios by policies, and each policy over all scenarios.

use super::page::missed;
use super::results::{
    Overall, PolicyLabel, PolicyOutcome, Results, ScenarioResult, Spread, overall,
};
use super::text::{escape, optional, percent, put, quantity, seconds, tick};

pub(super) fn score_table(results: &Results) -> String {
    let mut table = String::from("<table class=\"scores\"><thead><tr><th>policy</th>");
    for (number, scenario) in results.scenarios.iter().enumerate() {
        table.push_str(&scenario_head(number, scenario));
    }
    table.push_str("</tr></thead><tbody>\n");
    for (position, policy) in results.policies.iter().enumerate() {
        put!(table, "<tr><th>{}</th>", policy_head(policy));
        for scenario in &results.scenarios {
            table.push_str(&score_cell(scenario, position));
        }
        table.push_str("</tr>\n");
    }
    let bound = |scenario: &ScenarioResult| {
        let bound = scenario.record.clairvoyant.as_ref()?;
        Some((bound.attainment, bound.gpu_hours, ""))
    };
    table.push_str(&reference_row("clairvoyant bound", &results.scenarios, bound));
    let fleet = |scenario: &ScenarioResult| {
        let fleet = scenario.record.best_static.as_ref()?;
        Some((fleet.attainment, fleet.gpu_hours, missed(fleet)))
    };
    table.push_str(&reference_row("best static fleet", &results.scenarios, fleet));
    table.push_str("</tbody></table>");
    table
}

fn policy_head(policy: &PolicyLabel) -> String {
    let mut head = escape(&policy.name);
    if let Some(knob) = policy.knob {
        put!(head, " <small>knob {}</small>", tick(knob));
    }
    if policy.has_hindsight {
        head.push_str(" <small>knows the load</small>");
    }
    head
}

/// The offered load of a scenario, with a mark where no policy can serve it.
pub(super) fn load_text(scenario: &ScenarioResult) -> String {
    let Some(load) = scenario.record.load_to_capacity else {
        return "load/capacity unknown".to_owned();
    };
    let mark = if scenario.is_feasible() { "" } else { " <b class=\"infeasible\">infeasible</b>" };
    format!("load/capacity {load:.2}{mark}")
}

fn scenario_head(number: usize, scenario: &ScenarioResult) -> String {
    let (name, load) = (escape(&scenario.name), load_text(scenario));
    let class = if scenario.is_feasible() { "" } else { " class=\"off\"" };
    format!("<th{class}><a href=\"#s{number}\">{name}</a><small>{load}</small></th>")
}

fn score_cell(scenario: &ScenarioResult, position: usize) -> String {
    let Some(outcome) = scenario.outcome(position) else {
        return "<td class=\"none\">–</td>".to_owned();
    };
    let (class, mark) = if scenario.best == Some(position) {
        (" class=\"best\"", "★ ")
    } else if scenario.front.contains(&position) {
        (" class=\"front\"", "● ")
    } else {
        ("", "")
    };
    format!("<td{class}>{mark}{}</td>", outcome_text(outcome))
}

fn outcome_text(outcome: &PolicyOutcome) -> String {
    let hours = outcome.gpu_hours;
    let Some(share) = outcome.attainment else {
        let hours = quantity(hours.mean);
        return format!("no requests / {hours}");
    };
    let mut text = format!("<b>{}</b> / {}", percent(share.mean), quantity(hours.mean));
    if outcome.seeds > 1 {
        let (shares, hours) = (range(share, percent), range(hours, quantity));
        put!(text, "<small>{shares} / {hours}</small>");
    }
    let mean = |spread: Option<Spread>| spread.map(|spread| spread.mean);
    let goodput = optional(mean(outcome.goodput), quantity);
    let e2e = optional(mean(outcome.e2e), seconds);
    put!(text, "<small>{goodput} tokens/s, E2E {e2e}</small>");
    if outcome.classes.len() > 1 {
        let classes = outcome.classes.iter();
        let classes =
            classes.map(|(name, share)| format!("{} {}", escape(name), percent(share.mean)));
        let classes: Vec<String> = classes.collect();
        put!(text, "<small>{}</small>", classes.join(", "));
    }
    text
}

fn range(spread: Spread, format: impl Fn(f64) -> String) -> String {
    let (low, high) = (format(spread.low), format(spread.high));
    if low == high { low } else { format!("{low}–{high}") }
}

fn reference_row(
    name: &str,
    scenarios: &[ScenarioResult],
    reference: impl Fn(&ScenarioResult) -> Option<(f64, f64, &'static str)>,
) -> String {
    let mut row = format!("<tr class=\"ref\"><th>{name}</th>");
    for scenario in scenarios {
        let cell = reference(scenario).map_or_else(
            || "–".to_owned(),
            |(share, hours, mark)| format!("{} / {}{mark}", percent(share), quantity(hours)),
        );
        put!(row, "<td>{cell}</td>");
    }
    row.push_str("</tr>\n");
    row
}

pub(super) fn overall_table(results: &Results) -> String {
    let policies = results.policies.iter().enumerate();
    let mut rows: Vec<(&PolicyLabel, Overall)> =
        policies.map(|(position, policy)| (policy, overall(results, position))).collect();
    let mean = |overall: &Overall| overall.attainment.map_or(-1.0, |spread| spread.mean);
    rows.sort_by(|one, other| mean(&other.1).total_cmp(&mean(&one.1)));
    let feasible = results.scenarios.iter().filter(|it| it.is_feasible()).count();
    let mut table = String::from(
        "<table class=\"overall\"><thead><tr><th>policy</th><th>mean attainment, %</th>\
         <th>lowest, %</th><th>on scenario</th><th>GPU-hours to clairvoyant</th>\
         <th>GPU-hours to best static</th><th>scenarios</th><th>on the front</th><th>best</th>\
         </tr></thead><tbody>\n",
    );
    for (policy, overall) in rows {
        let ratio = |ratio: Option<(f64, usize)>| {
            let text = optional(ratio.map(|ratio| ratio.0), |mean| format!("{mean:.2}"));
            match ratio {
                Some((_, count)) if count < overall.scenarios => {
                    format!("{text} <small>of {count}</small>")
                }
                _ => text,
            }
        };
        let cells = [
            optional(overall.attainment.map(|it| it.mean), percent),
            optional(overall.attainment.map(|it| it.low), percent),
            escape(overall.hardest.as_deref().unwrap_or("–")),
            ratio(overall.to_clairvoyant),
            ratio(overall.to_static),
            format!("{} of {feasible}", overall.scenarios),
            overall.on_front.to_string(),
            overall.best.to_string(),
        ];
        let head = policy_head(policy);
        let cells = cells.map(|cell| format!("<td>{cell}</td>")).concat();
        put!(table, "<tr><th>{head}</th>{cells}</tr>\n");
    }
    table.push_str("</tbody></table>");
    table
}
