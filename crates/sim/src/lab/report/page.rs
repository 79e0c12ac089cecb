//! The page: one file with its style, its script and its charts.

use std::collections::{BTreeMap, BTreeSet};

use super::super::fluid::FEASIBLE;
use super::super::record::{BestStatic, GroupScore, Quantiles, ScenarioSummary};
use super::super::table::MISSED;
use super::canvas::{Ink, family_ink, marker};
use super::front::front_chart;
use super::results::{PolicyLabel, PolicyOutcome, Results, ScenarioResult};
use super::tables::{load_text, overall_table, score_table};
use super::text::{escape, optional, percent, put, quantity, seconds};
use super::timeline::{moment, timeline_charts, variant_number};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The most timelines of a page. Above it, each family has one.
const TIMELINES: usize = 180;

pub(super) fn page(results: &Results) -> Result<String, String> {
    let mut page = head(results);
    page.push_str("<h2 id=\"scores\">Attainment and GPU-hours</h2>\n");
    page.push_str(SCORES_NOTE);
    put!(page, "<div class=\"wide\">{}</div>\n", score_table(results));
    page.push_str("<h2 id=\"overall\">Over all feasible scenarios</h2>\n");
    page.push_str(OVERALL_NOTE);
    put!(page, "<div class=\"wide\">{}</div>\n", overall_table(results));
    let shown = shown(results);
    for (number, scenario) in results.scenarios.iter().enumerate() {
        page.push_str(&section(results, number, scenario, &shown)?);
    }
    put!(page, "<script>{SCRIPT}</script>\n</body></html>\n");
    Ok(page)
}

const SCORES_NOTE: &str = "<p>Each cell: requests within SLO in percent / GPU-hours, mean over \
    seeds; below it the range over seeds, then means: output tokens of good requests a GPU-second, the 99th \
    percentile of E2E, and attainment by class where there are several. ● on the front: no other policy has \
    more attainment for at most the same GPU-hours. ★ best: the cheapest policy within one point of the highest \
    attainment.</p>\n";

const OVERALL_NOTE: &str = "<p>Means of the scenario means; infeasible scenarios are left out. \
    GPU-hours to clairvoyant is the mean ratio of GPU-hours to those of the clairvoyant bound (1 is \
    no regret). A ratio below 1 with a low attainment means that requests were not served.</p>\n";

fn head(results: &Results) -> String {
    let seeds: Vec<String> = results.seeds.iter().map(ToString::to_string).collect();
    let mut head = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>Policy laboratory</title><style>{STYLE}</style></head><body>\n\
         <h1>Policy laboratory</h1>\n<p>{} scenarios, {} policies, {} runs, seeds {}. An offered \
         load above {FEASIBLE} of the capacity at the maximum makes a scenario infeasible.</p>\n",
        results.scenarios.len(),
        results.policies.len(),
        results.runs,
        seeds.join(", "),
    );
    head.push_str("<nav><a href=\"#scores\">scores</a> <a href=\"#overall\">overall</a>");
    for (number, scenario) in results.scenarios.iter().enumerate() {
        let name = escape(&scenario.name);
        put!(head, " <a href=\"#s{number}\">{name}</a>");
    }
    // Shown by the script alone.
    head.push_str("</nav>\n<p id=\"choice\" hidden><label>scenario <select id=\"scenario\">");
    head.push_str("<option value=\"\">all</option>");
    for (number, scenario) in results.scenarios.iter().enumerate() {
        let name = escape(&scenario.name);
        put!(head, "<option value=\"s{number}\">{name}</option>");
    }
    head.push_str("</select></label> <label>open the timelines of <select id=\"policy\">");
    head.push_str("<option value=\"\">none</option>");
    for (position, policy) in results.policies.iter().enumerate() {
        let name = escape(&policy.name);
        put!(head, "<option value=\"p{position}\">{name}</option>");
    }
    head.push_str("</select></label></p>\n");
    head
}

