//! The requests of a run: parts of generated load and of traces, added up, all known beforehand.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::number;
use super::schema::{
    BurstRate, LabModel, LabScenario, LatencySlo, LengthSpec, LoadPart, TokenSpec, TraceSpec,
};
use super::trace_file::{Clip, clip};
use crate::engine::Prefix;
use crate::load::{Arrival, Arrivals, Demand, Lengths, RateProfile, RateStage, Tokens};
use wva_supervise::{Generator, SeedTree};

/// The most by which the requests of a trace may end before the scored part does: requests are apart.
const SHORT: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, PartialEq)]
pub(super) struct RequestClass {
    pub(super) name: String,
    pub(super) slo: LatencySlo,
}

#[derive(Debug, Clone)]
pub(super) struct ModelLoad {
    pub(super) arrivals: Arc<[Arrival]>,
    /// The class of each request, as a place in `classes`.
    pub(super) class_of: Arc<[usize]>,
    pub(super) classes: Vec<RequestClass>,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    prelude: Duration,
    scored: Duration,
    end: Duration,
}

pub(super) fn load_of(
    scenario: &LabScenario,
    model: &LabModel,
    traces: Option<&Path>,
    seed: u64,
) -> Result<ModelLoad, String> {
    let seed = SeedTree::new(seed);
    let span = Span {
        prelude: scenario.prelude.0,
        scored: scenario.duration.0,
        end: scenario.prelude.0 + scenario.duration.0 + scenario.tail.0,
    };
    let mut classes: Vec<RequestClass> = Vec::new();
    let mut all: Vec<(Arrival, usize)> = Vec::new();
    for (place, part) in model.load.iter().enumerate() {
        let slo = part.slo.unwrap_or(model.slo);
        let name = part.class.clone().unwrap_or_else(|| "default".to_owned());
        let class = RequestClass { name, slo };
        let known = classes.iter().position(|one| *one == class);
        let class_of = known.unwrap_or_else(|| {
            classes.push(class);
            classes.len() - 1
        });
        let name = format!("lab/{}/{place}", model.name);
        let arrivals = match &part.trace {
            Some(trace) => {
                let problem = |problem: String| format!("{}: {problem}", trace.file);
                replayed(trace, traces, span, &seed, &name).map_err(problem)
            }
            None => generated(part, span, &seed, &name).map_err(|problem| {
                let model = &model.name;
                format!("load[{place}] of model {model} is no usable load; {problem}")
            }),
        };
        let arrivals =
            arrivals.map_err(|problem| format!("scenario {}: {problem}", scenario.name))?;
        let within = Some(slo.ttft.0);
        let arrivals = arrivals.into_iter();
        all.extend(arrivals.map(|arrival| (Arrival { within, ..arrival }, class_of)));
    }
    // Stable, so that requests of the same instant keep the order of their parts.
    all.sort_by_key(|(arrival, _)| arrival.at);
    let (arrivals, class_of): (Vec<Arrival>, Vec<usize>) = all.into_iter().unzip();
    Ok(ModelLoad { arrivals: arrivals.into(), class_of: class_of.into(), classes })
}

fn generated(
    part: &LoadPart,
    span: Span,
    seed: &SeedTree,
    name: &str,
) -> Result<Vec<Arrival>, String> {
    let demand = Demand {
        shape: shape(part, span).ok_or("give one generator")?,
        lengths: part.lengths.map(lengths).ok_or("give lengths")?,
        sharing: part.sharing,
    };
    let arrivals = Arrivals::new(demand, seed, name)?;
    Ok(arrivals.take_while(|arrival| arrival.at < span.end).collect())
}

fn lengths(spec: LengthSpec) -> Lengths {
    let tokens = |spec: TokenSpec| {
        if spec.sigma > 0.0 {
            Tokens::LogNormal { median: spec.median, sigma: spec.sigma, most: spec.most }
        } else {
            Tokens::Fixed(number::rounded(spec.median))
        }
    };
    Lengths { prompt: tokens(spec.prompt), output: tokens(spec.output) }
}

