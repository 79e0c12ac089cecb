use std::time::Duration;

use proptest::prelude::*;

use crate::load::{Arrival, Arrivals, Demand, Lengths, RateProfile, RateStage, Sharing, Tokens};
use crate::number;
use wva_supervise::SeedTree;

const SECOND: Duration = Duration::from_secs(1);

fn fixed() -> Lengths {
    Lengths { prompt: Tokens::Fixed(100), output: Tokens::Fixed(10) }
}

fn demand(shape: RateProfile) -> Demand {
    Demand { shape, lengths: fixed(), sharing: None }
}

fn arrivals(shape: RateProfile) -> Arrivals {
    Arrivals::new(demand(shape), &SeedTree::new(5), "test").unwrap()
}

/// When requests are expected, one after another.
fn expected(shape: &RateProfile) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(0.0), |last| shape.after(*last, 1.0)).skip(1)
}

fn between(times: &[f64], from: f64, to: f64) -> usize {
    times.iter().filter(|time| (from..to).contains(*time)).count()
}

/// From, to, and how many requests come between.
type Windows = &'static [(f64, f64, usize)];

fn follows(cases: &[(&str, RateProfile, Windows)]) {
    for (name, shape, windows) in cases {
        let until = Duration::from_mins(200).as_secs_f64();
        let times: Vec<f64> = expected(shape).take_while(|at| *at < until).collect();
        for (from, to, wanted) in *windows {
            let found = between(&times, *from, *to);
            assert!(
                found.abs_diff(*wanted) <= 1,
                "{name} from {from} to {to}: {found}, not {wanted}"
            );
        }
    }
}

#[test]
fn what_is_expected_follows_a_rate_that_changes_once() {
    let minutes = Duration::from_mins;
    follows(&[
        ("constant", RateProfile::Constant { rate: 2.0 }, &[(0.0, 60.0, 120), (60.0, 120.0, 120)]),
        (
            "step",
            RateProfile::Step { before: 1.0, after: 5.0, at: minutes(1) },
            &[(0.0, 60.0, 60), (60.0, 120.0, 300)],
        ),
        (
            "ramp",
            RateProfile::Ramp { from: 0.0, to: 10.0, start: minutes(1), over: minutes(1) },
            &[(0.0, 60.0, 0), (60.0, 90.0, 75), (90.0, 120.0, 225), (120.0, 180.0, 600)],
        ),
    ]);
}

#[test]
fn what_is_expected_follows_a_rate_that_goes_up_and_down() {
    let minutes = Duration::from_mins;
    let stage = |lasts, rate| RateStage { lasts, rate };
    follows(&[
        (
            "burst",
            RateProfile::Burst { base: 1.0, peak: 10.0, every: minutes(1), length: SECOND * 10 },
            &[(0.0, 50.0, 50), (50.0, 60.0, 100), (60.0, 110.0, 50), (110.0, 120.0, 100)],
        ),
        (
            "wave",
            RateProfile::Wave {
                mean: 10.0,
                swing: 10.0,
                period: minutes(2),
                phase: Duration::ZERO,
            },
            &[(0.0, 60.0, 982), (60.0, 120.0, 218), (120.0, 180.0, 982)],
        ),
        (
            "stages",
            RateProfile::Stages(vec![
                stage(minutes(1), 3.0),
                stage(minutes(1), 0.0),
                stage(minutes(1), 1.0),
            ]),
            &[(0.0, 60.0, 180), (60.0, 120.0, 0), (120.0, 180.0, 60), (180.0, 1e9, 0)],
        ),
    ]);
}

#[test]
fn a_load_that_ends_ends() {
    let lasts = SECOND * 10;
    let stages = RateProfile::Stages(vec![RateStage { lasts, rate: 1.0 }]);
    assert!(expected(&stages).count() >= 9);
    assert!(arrivals(stages).count() < 30);
    assert_eq!(arrivals(RateProfile::Constant { rate: 0.0 }).next(), None);
}

#[test]
fn gaps_vary_as_much_as_their_mean() {
    let lasts = Duration::from_hours(1);
    let arrivals = arrivals(RateProfile::Constant { rate: 10.0 }).map(|arrival| arrival.at);
    let times: Vec<f64> =
        arrivals.take_while(|at| *at < lasts).map(|at| at.as_secs_f64()).collect();
    let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let count = number::length(gaps.len());
    let mean = gaps.iter().sum::<f64>() / count;
    assert!((mean - 0.1).abs() < 0.005, "{mean}");
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
    let variation = variance.sqrt() / mean;
    assert!((variation - 1.0).abs() < 0.101, "{variation}");
}

#[test]
fn the_seed_and_the_name_decide() {
    let take = |seed, name: &str| -> Vec<Arrival> {
        let demand = Demand {
            lengths: Lengths {
                prompt: Tokens::LogNormal { median: 500.0, sigma: 1.0, most: 4_000 },
                output: Tokens::Fixed(10),
            },
            sharing: Some(Sharing { share: 0.5, texts: 3, tokens: 256 }),
            ..demand(RateProfile::Constant { rate: 1.0 })
        };
        let arrivals = Arrivals::new(demand, &SeedTree::new(seed), name).unwrap();
        arrivals.take(2_000).collect()
    };
    let one = take(1, "a");
    assert_eq!(one, take(1, "a"));
    assert_ne!(one, take(1, "b"));
    assert_ne!(one, take(2, "a"));
    let shared = one.iter().filter(|arrival| arrival.prefix.is_some()).count();
    assert!((900..1_100).contains(&shared), "{shared}");
    let mut prompts: Vec<u32> = one.iter().map(|arrival| arrival.prompt_tokens).collect();
    prompts.sort_unstable();
    assert!((440..560).contains(&prompts[1_000]), "{}", prompts[1_000]);
    assert_eq!(prompts[1_999], 4_000);
    assert!(one.iter().all(|arrival| arrival.output_tokens == 10));
}

#[test]
fn what_makes_no_sense_is_refused_with_its_field() {
    let refusal = |shape: RateProfile| shape.check().unwrap_err();
    assert_eq!(
        refusal(RateProfile::Constant { rate: f64::NAN }),
        "rate is NaN requests/s; give a rate from 0 to 100000"
    );
    assert_eq!(
        refusal(RateProfile::Ramp { from: 1.0, to: 2.0, start: SECOND, over: Duration::ZERO }),
        "over is zero; give a longer time"
    );
    assert_eq!(
        refusal(RateProfile::Wave { mean: 1.0, swing: 2.0, period: SECOND, phase: SECOND }),
        "swing is 2, above the mean of 1 requests/s; lower it"
    );
    assert_eq!(
        refusal(RateProfile::Burst { base: 1.0, peak: 2.0, every: SECOND, length: SECOND * 2 }),
        "length is 2s, longer than every, 1s; shorten the burst"
    );
}

proptest! {
    #[test]
    fn arrivals_never_go_back(seed: u64, mean in 0.01..50.0_f64, share in 0.0..1.0_f64) {
        let shape = RateProfile::Wave {
            mean,
            swing: mean * share,
            period: Duration::from_mins(10),
            phase: SECOND,
        };
        let demand = demand(shape);
        let arrivals = Arrivals::new(demand, &SeedTree::new(seed), "a").unwrap();
        let mut last = Duration::ZERO;
        for arrival in arrivals.take(200) {
            prop_assert!(arrival.at >= last);
            last = arrival.at;
        }
    }
}
