use std::sync::Arc;
use std::time::Duration;

use super::{engine, finish, request};
use crate::engine::{
    Engine, EngineRefusal, Limits, Phase, Prefix, Profile, Request, RequestEnd, StartUp,
};
use wva_supervise::SeedTree;

const SECOND: Duration = Duration::from_secs(1);

fn shared(id: u64, prompt: u32, ids: &[u64]) -> Request {
    Request {
        prefix: Some(Prefix { ids: Arc::from(ids), tokens_per_id: 512 }),
        ..request(id, prompt, 2)
    }
}

#[test]
fn a_lone_request_takes_what_the_formula_says() {
    let mut engine = engine(376_000, Limits::default());
    engine.submit(request(1, 1_000, 3), SECOND).unwrap();
    let [done] = &finish(&mut engine)[..] else {
        panic!("one request");
    };
    // 3 ms + 1 000 · 30.5 µs.
    let first = Duration::from_micros(33_500);
    assert_eq!(done.time_to_first_token, Some(first));
    // Twice 6.8 ms + 12.2 µs, and 50.2 ns for each of 1 000 and of 1 001 tokens.
    let decode = Duration::from_nanos(2 * 6_812_200 + 50_200 + 50_250);
    assert_eq!(done.duration, first + decode);
    assert_eq!(done.at, SECOND + first + decode);
    assert_eq!((done.output_tokens, done.preemptions), (3, 0));
}

#[test]
fn beyond_the_ridge_a_sequence_costs_what_a_prompt_token_costs() {
    let step = |profile: Profile, sequences| profile.timing.decode(sequences, 0).first.0;
    let more = |profile, from| step(profile, from + 1) - step(profile, from);
    let qwen = Profile::QWEN3_8B_BF16_H100;
    assert_eq!(more(qwen, 294), 12_200_000);
    assert_eq!(more(qwen, 295), 30_500_000);
    // One that is dear already, as its price holds that of context, stays so.
    let llama = Profile::LLAMA_8B_A100_TP2;
    assert_eq!(more(llama, 153), 244_000_000);
}

#[test]
fn a_prompt_is_computed_in_chunks_while_others_decode() {
    let limits = Limits { max_num_batched_tokens: 512, ..Limits::default() };
    let mut engine = engine(376_000, limits);
    engine.submit(request(1, 100, 100), Duration::ZERO).unwrap();
    engine.advance(Duration::from_millis(10));
    assert_eq!(engine.statistics.generation_tokens, 1, "the first decodes");
    engine.submit(request(2, 2_000, 1), Duration::from_millis(10)).unwrap();
    let done = finish(&mut engine);
    assert_eq!(done[0].request.0, 2);
    let first = done[0].time_to_first_token.unwrap();
    // Waits for the step in flight. Then 511 tokens fit next to one that decodes: four mixed steps.
    let four = 4.0 * 6.8 + 2_000.0 * 0.0305;
    let millis = first.as_secs_f64() * 1e3;
    assert!(millis > four && millis < four + 7.0, "{millis}");
}

#[test]
fn a_preempted_request_starts_over_and_ends_in_full() {
    // Two requests of 100 + 200 tokens do not fit into 400 together.
    let mut engine = engine(400, Limits::default());
    for id in [1, 2] {
        engine.submit(request(id, 100, 200), Duration::ZERO).unwrap();
    }
    engine.advance(Duration::from_millis(10));
    assert_eq!((engine.reading().running, engine.reading().waiting), (2, 0));
    let mut limit = Duration::from_millis(10);
    while engine.statistics.preemptions == 0 {
        limit += Duration::from_millis(1);
        engine.advance(limit);
    }
    assert_eq!((engine.reading().running, engine.reading().waiting), (1, 1));
    let done = finish(&mut engine);
    let ends: Vec<_> = done
        .iter()
        .map(|one| (one.request.0, one.outcome, one.output_tokens, one.preemptions))
        .collect();
    assert_eq!(ends, [(1, RequestEnd::Finished, 200, 0), (2, RequestEnd::Finished, 200, 1)]);
    let statistics = &engine.statistics;
    assert_eq!(statistics.prompt_tokens, 200);
    assert_eq!(statistics.generation_tokens, 400);
    assert_eq!(statistics.preemptions, 1);
    assert_eq!(statistics.between_tokens.count(), 398);
    assert_eq!(engine.kv().used(), 0);
}

#[test]
fn a_batch_has_no_more_sequences_than_allowed() {
    let limits = Limits { max_num_seqs: 2, ..Limits::default() };
    let mut engine = engine(376_000, limits);
    for id in 1..=3 {
        engine.submit(request(id, 10, 10), Duration::ZERO).unwrap();
    }
    engine.advance(Duration::from_millis(5));
    assert_eq!((engine.reading().running, engine.reading().waiting), (2, 1));
    let done = finish(&mut engine);
    assert!(done[2].time_to_first_token > Some(done[1].duration));
}

