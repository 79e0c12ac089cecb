//! Scenarios that are drawn from a number alone: no constant of a policy was chosen by them.

use std::time::Duration;

use super::fluid::WorkModel;
use super::number;
use crate::engine::{Limits, Profile};
use crate::world::Slo;
use wva_supervise::{Generator, SeedTree};

/// How their names begin; the number follows.
const PREFIX: &str = "random-";
/// Most scenarios of one range.
const MOST: u32 = 10_000;
/// Most requests per second, about: a run holds all of its requests.
const MOST_RATE: f64 = 100.0;
/// Share of what the replicas hold in the fluid model, at the peak. The best fixed fleet of `steady` is at 0.92.
const LOAD: f64 = 0.9;
/// Standard deviation of the logarithm of lengths.
const SIGMA: f64 = 0.6;
/// Minutes of the scored part and the tail.
const SCORED: u32 = 125;

/// The scenarios that an argument names: each of a range like `random-1..24`, else one.
pub(crate) fn scenario_names(argument: &str) -> Vec<String> {
    let range = argument.strip_prefix(PREFIX).and_then(|range| range.split_once(".."));
    let ends = range
        .and_then(|(first, last)| Some((first.parse::<u32>().ok()?, last.parse::<u32>().ok()?)));
    match ends {
        Some((first, last)) if (first..first.saturating_add(MOST)).contains(&last) => {
            (first..=last).map(|number| format!("{PREFIX}{number}")).collect()
        }
        _ => vec![argument.to_owned()],
    }
}

/// The file of the scenario with this name, if a number follows the prefix.
pub(super) fn drawn(name: &str) -> Option<String> {
    name.strip_prefix(PREFIX)?.parse::<u32>().ok().map(text)
}

fn between(generator: &mut Generator, from: f64, to: f64) -> f64 {
    from + (to - from) * number::uniform(generator)
}

fn whole(generator: &mut Generator, (from, to): (u32, u32)) -> u32 {
    number::rounded(between(generator, f64::from(from), f64::from(to)))
}

fn text(number: u32) -> String {
    let generator = &mut SeedTree::new(number.into()).child("lab/random");
    let (profile, gpus, ranges) = served(generator);
    let [prompt, output, ttft, itl] = ranges.map(|range| whole(generator, range));
    let [first_token, per_token] = [ttft, itl].map(|time| Duration::from_millis(time.into()));
    let work = work(profile, Slo { first_token, per_token }, prompt, output);
    // Small fleets are as likely as large ones on a logarithmic scale.
    let size = between(generator, 2_f64.ln(), 20_f64.ln()).exp();
    let needed = number::rounded(size.min(MOST_RATE * work / LOAD).max(2.0));
    let max = whole(generator, (2, 3)) * needed + 2;
    let replicas = match generator.next_u64() % 3 {
        0 => 1,
        1 => needed / 2,
        _ => needed,
    };
    let start_up = whole(generator, (60, 300));
    let parts = parts(generator, LOAD * f64::from(needed) / work);
    let about = parts.join(" and ");
    let lengths = format!(
        "{{prompt: {{median: {prompt}, sigma: {SIGMA}, most: 16000}}, \
         output: {{median: {output}, sigma: {SIGMA}, most: 4000}}}}"
    );
    let parts = parts.iter().map(|part| format!("  - {part}\n    lengths: {lengths}\n"));
    let parts: Vec<String> = parts.collect();
    format!(
        "\
name: {PREFIX}{number}
about: \"Drawn from the number {number}: {about}, for about {needed} replicas of {profile}.\"
duration: 2h
prelude: 20m
nodes:
- {{name: h100, count: {nodes}, gpus: 8, product: NVIDIA-H100-80GB-HBM3}}
models:
- name: drawn
  id: drawn/model
  slo: {{ttft: {ttft}ms, itl: {itl}ms}}
  variants:
  - name: drawn-h100
    accelerator: H100
    product: NVIDIA-H100-80GB-HBM3
    gpus: {gpus}
    cost: {cost}
    profile: {profile}
    startUp: {{kind: cached, median: {start_up}s, sigma: 0.175}}
    replicas: {replicas}
    min: 1
    max: {max}
  load:
{parts}",
        profile = profile.name,
        nodes = (max * gpus).div_ceil(8),
        cost = 3.5 * f64::from(gpus),
        parts = parts.concat(),
    )
}

/// A model, its GPUs, and ranges: medians of prompts and answers in tokens, then both objectives in milliseconds.
fn served(generator: &mut Generator) -> (Profile, u32, [(u32, u32); 4]) {
    match generator.next_u64() % 4 {
        0 => (Profile::QWEN3_8B_FP8_H100, 1, [(400, 3_000), (100, 900), (1_000, 2_000), (20, 50)]),
        1 => (Profile::QWEN3_8B_BF16_H100, 1, [(400, 3_000), (100, 900), (1_000, 2_000), (25, 50)]),
        2 => (Profile::QWEN3_32B_H100_TP2, 2, [(400, 4_000), (100, 900), (2_000, 3_000), (40, 60)]),
        _ => (Profile::LLAMA_70B_H100_TP4, 4, [(300, 1_500), (80, 400), (2_000, 3_000), (60, 80)]),
    }
}

/// Time that a replica spends on a request of mean lengths, in seconds.
fn work(profile: Profile, slo: Slo, prompt: u32, output: u32) -> f64 {
    let [prompt, output] =
        [prompt, output].map(|median| f64::from(median) * (SIGMA * SIGMA / 2.0).exp());
    let model = WorkModel::new(profile, Limits::of_api_server(), slo, (prompt, output));
    model.work(number::rounded(prompt), number::rounded(output))
}

