//! What arrives against what is served and waits, releases that are taken back, and load that is shared unevenly.

use std::time::Duration;

use super::at;
use super::parts::{QUIET, after, close, completing};
use crate::capacity::ServingRole;
use crate::combine::{Balance, Band};
use crate::key::{ModelKey, VariantKey};
use crate::rounding;
use crate::slo::demand::{DemandObservation, DemandTrack};
use crate::slo::memory::NeedMemory;
use crate::slo::release::ReleaseHold;
use crate::slo::{LearnedSlo, SloGoal, assess};
use crate::throughput::floor::MARGIN;
use crate::throughput::{ThroughputModelInput, ThroughputReplicaInput, ThroughputVariantInput};
use crate::units::Replicas;

#[test]
fn requests_are_no_more_work_than_what_is_served_and_waits() {
    let first = DemandTrack::after(None, QUIET, at(0)).unwrap();
    // Nothing grows: once and a half of what is served.
    close(first.most_work(6_000.0, 300.0), 9_000.0);
    let running = |in_flight, queue| DemandObservation { in_flight, queue, ..QUIET };
    // 150 more in fifteen seconds in replicas, and as many in the router.
    let grown = after(&first, running(Some(210.0), Some(150.0)), 15);
    close(grown.growth, 20.0);
    close(grown.most_work(6_000.0, 300.0), 18_000.0);
    // It counts for about the minute of the rates.
    let later = after(&grown, running(Some(210.0), Some(150.0)), 75);
    close(later.growth, 7.36);
    // What is not known bounds nothing.
    for lost in [
        running(None, Some(150.0)),
        DemandObservation { generated: None, ..running(Some(210.0), Some(150.0)) },
    ] {
        let first = DemandTrack::after(None, lost, at(0)).unwrap();
        assert!(first.most_work(6_000.0, 300.0).is_infinite());
    }
}

fn percent(share: f64) -> u32 {
    rounding::floor(share * 100.0)
}

#[test]
fn a_release_that_was_taken_back_is_not_tried_again_at_the_same_need() {
    let quarter = Duration::from_mins(15);
    let mut memory = NeedMemory::new(at(0), quarter, Replicas(3));
    let mut look = |second: u64, need: f64, replicas: u32| {
        memory.observe(need, 0.0, quarter, at(second));
        memory.count(Replicas(replicas), 0.0, at(second));
        [2, 3, 4].map(|count| percent(memory.taken_back(Replicas(count), at(second))))
    };
    assert_eq!(look(0, 100.0, 3), [0; 3]);
    assert_eq!(look(900, 95.0, 2), [0; 3]);
    // One comes back within the horizon: three are kept, and of four three quarters.
    assert_eq!(look(960, 100.0, 3), [100, 100, 75]);
    assert_eq!(look(1_800, 92.0, 3), [100, 100, 75]);
    assert_eq!(look(2_700, 91.0, 3), [100, 100, 75]);
    // Needs of a whole horizon are a tenth lower.
    assert_eq!(look(3_600, 89.0, 3), [100, 100, 75]);
    assert_eq!(look(3_661, 89.0, 3), [0; 3]);
    // A growth long after a release takes nothing back.
    assert_eq!(look(3_700, 89.0, 2), [0; 3]);
    assert_eq!(look(4_400, 89.0, 2), [0; 3]);
    assert_eq!(look(4_601, 100.0, 3), [0; 3]);
}

#[test]
fn a_release_ends_at_the_share_that_is_kept() {
    // Of replicas without load.
    let released = |hold: ReleaseHold, (kept, of): (u32, u32), scale_down: f64| {
        let band = Band { scale_up: 0.85, scale_down };
        let supply = f64::from(of) * 100.0;
        let share = f64::from(kept) / f64::from(of);
        let demand = hold.floor(share, Replicas(of), (supply, supply), band);
        rounding::floor(Balance::of(demand, supply, supply, band).releasable / 100.0)
    };
    let holds = [ReleaseHold::TakenBack, ReleaseHold::ShortMemory, ReleaseHold::AssumedLatency];
    for hold in holds {
        for (kept, scale_down, expected) in [
            ((4, 16), 0.7, 12),
            ((12, 16), 0.7, 4),
            ((15, 16), 0.7, 1),
            ((16, 16), 0.7, 0),
            ((24, 40), 0.5, 16),
        ] {
            assert_eq!(released(hold, kept, scale_down), expected, "{kept:?}");
        }
        // From the lower end of the band more would go: none does, but while what fewer bear is assumed.
        let is_assumed = hold == ReleaseHold::AssumedLatency;
        for (kept, scale_down, more) in
            [((39, 40), 0.7, 3), ((39, 40), 0.5, 10), ((32, 40), 0.5, 10)]
        {
            let expected = if is_assumed { more } else { 0 };
            assert_eq!(released(hold, kept, scale_down), expected, "{kept:?}");
        }
    }
}

