//! Load, router and servers together.

use std::time::Duration;

use super::{engine, pool};
use crate::load::{Arrivals, Demand, Lengths, RateProfile, Sharing, Tokens};
use crate::router::{FlowControl, RequestVerdict, RouterPool, Served};
use wva_supervise::SeedTree;

const MINUTE: Duration = Duration::from_mins(1);

/// Ten requests per second for one of three models.
fn load(seed: u64, name: &str) -> Arrivals {
    let demand = Demand {
        shape: RateProfile::Wave {
            mean: 10.0,
            swing: 8.0,
            period: MINUTE * 5,
            phase: Duration::ZERO,
        },
        lengths: Lengths {
            prompt: Tokens::LogNormal { median: 700.0, sigma: 0.8, most: 8_000 },
            output: Tokens::LogNormal { median: 200.0, sigma: 0.7, most: 2_000 },
        },
        sharing: Some(Sharing { share: 0.5, texts: 20, tokens: 256 }),
    };
    Arrivals::new(demand, &SeedTree::new(seed), name).unwrap()
}

/// One model for so long, a server dying on the way; a look at the pool once a second.
fn play(seed: u64, name: &str, lasts: Duration) -> (RouterPool, Vec<Served>, u64) {
    let mut pool = pool(Some(FlowControl::default()));
    for server in ["a", "b"] {
        pool.add(server, engine(Duration::ZERO), Duration::ZERO);
        pool.set_ready(server, true, Duration::ZERO);
    }
    let mut asked = 0;
    let mut looked = Duration::ZERO;
    for arrival in load(seed, name).take_while(|arrival| arrival.at < lasts) {
        while looked + Duration::from_secs(1) < arrival.at {
            looked += Duration::from_secs(1);
            pool.advance(looked);
            if looked == lasts / 2 {
                pool.remove("b", looked);
            }
        }
        let at = arrival.at;
        pool.submit(arrival, at);
        asked += 1;
    }
    let reading = pool.reading();
    let served = pool.take_served();
    let known = served.len() + reading.held + reading.dispatched;
    assert_eq!(u64::try_from(known).unwrap(), asked, "{reading:?}");
    (pool, served, asked)
}

#[test]
fn nothing_is_lost_on_the_way() {
    let (mut pool, mut served, asked) = play(1, "a", MINUTE * 4);
    assert!(asked > 1_500, "{asked}");
    pool.advance(MINUTE * 20);
    served.extend(pool.take_served());
    assert_eq!(u64::try_from(served.len()).unwrap(), asked);
    assert!(pool.engine("a").unwrap().is_idle());
    assert!(pool.engine("b").is_none());
    let is_lost = |one: &Served| matches!(one.verdict, RequestVerdict::Lost(_));
    assert!(served.iter().any(is_lost), "the server that died had requests");
    let mut ids: Vec<u64> = served.iter().map(|one| one.request.0).collect();
    ids.sort_unstable();
    assert!(ids.iter().copied().eq(1..=asked));
}
