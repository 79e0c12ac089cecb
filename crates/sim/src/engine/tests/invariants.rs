use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::engine;
use crate::engine::timing::{Picoseconds, Run};
use crate::engine::{Completion, Engine, Limits, Prefix, Request, RequestEnd, RequestId};

#[derive(Debug, Clone)]
struct Ask {
    after: Duration,
    prompt: u32,
    output: u32,
    prefix: Vec<u64>,
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let prefix = prop::collection::vec(0_u64..3, 0..4);
    let ask = (0_u64..80_000, 1_u32..900, 1_u32..300, prefix);
    let ask = ask.prop_map(|(after, prompt, output, prefix)| Ask {
        after: Duration::from_micros(after),
        prompt,
        output,
        prefix,
    });
    prop::collection::vec(ask, 1..40)
}

fn limits() -> impl Strategy<Value = Limits> {
    (1_u32..20, 1_u32..600, 1_u32..40).prop_map(|(seqs, tokens, block_size)| Limits {
        max_num_seqs: seqs,
        max_num_batched_tokens: tokens,
        max_model_len: 40_960,
        block_size,
    })
}

/// Whatever was asked is somewhere, and blocks are held by those who run.
fn check(engine: &Engine, left: &[Completion]) -> Result<(), TestCaseError> {
    let reading = engine.reading();
    let statistics = &engine.statistics;
    let inside = u64::try_from(reading.running + reading.waiting).unwrap();
    let ended = statistics.finished + statistics.aborted;
    prop_assert_eq!(statistics.submitted, inside + ended);
    prop_assert_eq!(u64::try_from(left.len()).unwrap(), ended);
    let kv = engine.kv();
    prop_assert!(kv.used() + kv.kept <= kv.capacity, "{kv:?}");
    prop_assert!(reading.running > 0 || kv.used() == 0, "{kv:?}");
    Ok(())
}

/// Plays the asks, advancing in parts of `part` between them, and to the end.
fn play(
    asks: &[Ask],
    limits: Limits,
    part: Duration,
) -> Result<(Engine, Vec<Completion>), TestCaseError> {
    let mut engine = engine(1_500, limits);
    let mut left = Vec::new();
    let mut now = Duration::ZERO;
    for (id, ask) in (1..).zip(asks) {
        let until = now + ask.after;
        while now + part < until {
            now += part;
            engine.advance(now);
            left.extend(engine.take_completions());
            check(&engine, &left)?;
        }
        now = until;
        let prefix = Prefix { ids: Arc::from(&*ask.prefix), tokens_per_id: 96 };
        let request = Request {
            id: RequestId(id),
            prompt_tokens: ask.prompt,
            output_tokens: ask.output,
            prefix: Some(prefix),
            received_tokens: 0,
        };
        engine.submit(request, now).unwrap();
        left.extend(engine.take_completions());
        check(&engine, &left)?;
    }
    engine.advance(now + Duration::from_hours(1));
    left.extend(engine.take_completions());
    check(&engine, &left)?;
    Ok((engine, left))
}

proptest! {
    #[test]
    fn nothing_is_lost_or_counted_twice(asks in asks(), limits in limits()) {
        let (engine, left) = play(&asks, limits, Duration::from_millis(7))?;
        prop_assert_eq!(left.len(), asks.len());
        prop_assert!(engine.is_idle());
        let statistics = &engine.statistics;
        let prompts: u64 = asks.iter().map(|ask| u64::from(ask.prompt)).sum();
        let outputs: u64 = asks.iter().map(|ask| u64::from(ask.output)).sum();
        prop_assert_eq!(statistics.prompt_tokens, prompts);
        prop_assert_eq!(statistics.generation_tokens, outputs);
        let count = u64::try_from(asks.len()).unwrap();
        prop_assert_eq!(statistics.first_token.count(), count);
        prop_assert_eq!(statistics.between_tokens.count(), outputs - count);
        let preemptions: u64 = left.iter().map(|one| u64::from(one.preemptions)).sum();
        prop_assert_eq!(statistics.preemptions, preemptions);
        for one in &left {
            let ask = &asks[usize::try_from(one.request.0 - 1).unwrap()];
            prop_assert_eq!(one.outcome, RequestEnd::Finished);
            prop_assert_eq!((one.prompt_tokens, one.output_tokens), (ask.prompt, ask.output));
        }
    }

    #[test]
    fn it_does_not_matter_in_which_parts_time_passes(asks in asks(), limits in limits(), part in 1_u64..40) {
        let (fine, fine_left) = play(&asks, limits, Duration::from_micros(part * 500))?;
        let (coarse, coarse_left) = play(&asks, limits, Duration::from_hours(1))?;
        prop_assert_eq!(fine_left, coarse_left);
        let (fine, coarse) = (&fine.statistics, &coarse.statistics);
        prop_assert_eq!(fine.preemptions, coarse.preemptions);
        // Sums of floating-point numbers depend on the order of adding.
        let sums = (fine.between_tokens.sum(), coarse.between_tokens.sum());
        prop_assert!((sums.0 - sums.1).abs() < 1e-6, "{sums:?}");
    }

    #[test]
    fn a_run_is_the_sum_of_its_steps(first in 1_u64..1_000, growth in 0_u64..50, steps in 0_u64..200, time in 0_u64..100_000) {
        let run = Run { first: Picoseconds(first), growth: Picoseconds(growth) };
        let lengths: Vec<u64> = (0..steps).map(|step| first + growth * step).collect();
        prop_assert_eq!(run.total(steps).0, lengths.iter().sum::<u64>());
        let mut sum = 0;
        let fitting = lengths.iter().take_while(|length| { sum += **length; sum <= time }).count();
        prop_assert_eq!(run.fitting(Picoseconds(time), steps), u64::try_from(fitting).unwrap());
        let short = lengths.iter().filter(|length| **length <= time).count();
        prop_assert_eq!(run.no_longer_than(Picoseconds(time), steps), u64::try_from(short).unwrap());
    }
}