#[test]
fn what_is_ordered_for_growth_takes_no_release_back() {
    let quarter = Duration::from_mins(15);
    let held = |growth: f64| {
        let mut memory = NeedMemory::new(at(0), quarter, Replicas(3));
        for (second, replicas, growth) in [(0, 3, 0.0), (900, 2, 0.0), (960, 4, growth)] {
            memory.observe(100.0, 0.0, quarter, at(second));
            memory.count(Replicas(replicas), growth, at(second));
        }
        memory.taken_back(Replicas(3), at(960)) > 0.0
    };
    assert!(held(0.0));
    assert!(!held(10.0));
}

#[test]
fn a_release_that_is_taken_back_once_more_is_tried_again_after_twice_the_time() {
    let quarter = Duration::from_mins(15);
    let mut memory = NeedMemory::new(at(0), quarter, Replicas(3));
    memory.count(Replicas(3), 0.0, at(0));
    // One replica is released at the start of an hour, and comes back two minutes later.
    let mut held_for = |hour: u64, counts: [u32; 3]| {
        for (minute, replicas) in (0..).zip(counts) {
            let now = at(hour * 3_600 + minute * 60);
            memory.observe(100.0, 0.0, quarter, now);
            memory.count(Replicas(replicas), 0.0, now);
        }
        let mut minutes = 2..24 * 60;
        minutes.find(|minute| memory.taken_back(Replicas(3), at(hour * 3_600 + minute * 60)) <= 0.0)
    };
    let hours = |hours: u64| Some(2 + 60 * hours);
    assert_eq!(held_for(1, [2, 2, 3]), hours(1));
    assert_eq!(held_for(3, [2, 2, 3]), hours(2));
    assert_eq!(held_for(6, [2, 2, 3]), hours(4));
    assert_eq!(held_for(11, [2, 2, 3]), hours(6));
    assert_eq!(held_for(18, [2, 2, 3]), hours(6));
    // A release that stood for six hours is forgotten.
    assert_eq!(held_for(31, [2, 2, 3]), hours(1));
    // More were needed than before the release.
    assert_eq!(held_for(33, [2, 3, 4]), hours(6));
}

/// Where work never varied, fewer replicas may bear far less than their latency is assumed to allow.
#[test]
fn few_replicas_are_released_at_once_while_what_fewer_bear_is_assumed() {
    let key = ModelKey::new("ns", "m");
    let variant = VariantKey::new("ns", "v");
    // Replicas that are kept, in what ready ones do, after these counts at these times.
    let kept = |busiest: (f64, f64), counts: &[(u64, u32)]| {
        let (mut learned, mut found) = (LearnedSlo::default(), None);
        for (second, count) in counts {
            let mut input = completing([Some(5.0), Some(5.0)]);
            let given = input.variants.get_mut(&variant).unwrap();
            (given.ready, given.current) = (Replicas(*count), Replicas(*count));
            let busy = given.replicas.values_mut().next().unwrap();
            (busy.decode_rate, busy.inter_token_latency) = (Some(busiest.0), Some(busiest.1));
            let models = [(key.clone(), (input.clone(), SloGoal::default()))].into();
            learned = learned.learn(&models, at(*second));
            let report = assess(&key, &input, SloGoal::default(), &learned, at(*second)).1;
            let role = report.roles[&ServingRole::Both];
            let one = report.variants[&variant].per_second;
            let band = input.params.band;
            let aim = f64::midpoint(band.scale_up, band.scale_down);
            let kept = role.stated / one / aim / (1.0 - MARGIN);
            let is_shown = |text: &str| report.lines().concat().contains(text);
            let is_assumed = is_shown(", by a latency that is assumed");
            assert_eq!(report.variants[&variant].is_assumed, is_assumed);
            let is_held = is_shown("one, or a fifth, is released at once");
            assert_eq!(role.hold == Some(ReleaseHold::AssumedLatency), is_held);
            found = Some((kept, is_assumed, is_held));
        }
        found.unwrap()
    };
    // Where it varied, all that is not needed goes.
    let (known, is_assumed, is_held) = kept((4_000.0, 0.0125), &[(0, 20), (900, 20)]);
    assert!(known < 3.0 && !is_assumed && !is_held, "{known} {is_assumed} {is_held}");
    let same = |counts: &[(u64, u32)]| {
        let (kept, is_assumed, is_held) = kept((1_500.0, 0.01), counts);
        assert!(is_assumed);
        (kept, is_held)
    };
    // A fifth goes, or one of a few.
    for (count, expected) in [(20, 16.0), (10, 8.0), (9, 7.2), (4, 3.0), (2, 1.0)] {
        let (kept, is_held) = same(&[(0, count), (900, count)]);
        assert!(is_held, "{count}");
        close(kept, expected);
    }
    // The next go after three minutes.
    let released = [(0, 20), (900, 20), (915, 16)];
    let later = |second| same(&[&released[..], &[(second, 16)][..]].concat());
    let (kept, is_held) = later(1_094);
    assert!(is_held && kept > 16.0, "{kept}");
    let (kept, is_held) = later(1_095);
    assert!(is_held);
    close(kept, 12.8);
}