/// The parts of a load that is nowhere above `peak`.
fn parts(generator: &mut Generator, peak: f64) -> Vec<String> {
    let constant = |rate: f64| format!("constant: {{rate: {rate:.2}}}");
    let wave = |mean: f64, swing: f64, period: u32| {
        format!("wave: {{mean: {mean:.2}, swing: {swing:.2}, period: {period}m}}")
    };
    match generator.next_u64() % 6 {
        0 => vec![constant(peak)],
        1 => {
            let swing = between(generator, 0.2, 0.4) * peak;
            vec![wave(0.6 * peak, swing, whole(generator, (10, 90)))]
        }
        2 => vec![stages(generator, peak)],
        3 => {
            let (from, over) = (0.2 * peak, whole(generator, (5, 80)));
            vec![format!("ramp: {{from: {from:.2}, to: {peak:.2}, start: 10m, over: {over}m}}")]
        }
        4 => {
            let base = between(generator, 0.1, 0.5) * peak;
            let [every, length] = [(10, 40), (2, 8)].map(|range| whole(generator, range));
            let times = format!("every: {every}m, length: {length}m");
            vec![format!("burst: {{base: {base:.2}, peak: {peak:.2}, {times}}}")]
        }
        _ => {
            let wave = wave(0.35 * peak, 0.3 * peak, whole(generator, (15, 45)));
            vec![constant(0.3 * peak), wave]
        }
    }
}

/// Stages up to the end: no load follows the last one.
fn stages(generator: &mut Generator, peak: f64) -> String {
    let (mut stages, mut minutes) = (Vec::new(), 0);
    while minutes < SCORED {
        let lasts = whole(generator, (10, 50));
        minutes += lasts;
        let rate = between(generator, 0.2, 1.0) * peak;
        stages.push(format!("{{lasts: {lasts}m, rate: {rate:.2}}}"));
    }
    format!("stages: [{}]", stages.join(", "))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::lab::fluid::{FEASIBLE, FluidDemand, scored};
    use crate::lab::scenario::{load, prepare};
    use crate::lab::schema::{ConstantRate, LabScenario, LoadPart, TimeSpan};

    #[test]
    fn a_range_names_each_of_its_scenarios() {
        assert_eq!(scenario_names("random-7..9"), ["random-7", "random-8", "random-9"]);
        for other in ["step", "random-3", "random-3..2", "random-1..10001", "random-1.yaml"] {
            assert_eq!(scenario_names(other), [other]);
        }
        for other in ["random-", "random-x", "random-3..2", "random-1.yaml"] {
            assert_eq!(drawn(other), None);
        }
    }

    /// A published result names a scenario by its number.
    #[test]
    fn a_number_always_draws_the_same_scenario() {
        let about = load("random-1").unwrap().about().to_owned();
        let expected = "Drawn from the number 1: wave: {mean: 7.38, swing: 4.20, period: 22m}, \
                        for about 2 replicas of Qwen3-8B BF16, 1×H100-80GB.";
        assert_eq!(about, expected);
        assert_eq!(drawn("random-1"), drawn("random-1"));
    }

    fn highest(part: &LoadPart) -> f64 {
        let rates = [
            part.constant.map(|constant| constant.rate),
            part.wave.map(|wave| wave.mean + wave.swing),
            part.ramp.map(|ramp| ramp.to),
            part.burst.map(|burst| burst.peak),
        ];
        let stages = part.stages.iter().flatten().map(|stage| stage.rate);
        rates.into_iter().flatten().chain(stages).fold(0.0, f64::max)
    }

    /// Load over capacity where the rate stays at the highest one of a scenario, which a short time shows.
    fn load_at_peak(mut spec: LabScenario) -> f64 {
        let parts = &mut spec.models[0].load;
        let rate = parts.iter().map(highest).sum();
        let constant = Some(ConstantRate { rate });
        let lengths = parts[0].lengths;
        *parts = vec![LoadPart { constant, lengths, ..LoadPart::default() }];
        spec.duration = TimeSpan::seconds(60);
        let prepared = prepare(&spec, None, 1).unwrap();
        let (model, load) = (&prepared.scenario.models[0], &prepared.loads[0]);
        let demand = FluidDemand::new(model, load, scored(Duration::ZERO, spec.duration.0));
        demand.unwrap().load_to_capacity()
    }

    #[test]
    fn drawn_scenarios_are_valid_and_their_maximum_serves_the_peak() {
        let mut kinds = BTreeSet::new();
        for name in scenario_names("random-1..100") {
            let scenario = load(&name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(scenario.name(), name);
            let (_, parts) = scenario.text.split_once("  load:\n").unwrap();
            let parts = parts.lines().filter_map(|line| line.strip_prefix("  - ")?.split_once(':'));
            let parts: Vec<&str> = parts.map(|(kind, _)| kind).collect();
            kinds.insert(parts.join(" and "));
            let mut spec = LabScenario::clone(&scenario.spec);
            [spec.prelude, spec.duration, spec.tail] = [0, 1, 0].map(TimeSpan::seconds);
            prepare(&spec, None, 1).unwrap_or_else(|error| panic!("{error}"));
            let load = load_at_peak(spec);
            assert!((0.1..FEASIBLE).contains(&load), "{name}: {load}");
        }
        let all = ["burst", "constant", "constant and wave", "ramp", "stages", "wave"];
        assert_eq!(kinds, BTreeSet::from(all.map(str::to_owned)));
    }
}
