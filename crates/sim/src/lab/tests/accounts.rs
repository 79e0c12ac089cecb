//! Known requests give known counts.

use std::time::Duration;

use crate::lab::accounting::{Accounts, Scored, quantiles};
use crate::lab::loads::{ModelLoad, RequestClass};
use crate::lab::schema::{LatencySlo, TimeSpan};
use crate::load::Arrival;
use crate::world::{EndedRequest, RequestResult};

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn load(arrivals: &[u64]) -> ModelLoad {
    let arrival = |at: &u64| Arrival {
        at: seconds(*at),
        prompt_tokens: 10,
        output_tokens: 10,
        prefix: None,
        within: None,
    };
    ModelLoad {
        arrivals: arrivals.iter().map(arrival).collect(),
        class_of: vec![0; arrivals.len()].into(),
        classes: vec![RequestClass {
            name: "chat".to_owned(),
            slo: LatencySlo {
                ttft: TimeSpan(seconds(1)),
                itl: TimeSpan(Duration::from_millis(20)),
                quantile: None,
            },
        }],
    }
}

fn answered(first_token: u64, per_token: Option<u64>) -> RequestResult {
    RequestResult::Answered {
        first_token: Duration::from_millis(first_token),
        per_token: per_token.map(Duration::from_millis),
        tokens: 10,
    }
}

#[test]
fn every_request_of_the_scored_part_counts_once() {
    // Before, seven within, and after.
    let load = load(&[5, 10, 11, 12, 70, 71, 72, 129, 130]);
    let results = [
        (0, answered(9_000, None)),
        (1, answered(1_000, Some(20))),
        (2, answered(1_001, Some(20))),
        (3, answered(1_000, Some(21))),
        (4, answered(500, None)),
        (5, RequestResult::Refused),
        (6, RequestResult::Failed),
        // The one at 129 s has not ended.
        (8, answered(9_000, None)),
    ];
    let outcomes = results.map(|(index, result)| {
        let place = usize::try_from(index).unwrap();
        let arrival = load.arrivals[place].at;
        EndedRequest { index, arrival, at: arrival + seconds(2), result }
    });
    let mut accounts = Accounts::new(Scored { from: seconds(10), until: seconds(130) });
    accounts.model("m", &load, &outcomes);
    let score = accounts.finish();
    assert_eq!((score.requests, score.good, score.late), (7, 2, 2));
    assert_eq!((score.refused, score.failed, score.unfinished), (1, 1, 1));
    assert!((score.attainment - 2.0 / 7.0).abs() < 1e-12);
    assert!((score.good_tokens - 20.0).abs() < 1e-12);
    assert_eq!(score.ttft_seconds.p50, Some(1.0));
    assert_eq!(score.ttft_seconds.p99, Some(1.001));
    assert_eq!(score.itl_seconds.p99, Some(0.021));
    assert_eq!(score.e2e_seconds.p90, Some(2.0));
    assert!((score.overload_seconds - 120.0).abs() < 1e-12, "both minutes");
    assert_eq!(score.models["m"].requests, 7);
    assert_eq!(score.classes["chat"].good, 2);
}

/// Whether the minutes met the quantile, with so many late first tokens and gaps in the second of two minutes.
fn minutes(quantile: Option<f64>, late: usize, slow: usize) -> Option<f64> {
    // Ten requests in each of two minutes; none in the third.
    let arrivals: Vec<u64> = (0..10).chain(60..70).map(|at| at + 10).collect();
    let mut load = load(&arrivals);
    load.classes[0].slo.quantile = quantile;
    let outcomes = arrivals.iter().enumerate().map(|(place, at)| {
        let first = if (10..10 + late).contains(&place) { 1_001 } else { 1_000 };
        // Other requests than those with a late first token.
        let gap = if place >= 20 - slow { 21 } else { 20 };
        EndedRequest {
            index: u64::try_from(place).unwrap(),
            arrival: seconds(*at),
            at: seconds(at + 2),
            result: answered(first, Some(gap)),
        }
    });
    let outcomes: Vec<EndedRequest> = outcomes.collect();
    let mut accounts = Accounts::new(Scored { from: seconds(10), until: seconds(190) });
    accounts.model("m", &load, &outcomes);
    accounts.finish().classes["chat"].minutes
}

#[test]
fn a_minute_meets_a_quantile_of_each_latency_by_itself() {
    assert_eq!(minutes(None, 2, 0), None);
    assert_eq!(minutes(Some(0.9), 0, 0), Some(1.0));
    assert_eq!(minutes(Some(0.9), 1, 1), Some(1.0), "a tenth of each, in other requests");
    assert_eq!(minutes(Some(0.9), 2, 0), Some(0.5));
    assert_eq!(minutes(Some(0.9), 0, 2), Some(0.5));
    assert_eq!(minutes(Some(0.8), 2, 2), Some(1.0));
    assert_eq!(minutes(Some(1.0), 1, 0), Some(0.5));
}

#[test]
fn quantiles_are_of_the_nearest_rank() {
    assert_eq!(quantiles(Vec::new()).p50, None);
    let hundred = (1..=100).rev().map(f64::from).collect();
    let found = quantiles(hundred);
    assert_eq!((found.p50, found.p90, found.p99), (Some(50.0), Some(90.0), Some(99.0)));
    assert_eq!(quantiles(vec![7.0]).p99, Some(7.0));
}