/// The timelines that the page has: scenario and policy by their positions.
fn shown(results: &Results) -> BTreeSet<(usize, usize)> {
    let mut all = BTreeSet::new();
    let mut chosen: BTreeMap<(usize, usize), (f64, usize)> = BTreeMap::new();
    for (number, scenario) in results.scenarios.iter().enumerate() {
        for (position, policy) in results.policies.iter().enumerate() {
            if scenario.outcome(position).is_none() {
                continue;
            }
            all.insert((number, position));
            // The policy with the name of its family, else the one of the highest attainment.
            let rank = if policy.name == policy.family {
                f64::INFINITY
            } else {
                scenario.point(position).map_or(-1.0, |point| point.0)
            };
            let place = chosen.entry((number, policy.family_index)).or_insert((rank, position));
            if rank > place.0 {
                *place = (rank, position);
            }
        }
    }
    if all.len() <= TIMELINES {
        return all;
    }
    chosen.into_iter().map(|((number, _), (_, position))| (number, position)).collect()
}

fn section(
    results: &Results,
    number: usize,
    scenario: &ScenarioResult,
    shown: &BTreeSet<(usize, usize)>,
) -> Result<String, String> {
    let name = escape(&scenario.name);
    let mut section = format!("<section id=\"s{number}\"><h2>{name}</h2>\n");
    section.push_str(&facts(scenario));
    match front_chart(scenario, &results.policies)? {
        Some(chart) => {
            let legend = front_legend(scenario, &results.policies);
            put!(section, "<figure>{chart}<figcaption>{legend}</figcaption></figure>\n");
        }
        None => section.push_str("<p>No policy had a request on this scenario.</p>\n"),
    }
    section.push_str(&timeline_legend(scenario));
    for (position, policy) in results.policies.iter().enumerate() {
        let Some(outcome) = scenario.outcome(position) else {
            continue;
        };
        if shown.contains(&(number, position)) {
            let details = details(scenario, policy, outcome)?;
            let class = format!("<details class=\"p{position}\">");
            put!(section, "{class}{details}</details>\n");
        }
    }
    let run = scenario.outcomes.iter().flatten().count();
    let drawn = shown.iter().filter(|(scenario, _)| *scenario == number).count();
    if drawn < run {
        let note = format!("<p>{drawn} of {run} policies have a timeline: one a family.</p>\n");
        section.push_str(&note);
    }
    section.push_str("</section>\n");
    Ok(section)
}

fn facts(scenario: &ScenarioResult) -> String {
    let ScenarioSummary { about, slo_ttft_seconds, slo_itl_seconds, seconds: length, from, .. } =
        &scenario.record;
    let mut facts = format!(
        "<p>{}</p><p class=\"facts\">{}; SLO: TTFT {}, ITL {}; length {}, scored from {}",
        escape(about),
        load_text(scenario),
        seconds(*slo_ttft_seconds),
        seconds(*slo_itl_seconds),
        moment(*length),
        moment(*from),
    );
    if let Some(fleet) = &scenario.record.best_static {
        let replicas = fleet.replicas.iter();
        let replicas = replicas.map(|(variant, count)| format!("{count} × {}", escape(variant)));
        let replicas: Vec<String> = replicas.collect();
        put!(facts, "; best static fleet: {}{}", replicas.join(", "), missed(fleet));
    }
    facts.push_str("</p>\n");
    facts
}

pub(super) fn missed(fleet: &BestStatic) -> &'static str {
    if fleet.misses_goal { MISSED } else { "" }
}

fn key(class: &str, shape: &str) -> String {
    format!(
        "<svg class=\"key\" viewBox=\"0 0 22 12\" width=\"22\"><path class=\"{class}\" d=\"{shape}\"/></svg>"
    )
}

fn front_legend(scenario: &ScenarioResult, policies: &[PolicyLabel]) -> String {
    let has_point = |position: usize| scenario.point(position).is_some();
    let present = policies.iter().enumerate();
    let present: Vec<&PolicyLabel> =
        present.filter(|(position, _)| has_point(*position)).map(|(_, policy)| policy).collect();
    let mut legend = String::new();
    for family in present.chunk_by(|one, other| one.family == other.family) {
        let Some(first) = family.first() else {
            continue;
        };
        let index = first.family_index;
        let class = format!("mk {}", family_ink(index).class());
        let knobs: Vec<String> =
            family.iter().filter_map(|policy| policy.knob.map(super::text::tick)).collect();
        let knobs = if knobs.is_empty() {
            String::new()
        } else {
            format!(" <small>{}</small>", knobs.join(", "))
        };
        let key = key(&class, &marker(index, (11, 6)));
        put!(legend, "<span>{key}{}{knobs}</span> ", escape(&first.family));
    }
    let front = key(&format!("l {}", Ink::Front.class()), "M0 6h22");
    put!(legend, "<span>{front}front</span>");
    legend
}

