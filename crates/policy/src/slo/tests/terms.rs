//! Each term shows in the demand, and does not once it is left out.

use std::time::Duration;

use super::at;
use super::parts::{QUIET, after, close, completing};
use crate::capacity::ServingRole;
use crate::key::{ModelKey, VariantKey};
use crate::params::SloTerm;
use crate::slo::demand::{DemandObservation, DemandTrack};
use crate::slo::figures::{SloReport, SloRoleFigures};
use crate::slo::{LearnedSlo, SloGoal, assess};
use crate::throughput::ThroughputModelInput;
use crate::units::Replicas;

#[test]
fn a_term_of_arrivals_is_left_out() {
    let first = DemandTrack::after(None, QUIET, at(0)).unwrap();
    let burst = DemandObservation { arrivals: Some(40.0), in_flight: Some(600.0), ..QUIET };
    let whole = after(&first, burst, 15);
    let without = |term: SloTerm| term.left_out(whole);
    assert!(whole.jump > 0.0 && whole.surge > 0.0 && whole.generated() > 0.0);
    close(without(SloTerm::Jump).jump, 0.0);
    close(without(SloTerm::Surge).surge, 0.0);
    close(without(SloTerm::Generated).generated(), 0.0);
    close(whole.rate(), 40.0);
    close(without(SloTerm::ShortWindow).rate(), whole.arrivals.smoothed);
    assert_eq!(without(SloTerm::Memory), whole);
}

/// The load of two replicas, which are joined by one that is ready after so many seconds.
fn loaded(arrivals: f64, queue: f64, ready_after: Option<u64>) -> ThroughputModelInput {
    let mut input = completing([Some(5.0), Some(5.0)]);
    input.arrivals = Some(arrivals);
    input.router_queue = Some(queue);
    for variant in input.variants.values_mut() {
        variant.start = Duration::from_mins(2);
        variant.pending = Replicas(u32::from(ready_after.is_some()));
        variant.remaining = ready_after.into_iter().map(Duration::from_secs).collect();
    }
    input
}

/// What is stated after these loads, a minute each, where the last one leaves a term out.
fn stated(loads: &[ThroughputModelInput], without: Option<SloTerm>) -> SloReport {
    let key = ModelKey::new("ns", "m");
    let mut learned = LearnedSlo::default();
    let mut now = at(0);
    for (minute, load) in (0..).zip(loads) {
        now = at(minute * 60);
        let models = [(key.clone(), (load.clone(), SloGoal::default()))].into();
        learned = learned.learn(&models, now);
    }
    let mut last = loads.last().unwrap().clone();
    last.params.without = without;
    assess(&key, &last, SloGoal::default(), &learned, now).1
}

#[test]
fn a_term_of_the_demand_is_left_out() {
    let figures = |loads: &[ThroughputModelInput], without| -> SloRoleFigures {
        stated(loads, without).roles[&ServingRole::Both]
    };
    let fallen = [loaded(40.0, 0.0, None), loaded(10.0, 0.0, None)];
    let whole = figures(&fallen, None);
    assert!(whole.remembered > whole.arriving);
    let forgetful = figures(&fallen, Some(SloTerm::Memory));
    close(forgetful.remembered, forgetful.arriving);
    let waiting = [loaded(10.0, 0.0, None), loaded(10.0, 20_000.0, Some(1))];
    let whole = figures(&waiting, None);
    assert!(whole.landing_backlog > 0.0);
    close(figures(&waiting, Some(SloTerm::Landing)).landing_backlog, 0.0);
    let alone = figures(&waiting, Some(SloTerm::Starts));
    assert!(alone.landing_backlog > whole.landing_backlog);
    let rising: Vec<_> = (4..12).map(|rate| loaded(f64::from(rate).powi(3), 0.0, None)).collect();
    let whole = figures(&rising, None);
    assert!(whole.growth > 0.0 && whole.stated > whole.arriving);
    let blind = figures(&rising, Some(SloTerm::Growth));
    close(blind.growth, 0.0);
    assert!(blind.stated < whole.stated, "{blind:?} {whole:?}");
}

/// What replicas did would end it within a start; that it keeps growing shows that they do less.
#[test]
fn a_queue_that_keeps_growing_waits_at_landing() {
    let waits = |queues: [f64; 3]| {
        let loads = queues.map(|queue| loaded(10.0, queue, None));
        stated(&loads, None).roles[&ServingRole::Both].landing_backlog
    };
    close(waits([0.0, 120.0, 120.0]), 0.0);
    // 120 requests of 375 tokens, and one more in each second of a start.
    close(waits([0.0, 60.0, 120.0]), 240.0 * 375.0);
}

#[test]
fn what_was_needed_before_orders_nothing_once_load_has_fallen() {
    // Demands to the largest at which two replicas suffice.
    let share = |loads: &[f64]| {
        let loads: Vec<_> = loads.iter().map(|load| loaded(*load, 0.0, None)).collect();
        let report = stated(&loads, None);
        let one = report.variants[&VariantKey::new("ns", "v")].per_second;
        let enough = 2.0 * one * loads[0].params.band.scale_up;
        let figures = report.roles[&ServingRole::Both];
        let cut = figures.cut.map(|cut| cut / enough);
        let text = format!(" (cut to {:.0}: load has fallen", figures.cut.unwrap_or(0.0));
        let is_shown = report.lines().concat().contains(&text);
        assert_eq!(is_shown, cut.is_some(), "{:?}", report.lines());
        (figures.stated / enough, figures.remembered / enough, cut)
    };
    let high = 400.0;
    let (stated, _, cut) = share(&[high]);
    assert!(stated > 1.1 && cut.is_none(), "{stated} {cut:?}");
    let mut fallen = vec![high];
    fallen.extend([10.0; 12]);
    let (stated, remembered, cut) = share(&fallen);
    assert!(remembered > 1.1, "{remembered}");
    close(stated, 1.0);
    close(cut.unwrap(), 1.0);
}

#[test]
fn starts_are_shown_with_what_is_on_its_way() {
    let line = |ready_after| {
        let report = stated(&[loaded(10.0, 0.0, ready_after)], None);
        let mut lines = report.lines().into_iter();
        lines.find(|line| line.starts_with("slo both: ")).unwrap()
    };
    let none = "; a start takes 120 s, 0 replicas are on their way; ";
    assert!(line(None).contains(none), "{}", line(None));
    let one = "; a start takes 120 s, 1 replicas are on their way; ";
    assert!(line(Some(60)).contains(one), "{}", line(Some(60)));
}

#[test]
fn the_slope_is_left_out() {
    let mut busy = loaded(20.0, 0.0, None);
    for replica in busy.variants.values_mut().flat_map(|one| one.replicas.values_mut()) {
        replica.decode_rate = Some(4_500.0);
        replica.inter_token_latency = Some(0.02);
    }
    let loads = [loaded(10.0, 0.0, None), busy];
    let capacity =
        |without| stated(&loads, without).variants[&VariantKey::new("ns", "v")].per_second;
    assert!((capacity(None) - capacity(Some(SloTerm::Slope))).abs() > 1.0);
}
