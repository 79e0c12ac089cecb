//! What the runs of a scenario share.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::campaign::Campaign;
use super::files::write;
use super::fluid::{FEASIBLE, FluidDemand, GOAL, fixed_fleet, mean_lengths, scored};
use super::number;
use super::record::{BestStatic, Clairvoyant, LabRecord, ScenarioSummary};
use super::scenario::{LoadedScenario, prepare};

/// Writes what the runs of each scenario share; scenarios of earlier campaigns stay.
pub(super) fn scenarios(
    campaign: &Campaign,
    records: &[LabRecord],
) -> Result<BTreeMap<String, ScenarioSummary>, String> {
    let path = campaign.out.join("scenarios.json");
    let known = fs::read(&path).ok();
    let known = known.and_then(|text| serde_json::from_slice(&text).ok());
    let mut all: BTreeMap<String, ScenarioSummary> = known.unwrap_or_default();
    for scenario in &campaign.scenarios {
        if let Some(summary) = summary(scenario, campaign.traces.as_deref(), records) {
            all.insert(scenario.name().to_owned(), summary);
        }
    }
    // A summary always has a text.
    write(&path, &serde_json::to_vec_pretty(&all).unwrap_or_default())?;
    Ok(all)
}

/// None where the load cannot be read; the runs have reported why.
fn summary(
    scenario: &LoadedScenario,
    traces: Option<&Path>,
    records: &[LabRecord],
) -> Option<ScenarioSummary> {
    let spec = &scenario.spec;
    let prepared = prepare(spec, traces, 1).ok()?;
    let scored = scored(spec.prelude.0, spec.duration.0);
    let models = prepared.scenario.models.iter().zip(&prepared.loads);
    let mut load: Option<f64> = None;
    let mut bound = Some(Clairvoyant::default());
    let (mut good, mut all) = (0.0, 0.0);
    for (model, requests) in models {
        let demand = FluidDemand::new(model, requests, scored);
        let own = demand.as_ref().map(FluidDemand::load_to_capacity);
        load = own.into_iter().chain(load).reduce(f64::max);
        bound = bound.zip(demand).map(|(mut bound, demand)| {
            let found = demand.clairvoyant();
            let count = number::length(requests.arrivals.len());
            bound.gpu_hours += found.gpu_hours;
            good += found.attainment * count;
            all += count;
            bound
        });
    }
    if let Some(bound) = &mut bound {
        bound.attainment = if all > 0.0 { good / all } else { 1.0 };
    }
    let best = best_static(scenario.name(), records).map(|(count, best)| {
        let models = prepared.scenario.models.iter().zip(&prepared.loads);
        let fleets = models.flat_map(|(model, load)| fixed_fleet(model, mean_lengths(load), count));
        let replicas = fleets.map(|(name, count)| (name.to_owned(), count));
        BestStatic { replicas: replicas.collect(), ..best }
    });
    // The fluid model knows no prefix caches: a fixed fleet may do with less.
    if let (Some(bound), Some(best)) = (&mut bound, &best)
        && best.attainment >= GOAL
        && best.gpu_hours < bound.gpu_hours
    {
        (bound.gpu_hours, bound.attainment) = (best.gpu_hours, best.attainment);
    }
    let slo = spec.models.first().map(|model| model.slo);
    Some(ScenarioSummary {
        about: scenario.about().to_owned(),
        load_to_capacity: load,
        is_feasible: load.is_none_or(|load| load <= FEASIBLE),
        slo_ttft_seconds: slo.map_or(0.0, |slo| slo.ttft.0.as_secs_f64()),
        slo_itl_seconds: slo.map_or(0.0, |slo| slo.itl.0.as_secs_f64()),
        seconds: spec.duration.0.as_secs_f64(),
        from: spec.prelude.0.as_secs_f64(),
        best_static: best,
        clairvoyant: bound,
    })
}

/// Replicas of each model, and means over seeds.
fn best_static(scenario: &str, records: &[LabRecord]) -> Option<(u32, BestStatic)> {
    let records = records.iter();
    let runs = records.filter(|one| one.scenario == scenario && one.family == "static-best");
    let first = runs.clone().next()?;
    let replicas = number::rounded(first.knob.unwrap_or_default());
    let best = BestStatic {
        gpu_hours: number::mean(runs.clone().map(|run| run.score.gpu_hours()))?,
        attainment: number::mean(runs.map(|run| run.score.attainment))?,
        misses_goal: first.misses_goal(),
        ..BestStatic::default()
    };
    Some((replicas, best))
}