fn timeline_legend(scenario: &ScenarioResult) -> String {
    let mut variants: BTreeMap<(&str, &str), u8> = BTreeMap::new();
    for outcome in scenario.outcomes.iter().flatten() {
        for (model, series) in &outcome.timeline.series.models {
            for (position, variant) in series.variants.keys().enumerate() {
                variants.insert((model, variant), variant_number(position));
            }
        }
    }
    let mut legend = String::from("<p class=\"legend\">");
    let several = variants.keys().any(|(model, _)| variants.keys().any(|other| other.0 != *model));
    for ((model, variant), number) in &variants {
        let lines = [
            (Ink::Ready(*number), "ready"),
            (Ink::Scale(*number), "scale"),
            (Ink::Desired(*number), "desired"),
        ];
        let model = if several { format!("{}: ", escape(model)) } else { String::new() };
        let lines = lines
            .map(|(ink, name)| format!("{}{name} ", key(&format!("l {}", ink.class()), "M0 6h22")));
        let variant = escape(variant);
        put!(legend, "<span>{model}{variant}: {}</span> ", lines.concat());
    }
    for (ink, name) in [
        (Ink::Arrivals, "arrivals"),
        (Ink::Held, "held by the router"),
        (Ink::Waiting, "waiting in servers"),
        (Ink::Unscored, "not scored"),
    ] {
        let key = key(&format!("a {}", ink.class()), "M0 1h22v10h-22z");
        put!(legend, "<span>{key}{name}</span> ");
    }
    legend.push_str("<span>▲ ▼ decision, with its reason as a tooltip</span></p>\n");
    legend
}

fn quantiles(quantiles: &Quantiles) -> String {
    let text = [quantiles.p50, quantiles.p90, quantiles.p99];
    text.map(|value| optional(value, seconds)).join(" / ")
}

fn details(
    scenario: &ScenarioResult,
    policy: &PolicyLabel,
    outcome: &PolicyOutcome,
) -> Result<String, String> {
    let score = &outcome.score;
    let seed = outcome.timeline.seed;
    let share = optional(score.share(), |share| format!("{} %", percent(share)));
    let name = escape(&policy.name);
    let mut details = format!(
        "<summary><b>{name}</b> {share} / {} GPU-hours (seed {seed})</summary>\n",
        quantity(score.gpu_hours())
    );
    put!(
        details,
        "<p class=\"facts\">{} requests: {} good, {} late, {} refused, {} failed, {} \
             unfinished; TTFT p50 / p90 / p99 {}; ITL {}; E2E {}; {} good tokens a GPU-second; overload {}; \
             cost {}; {} scalings, {} reversals; scored from {}</p>\n",
        score.requests,
        score.good,
        score.late,
        score.refused,
        score.failed,
        score.unfinished,
        quantiles(&score.ttft_seconds),
        quantiles(&score.itl_seconds),
        quantiles(&score.e2e_seconds),
        optional(score.goodput(), quantity),
        seconds(score.overload_seconds),
        quantity(score.cost),
        score.scalings,
        score.reversals,
        moment(score.from)
    );
    details.push_str(&parts("class", &score.classes));
    details.push_str(&parts("model", &score.models));
    let label = format!("{} under {}", scenario.name, policy.name);
    let charts = timeline_charts(&outcome.timeline, &scenario.record, &label)?;
    let several = charts.len() > 1;
    for (model, chart) in charts {
        if several {
            put!(details, "<h3>{}</h3>", escape(&model));
        }
        put!(details, "<figure>{chart}</figure>\n");
    }
    Ok(details)
}

fn parts(kind: &str, parts: &BTreeMap<String, GroupScore>) -> String {
    if parts.len() < 2 && parts.values().all(|part| part.minutes.is_none()) {
        return String::new();
    }
    let texts = parts.iter().map(|(name, part)| {
        let share = (part.requests > 0).then_some(part.attainment);
        let share = optional(share, |share| format!("{} %", percent(share)));
        let minutes = part.minutes.map(percent);
        let minutes = minutes
            .map_or_else(String::new, |share| format!(", its quantile in {share} % of minutes"));
        format!("{} {share} of {}{minutes}", escape(name), part.requests)
    });
    let texts: Vec<String> = texts.collect();
    format!("<p class=\"facts\">By {kind}: {}</p>\n", texts.join("; "))
}