/// A fast and a slow variant of one replica each, which generate so many tokens per second.
fn unlike(done: [f64; 2]) -> ThroughputModelInput {
    let variant = |(name, latency): (&str, f64), tokens: f64| {
        let replica = ThroughputReplicaInput {
            kv_capacity: Some(20_000.0),
            input_tokens: Some(300.0),
            output_tokens: Some(300.0),
            inter_token_latency: Some(latency),
            arrivals: Some(tokens / 300.0),
            completions: Some(tokens / 300.0),
            running: Some(tokens * latency),
            decode_rate: Some(tokens),
            waiting: Some(0.0),
            ..ThroughputReplicaInput::default()
        };
        let variant = ThroughputVariantInput {
            role: ServingRole::Both,
            engine: name.into(),
            ready: Replicas(1),
            replicas: [("a".into(), replica)].into_iter().collect(),
            ..ThroughputVariantInput::default()
        };
        (VariantKey::new("ns", name), variant)
    };
    let [fast, slow] = done;
    ThroughputModelInput {
        arrivals: Some((fast + slow) / 300.0),
        router_queue: Some(0.0),
        variants: [variant(("fast", 0.01), fast), variant(("slow", 0.03), slow)].into(),
        ..ThroughputModelInput::default()
    }
}

#[test]
fn demand_is_raised_to_what_the_busiest_variant_can_take() {
    let key = ModelKey::new("ns", "m");
    let looks = |input: &ThroughputModelInput, seconds: u64| {
        let models = [(key.clone(), (input.clone(), SloGoal::default()))].into();
        let learned = (0..=seconds / 15)
            .fold(LearnedSlo::default(), |learned, look| learned.learn(&models, at(look * 15)));
        assess(&key, input, SloGoal::default(), &learned, at(seconds)).1
    };
    let even = unlike([1_500.0, 1_500.0]);
    let sizes = looks(&even, 0).variants;
    let [fast, slow] = ["fast", "slow"].map(|name| sizes[&VariantKey::new("ns", name)].per_second);
    assert!(fast > 1.2 * slow, "{fast} {slow}");
    // As long as rates may be of other replicas nothing is learned.
    let figures = |seconds| looks(&even, seconds).roles[&ServingRole::Both];
    close(figures(75).imbalance, 1.0);
    let settled = figures(3_600);
    let expected = looks(&even, 3_600).variants;
    let [fast, slow] =
        ["fast", "slow"].map(|name| expected[&VariantKey::new("ns", name)].per_second);
    let work = 1_875.0;
    let ratio = work / slow / (2.0 * work / (fast + slow));
    assert!((settled.imbalance / ratio - 1.0).abs() < 0.02, "{settled:?} {ratio}");
    // The nearer each is to what it can do, the less is raised.
    let fair = looks(&unlike([2_100.0, 900.0]), 3_600).roles[&ServingRole::Both];
    assert!(fair.imbalance < 1.0 + (ratio - 1.0) / 2.0, "{fair:?} {ratio}");
}

#[test]
fn a_burst_is_held_for_what_the_busiest_variant_can_take() {
    let key = ModelKey::new("ns", "m");
    let even = unlike([1_500.0, 1_500.0]);
    let burst = ThroughputModelInput { arrivals: Some(20.0), ..even.clone() };
    let held = |looks: u64| {
        let inputs = (0..looks).map(|_| &even).chain([&burst]);
        let learned = (0..).zip(inputs).fold(LearnedSlo::default(), |learned, (look, input)| {
            let models = [(key.clone(), (input.clone(), SloGoal::default()))].into();
            learned.learn(&models, at(look * 15))
        });
        let (_, report) = assess(&key, &burst, SloGoal::default(), &learned, at(looks * 15));
        report.roles[&ServingRole::Both]
    };
    let new = held(4);
    assert!(new.burst > 0.0, "{new:?}");
    close(new.imbalance, 1.0);
    close(new.held_burst, new.burst);
    let settled = held(240);
    assert!(settled.imbalance > 1.1, "{settled:?}");
    close(settled.held_burst, settled.burst * settled.imbalance);
}