fn shape(part: &LoadPart, span: Span) -> Option<RateProfile> {
    let prelude = span.prelude;
    let stages = |first: f64, stages: Vec<RateStage>| {
        let before = RateStage { lasts: prelude, rate: first };
        RateProfile::Stages(std::iter::once(before).chain(stages).collect())
    };
    let constant = part.constant.map(|constant| RateProfile::Constant { rate: constant.rate });
    let step = part.step.map(|step| RateProfile::Step {
        before: step.before,
        after: step.after,
        at: prelude + step.at.0,
    });
    let ramp = part.ramp.map(|ramp| RateProfile::Ramp {
        from: ramp.from,
        to: ramp.to,
        start: prelude + ramp.start.0,
        over: ramp.over.0,
    });
    let wave = part.wave.map(|wave| {
        let period = wave.period.0;
        let into = prelude.as_secs_f64() % period.as_secs_f64().max(f64::EPSILON);
        RateProfile::Wave {
            mean: wave.mean,
            swing: wave.swing,
            period,
            phase: period.saturating_sub(number::duration(into)),
        }
    });
    let lasts = span.end.saturating_sub(prelude);
    let burst = part.burst;
    let burst = burst.map(|burst| stages(burst.base, bursts(burst, lasts)));
    let given = part.stages.as_ref().map(|given| {
        let given = given.iter().map(|stage| RateStage { lasts: stage.lasts.0, rate: stage.rate });
        let given: Vec<RateStage> = given.collect();
        stages(given.first().map_or(0.0, |stage| stage.rate), given)
    });
    constant.or(step).or(ramp).or(wave).or(burst).or(given)
}

fn bursts(burst: BurstRate, lasts: Duration) -> Vec<RateStage> {
    let quiet = burst.every.0.saturating_sub(burst.length.0);
    let cycle = burst.every.0.max(Duration::from_secs(1));
    let count = number::rounded((lasts.as_secs_f64() / cycle.as_secs_f64()).ceil());
    let one = [(quiet, burst.base), (burst.length.0, burst.peak)];
    let cycles = (0..count).flat_map(|_| one);
    cycles.map(|(lasts, rate)| RateStage { lasts, rate }).collect()
}

fn replayed(
    spec: &TraceSpec,
    traces: Option<&Path>,
    span: Span,
    seed: &SeedTree,
    name: &str,
) -> Result<Vec<Arrival>, String> {
    let folder = traces.ok_or("no folder of traces; give --traces DIR or set WVA_TRACES")?;
    let file = folder.join(&spec.file);
    let clip = clip(&file, (spec.from.0, spec.to.map(|to| to.0)), spec.scale, seed)?;
    let rounds = spec.repeat.max(1);
    let ends = clip.length * (rounds - 1) + clip.ends;
    if ends + SHORT < span.scored {
        let shown =
            |time: Duration| humantime::format_duration(Duration::from_secs(time.as_secs()));
        return Err(format!(
            "its requests end after {} of the duration {}; shorten duration, widen from and to, or give repeat",
            shown(ends),
            shown(span.scored),
        ));
    }
    let mut player = TracePlayer {
        copies: seed.child(&format!("{name}/copies")),
        jitter: seed.child(&format!("{name}/jitter")),
        spread: spec.jitter.0.as_secs_f64(),
        scale: if clip.is_drawn { 1.0 } else { spec.scale },
        end: span.end,
        played: Vec::new(),
    };
    // The prelude is the head of the clip, over and over.
    let head = clip.length.min(span.prelude).max(Duration::from_secs(1));
    let mut begins = Duration::ZERO;
    while begins < span.prelude {
        let ends = (begins + head).min(span.prelude);
        player.play(&clip, begins, ends, 1);
        begins += head;
    }
    for round in 0..rounds {
        let begins = span.prelude + clip.length * round;
        player.play(&clip, begins, begins + clip.length, u64::from(round) + 2);
    }
    Ok(player.played)
}

struct TracePlayer {
    copies: Generator,
    jitter: Generator,
    spread: f64,
    scale: f64,
    end: Duration,
    played: Vec<Arrival>,
}

impl TracePlayer {
    fn play(&mut self, clip: &Clip, begins: Duration, ends: Duration, round: u64) {
        for arrival in &clip.arrivals {
            let at = begins + arrival.at;
            if at >= ends || at >= self.end {
                return;
            }
            let more = number::uniform(&mut self.copies) < self.scale.fract();
            let copies = number::rounded(self.scale.floor()) + u32::from(more);
            for copy in 0..copies {
                let moved = (2.0 * number::uniform(&mut self.jitter) - 1.0) * self.spread;
                let at = number::duration((at.as_secs_f64() + moved).max(0.0));
                self.played.push(Arrival {
                    at,
                    prefix: arrival.prefix.as_ref().map(|prefix| {
                        // Copies are other users: their prompts share nothing with the originals.
                        let salt =
                            (round << 32 | u64::from(copy)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                        Prefix {
                            ids: prefix.ids.iter().map(|id| id ^ salt).collect(),
                            tokens_per_id: prefix.tokens_per_id,
                        }
                    }),
                    ..arrival.clone()
                });
            }
        }
    }
}
