//! Requests of another shape at the same rate, from one minute to the next.

use wva::policy::capacity::AnalyzerName;

use super::*;

const BOTH: &str = "analyzers: [{name: saturation}, {name: throughput}]";
const PHASE: Duration = Duration::from_mins(20);

fn mix(prompt_tokens: u32, output_tokens: u32) -> Mix {
    Mix { prompt_tokens, output_tokens, cached: 0.0 }
}

fn swap(rate: f64, from: Mix, to: Mix) -> LoadSource {
    LoadSource::Flow {
        shape: RateProfile::Constant { rate },
        mixes: vec![(Duration::ZERO, from), (PHASE, to)],
    }
}

/// What the phase after a swap came to.
#[derive(Debug)]
struct Outcome {
    /// Replicas that there were to be, each with the second from which it held and the last reason.
    counts: Vec<(f64, u32, String)>,
    /// Worst and last 95th percentile of the time to the first token, in seconds.
    first_token: (f64, f64),
    gpu_minutes: f64,
}

async fn after(scenario: &Scenario) -> Outcome {
    let world = begin(scenario).await;
    tokio::time::sleep(PHASE).await;
    let before = world.frame();
    let mut counts = vec![(before.seconds, stated(&before), String::new())];
    let (mut worst, mut last) = (0.0_f64, 0.0);
    let mut frames = world.frames.clone();
    while world.frame().seconds < (PHASE * 2).as_secs_f64() {
        frames.changed().await.unwrap();
        let frame = frames.borrow_and_update().clone();
        let count = stated(&frame);
        if counts.last().is_none_or(|(_, last, _)| *last != count) {
            counts.push((frame.seconds, count, decision(&world, "v").reason()));
        }
        if let Some(p95) = frame.models[0].first_token_p95_ms {
            last = p95 / 1e3;
            worst = worst.max(last);
        }
    }
    let hours = world.frame().totals.gpu_hours - before.totals.gpu_hours;
    world.end().await;
    Outcome { counts, first_token: (worst, last), gpu_minutes: hours * 60.0 }
}

/// Whether counts rise again once they have fallen.
fn has_second_peak(outcome: &Outcome) -> bool {
    let mut pairs = outcome.counts.windows(2);
    pairs.any(|pair| pair[1].1 < pair[0].1) && pairs.any(|pair| pair[1].1 > pair[0].1)
}

async fn takes_another_shape(from: Mix, to: Mix, needed: u32) {
    let mut scenario = small(swap(3.0, from, to));
    scenario.nodes = vec![node("h100", 12, H100)];
    scenario.config = policy(BOTH);
    scenario.models[0].variants[0].bounds = (1, 12);
    scenario.models[0].variants[0].replicas = 3;
    let outcome = after(&scenario).await;
    assert!(outcome.counts.iter().all(|(_, count, _)| *count > 1), "no collapse: {outcome:#?}");
    assert!(!has_second_peak(&outcome), "no second peak: {outcome:#?}");
    let (_, last, _) = outcome.counts.last().unwrap();
    assert!((needed..=needed * 2).contains(last), "{needed} are needed: {outcome:#?}");
    assert!(outcome.first_token.1 < 2.0, "served well in the end: {outcome:#?}");
    assert!(outcome.gpu_minutes < f64::from(needed) * 20.0 * 2.5, "{outcome:#?}");
}

#[tokio::test(start_paused = true)]
async fn long_prompts_become_long_answers() {
    takes_another_shape(mix(6_000, 1_000), mix(1_000, 4_000), 3).await;
}

#[tokio::test(start_paused = true)]
async fn long_answers_become_long_prompts() {
    takes_another_shape(mix(1_000, 4_000), mix(6_000, 1_000), 2).await;
}

#[tokio::test(start_paused = true)]
async fn very_long_answers_become_very_long_prompts() {
    takes_another_shape(mix(1_000, 6_000), mix(8_000, 1_000), 3).await;
}

#[tokio::test(start_paused = true)]
async fn very_long_prompts_become_very_long_answers() {
    takes_another_shape(mix(8_000, 1_000), mix(1_000, 6_000), 5).await;
}

/// Whether a server of a variant was full within the minute of its figures.
fn was_full(figures: &ModelFigures, variant: &str) -> bool {
    let tokens = figures.tokens.as_ref().unwrap();
    let mut variants = tokens.variants.iter();
    let (_, found) = variants.find(|(key, _)| &*key.name == variant).unwrap();
    found.instances.values().any(|server| server.saturated)
}

/// After answers of 4 000 tokens come prompts of 30 000, on servers that share the work.
///
/// Rates are taken over a minute: in the second cycle after the change they are half of what was and
/// half of what is. They order nothing of decode at any time. What decode is given is for servers that
/// were full within that minute, which is measured and not computed from rates, and it goes again.
#[tokio::test(start_paused = true)]
async fn prefill_grows_within_two_cycles_of_long_prompts() {
    let half =
        |name, role, replicas| ScenarioVariant { role, replicas, bounds: (1, 10), ..variant(name) };
    let load = swap(2.0, mix(1_000, 4_000), mix(30_000, 250));
    let halves =
        vec![half("reads", ServingRole::Prefill, 1), half("writes", ServingRole::Decode, 3)];
    let mut scenario = small(load.clone());
    scenario.interval = Duration::from_secs(30);
    scenario.nodes = vec![node("h100", 20, H100)];
    scenario.models = vec![model("m", load, halves)];
    scenario.config = policy(BOTH);
    let world = begin(&scenario).await;
    tokio::time::sleep(PHASE - MINUTE * 5).await;
    throughout(&world, MINUTE * 5 - CYCLE, |frame| {
        let counts = (desired(frame, "reads"), desired(frame, "writes"));
        assert_eq!(counts, (Some(1), Some(2)), "{:#?}", figures(&world, "m"));
    })
    .await;

    let (mut most, mut grew) = (Some(2), None);
    let mut frames = world.frames.clone();
    while world.frame().seconds < (PHASE + MINUTE * 3).as_secs_f64() {
        frames.changed().await.unwrap();
        let frame = frames.borrow_and_update().clone();
        let figures = figures(&world, "m");
        let mut voters = figures.consensus.iter().flat_map(|one| &one.voters);
        let rates = voters.find(|voter| voter.analyzer == AnalyzerName::Throughput).unwrap();
        assert!(rates.roles[&ServingRole::Decode].required < 1e-9, "{rates:#?}");
        if desired(&frame, "reads") > Some(1) {
            grew.get_or_insert(frame.seconds - PHASE.as_secs_f64());
        }
        let writes = desired(&frame, "writes");
        if writes > most {
            assert!(was_full(&figures, "writes"), "{figures:#?}");
            most = writes;
        }
    }
    let cycles = grew.unwrap() / 30.0;
    assert!((0.0..=2.0).contains(&cycles), "after {cycles} cycles");
    assert!(most > Some(2), "its servers were full");
    until(&world, MINUTE * 10, |frame| {
        let model = &frame.models[0];
        model.queue < 1.0 && model.held == 0 && desired(frame, "writes") < most
    })
    .await;
    assert!(desired(&world.frame(), "reads") > Some(1));
    world.end().await;
}
