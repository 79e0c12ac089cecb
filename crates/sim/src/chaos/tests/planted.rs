//! Planted defects, each with the disturbance that shows it and that does no harm without it.

use super::*;
use crate::chaos::fault::AutoscalerFault;
use crate::chaos::workload::autoscaled::add_one;

/// What is found of one fault of these seconds with a defect, where nothing is without.
fn found(
    mut plot: ChaosWorkload,
    mutation: Mutation,
    fault: &ChaosFault,
    (at, lasts): (u64, u64),
) -> String {
    let strike = Strike {
        id: 0,
        at: Duration::from_secs(at),
        lasts: Duration::from_secs(lasts),
        fault: fault.clone(),
    };
    let schedule = FaultSchedule(vec![strike]);
    let whole = survive(&plot, 1, &schedule, Keep::Tail);
    let lines = whole.lines.join("\n");
    assert_eq!(whole.violation, None, "{lines}");
    plot.mutation = Some(mutation);
    let outcome = survive(&plot, 1, &schedule, Keep::Tail);
    let lines = outcome.lines.join("\n");
    let violation = outcome
        .violation
        .map(|(_, violation)| violation.to_string());
    violation.unwrap_or_else(|| panic!("{mutation:?} is not found\n{lines}"))
}

#[test]
fn a_pause_that_is_taken_for_a_hang_is_found() {
    let pause = ChaosFault::Controller(0, ProcessFault::Pause);
    let plot = plot("probe", 1).unwrap();
    let told = found(plot, Mutation::PauseTakenForHang, &pause, (80, 60));
    assert!(told.starts_with("T1: c0: "), "{told}");
    assert!(told.contains(" stood still by itself: hung: "), "{told}");
}

#[test]
fn a_process_that_ends_without_its_lease_is_found() {
    let partition = ChaosFault::Api(0, Api::Partition);
    let plot = plot("probe", 1).unwrap();
    let told = found(plot, Mutation::ExitsWithoutLease, &partition, (80, 60));
    assert_eq!(told, "T1: c0 has ended by itself: Shutdown");
}

#[test]
fn a_lease_that_is_kept_after_an_orderly_end_is_found() {
    let restart = ChaosFault::Controller(LEADER, ProcessFault::Restart);
    let mut plot = plot("probe", 1).unwrap();
    plot.controllers = 2;
    let told = found(plot, Mutation::LeaseNotReleased, &restart, (80, 20));
    let text = "led, and has ended without giving its lease back";
    assert!(told.starts_with("T4: c") && told.ends_with(text), "{told}");
}

/// Half of the replicas say nothing while there is less and less to do.
#[test]
fn a_variant_that_shrinks_while_some_of_it_is_silent_is_found() {
    let partial = ChaosFault::Prometheus(0, Prom::Partial);
    let mut plot = plot("probe", 1).unwrap();
    plot.faults_until = Duration::from_mins(9);
    plot.lasts += Duration::from_mins(6);
    let told = found(plot, Mutation::SilenceOfSomeIgnored, &partial, (170, 360));
    assert!(told.starts_with("D4: "), "{told}");
    assert!(told.ends_with(" is ready and silent"), "{told}");
}

/// The busy minutes of the load outlast a shorter window.
#[test]
fn a_pod_autoscaler_that_does_not_grow_is_found() {
    let pages = ChaosFault::Autoscaler(0, AutoscalerFault::PagesPartial);
    let mut plot = plot("probe", 1).unwrap();
    add_one(&mut plot.scenario, plot.faults_until);
    for autoscaled in &mut plot.scenario.autoscaled {
        autoscaled.windows = (60, 30);
    }
    let violation = found(plot, Mutation::AutoscalerNeverGrows, &pages, (20, 5));
    assert_eq!(
        violation,
        "A6: c0: autoscaled-kpa keeps 1 replicas of at most 6 for more than they take for 105 s"
    );
}

#[test]
fn the_series_of_a_pod_autoscaler_that_is_gone_is_found() {
    let removed = ChaosFault::Autoscaler(0, AutoscalerFault::Removed(0));
    let mut plot = plot("probe", 1).unwrap();
    add_one(&mut plot.scenario, plot.faults_until);
    let violation = found(plot, Mutation::AutoscalerSeriesKept, &removed, (80, 100));
    assert_eq!(
        violation,
        "A5: c0: llm-d/autoscaled-kpa is gone, and its series is kept"
    );
}
