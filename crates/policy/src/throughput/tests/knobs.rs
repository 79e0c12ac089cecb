//! Every setting moves what it is documented to move.

use super::{BOTH, ENGINE, Story, key, model, near, replica, variant};
use crate::combine::Band;
use crate::params::{
    ActuationMode, AnalyzerSettings, BurstReserve, SaturationMethod, SaturationPolicy,
    SaturationThresholds, UtilizationBand,
};
use crate::throughput::variant::RateSource;
use crate::throughput::{Params, ThroughputModelInput, ThroughputReplicaInput, ThroughputReport};

fn report(params: Params, replicas: &[ThroughputReplicaInput], arrivals: f64) -> ThroughputReport {
    let input = ThroughputModelInput {
        params,
        ..model(arrivals, [(key(), variant(replicas.iter().copied()))])
    };
    let mut story = Story::default();
    story.cycle(&input);
    story.cycle(&input).1
}

#[test]
fn the_band_moves_what_is_required_and_spare() {
    let balance = |scale_up, scale_down| {
        let params = Params { band: Band { scale_up, scale_down }, ..Params::default() };
        report(params, &[replica(0.4, ENGINE); 2], 20.0).roles[&BOTH].balance
    };
    let usual = balance(0.85, 0.70);
    assert_eq!((usual.required, usual.spare), (0.0, 0.0));
    near(balance(0.5, 0.3).required, 4000.0 / 0.5 - usual.supply, "up");
    near(balance(0.9, 0.8).spare, usual.supply - 4000.0 / 0.8, "down");
}

#[test]
fn the_thresholds_say_which_replica_is_full() {
    let busy = ThroughputReplicaInput {
        waiting: Some(6.0),
        decode_rate: Some(2000.0),
        ..replica(0.7, ENGINE)
    };
    let measured = |kv_threshold, queue_threshold| {
        let params = Params { kv_threshold, queue_threshold, ..Params::default() };
        report(params, &[busy], 5.0).variants[&key()].measured
    };
    assert_eq!(measured(0.8, 5.0), None);
    assert_eq!(measured(0.6, 7.0), None);
    near(measured(0.6, 6.0).unwrap().rate, 2000.0, "full and queued");
}

#[test]
fn the_thresholds_and_the_sequence_limit_price_a_shape() {
    let spread: Vec<_> =
        (0..10).map(|step| replica(0.2 + 0.05 * f64::from(step), ENGINE)).collect();
    let price = |kv_threshold, max_sequences| {
        let mut fleet = variant(spread.iter().copied());
        fleet.max_sequences = max_sequences;
        let input = ThroughputModelInput {
            params: Params { kv_threshold, ..Params::default() },
            ..model(5.0, [(key(), fleet)])
        };
        let mut story = Story::default();
        let mut cycle = || story.cycle(&input).1;
        let (_, _, report) = (cycle(), cycle(), cycle());
        let figures = &report.variants[&key()];
        assert_eq!(figures.service.unwrap().source, RateSource::Line);
        figures.line_capacity.unwrap()
    };
    near(price(0.8, None).usage, 0.68, "usage");
    near(price(0.4, None).usage, 0.34, "lower usage");
    near(price(0.1, None).usage, 0.15, "least usage");
    assert!(price(0.8, None).sequences > 150.0);
    near(price(0.8, Some(32.0)).sequences, 0.68 * 32.0, "limited");
}

#[test]
fn the_entry_of_the_analyzer_overrides_the_band() {
    let entry = |enabled, scale_up| AnalyzerSettings {
        kind: "throughput".to_owned(),
        enabled,
        score: 1.0,
        scale_up_threshold: Some(scale_up),
        scale_down_boundary: None,
    };
    let band = |analyzers: Vec<AnalyzerSettings>| {
        let policy = SaturationPolicy {
            thresholds: SaturationThresholds::default(),
            analysis: SaturationMethod::Tokens,
            common_band: UtilizationBand::default(),
            band: UtilizationBand::default(),
            burst_reserve: BurstReserve::default(),
            actuation: ActuationMode::default(),
            without: None,
            priority: 1.0,
            analyzers,
            scale_to_zero: None,
        };
        let band = Params::from(&policy).band;
        (band.scale_up, band.scale_down)
    };
    assert_eq!(band(vec![]), (0.85, 0.70));
    assert_eq!(band(vec![entry(true, 0.95)]), (0.95, 0.70));
    assert_eq!(band(vec![entry(false, 0.95)]), (0.85, 0.70));
    assert_eq!(band(vec![entry(true, 0.60)]), (0.85, 0.70), "contradiction");
}