#[test]
fn a_prompt_is_found_once_it_was_computed() {
    let mut engine = engine(376_000, Limits::default());
    let mut ask = |id, ids: &[u64]| {
        engine.submit(shared(id, 1_500, ids), Duration::ZERO).unwrap();
        finish(&mut engine)[0].clone()
    };
    let cold = ask(1, &[7, 8, 9]);
    assert_eq!(cold.cached_tokens, 0);
    // Two pieces of 512 fill 1 500 tokens; the third is not whole.
    let warm = ask(2, &[7, 8, 9]);
    assert_eq!(warm.cached_tokens, 1_024);
    let saved = Duration::from_micros(31_232);
    let first = warm.time_to_first_token.unwrap();
    assert_eq!(cold.time_to_first_token, Some(first + saved));
    assert_eq!(ask(3, &[7, 1]).cached_tokens, 512);
    let statistics = &engine.statistics;
    assert_eq!(statistics.prefix_queries, 4_500);
    assert_eq!(statistics.prefix_hits, 1_536);
    assert_eq!((engine.kv().used(), engine.kv().kept > 0), (0, true));
}

#[test]
fn shared_blocks_count_once_and_go_when_room_is_needed() {
    let mut engine = engine(2_048, Limits::default());
    for id in [1, 2] {
        engine.submit(shared(id, 1_040, &[1, 2]), Duration::ZERO).unwrap();
    }
    engine.advance(Duration::from_millis(1));
    // 64 blocks together, one each.
    assert_eq!(engine.kv().used(), 66);
    finish(&mut engine);
    assert_eq!((engine.kv().used(), engine.kv().kept), (0, 64));
    engine.submit(request(3, 1_600, 2), SECOND * 40_000).unwrap();
    engine.advance(SECOND * 40_000 + Duration::from_millis(1));
    assert_eq!(engine.kv().used(), 100);
    assert_eq!(engine.kv().kept, 0, "28 blocks are left, a piece has 32");
}

#[test]
fn a_server_serves_until_it_drains() {
    let profile = Profile::QWEN3_8B_BF16_H100;
    let mut engine = Engine::new(profile, Limits::default(), SECOND);
    engine.submit(request(2, 10, 1_000), SECOND * 101).unwrap();
    assert_eq!(engine.phase(), Phase::Serving);
    engine.drain(SECOND * 102);
    let refused = engine.submit(request(3, 1, 1), SECOND * 102).unwrap_err();
    assert_eq!(refused, EngineRefusal::NotServing(Phase::Draining));
    assert!(!engine.is_idle());
    assert_eq!(finish(&mut engine)[0].outcome, RequestEnd::Finished);
    assert_eq!(engine.phase(), Phase::Draining);
}

#[test]
fn a_server_that_dies_loses_what_it_has() {
    let limits = Limits { max_num_seqs: 1, ..Limits::default() };
    let mut engine = engine(376_000, limits);
    for id in [1, 2] {
        engine.submit(request(id, 10, 1_000), Duration::ZERO).unwrap();
    }
    engine.stop(SECOND);
    let lost = engine.take_completions();
    let ends: Vec<_> = lost.iter().map(|one| (one.request.0, one.outcome)).collect();
    assert_eq!(ends, [(1, RequestEnd::Aborted), (2, RequestEnd::Aborted)]);
    assert!(lost[0].output_tokens > 100 && lost[0].time_to_first_token.is_some());
    assert_eq!((lost[1].output_tokens, lost[1].time_to_first_token), (0, None));
    assert!(engine.is_idle());
    assert_eq!(engine.kv().used(), 0);
    assert!(engine.submit(request(3, 1, 1), SECOND).is_err());
}

#[test]
fn what_can_never_fit_is_refused_with_the_limit() {
    let mut engine = engine(1_000, Limits::default());
    engine.submit(request(1, 900, 92), Duration::ZERO).unwrap();
    let refused = engine.submit(request(2, 900, 93), Duration::ZERO).unwrap_err();
    assert_eq!(refused, EngineRefusal::TooLong { limit: 992 });
    let refused = engine.submit(request(3, 0, 1), Duration::ZERO).unwrap_err();
    assert_eq!(refused, EngineRefusal::Empty);
    assert_eq!(finish(&mut engine).len(), 1);
}

#[test]
fn start_up_times_have_their_median_and_95th_percentile() {
    let mut generator = SeedTree::new(3).child("pods");
    let start_up = StartUp { image_pull: SECOND * 300, ..StartUp::LARGE };
    let mut drawn: Vec<_> = (0..10_000).map(|_| start_up.draw(&mut generator)).collect();
    drawn.sort_unstable();
    let (median, p95) = (drawn[5_000].as_secs_f64(), drawn[9_500].as_secs_f64());
    assert!((median - 410.0).abs() < 2.0, "{median}");
    assert!((p95 - 450.0).abs() < 3.0, "{p95}");
}
