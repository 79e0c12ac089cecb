//! Faults that are drawn from numbers, each of them once.

use super::super::fault::Edit;
use super::*;
use crate::world::ConfigMap;

/// Plays these faults one after another.
fn in_turn(plot: &ChaosWorkload, faults: impl IntoIterator<Item = ChaosFault>) {
    // None of them in the moment of a decision.
    let times = (103..).step_by(80);
    let faults: Vec<(u64, ChaosFault)> = times.zip(faults).collect();
    goes_on(plot, &faults);
}

/// Whatever shape a specification has, no other object is disturbed by it, and it is put back whole.
#[test]
fn every_shape_of_a_specification_is_lived_through() {
    let shapes = (0..20).map(|shape| ChaosFault::Object(0, ObjectFault::Malformed(shape)));
    in_turn(&plot("probe", 1).unwrap(), shapes);
}

/// Each ConfigMap is deleted by itself and comes again, also at once; and unreadable entries leave in
/// force what was.
#[test]
fn every_config_map_comes_and_goes() {
    let mut plot = plot("probe", 1).unwrap();
    let saturation = ConfigMap::saturation("kvCacheThreshold: 0.7\n");
    plot.scenario.config.push(saturation);
    let edits = [Edit::Deleted, Edit::SaturationDeleted, Edit::Recreated(0), Edit::Recreated(1)];
    let broken = (0..6).map(Edit::BrokenYaml);
    let fixed = (0..6).map(Edit::Immutable);
    let all = edits.into_iter().chain(broken).chain(fixed);
    in_turn(&plot, all.map(ChaosFault::Settings));
}
