//! Replicas behind scheduling gates.

use super::variant_state::{pending_for, pods, refresh, state};
use super::world::{START, at};
use crate::snapshot::Readiness;
use crate::units::Replicas;
use wva_base::moment::WallTime;

#[test]
fn a_gated_replica_is_not_pending_until_its_gates_are_gone() {
    let mut state = state();
    let both = |second| pods(&[(0, Readiness::Ready), (0, second)]);
    let view = refresh(&mut state, (2, 1), None, &both(Readiness::Gated), at(20));
    assert_eq!(pending_for(&view, at(20)), None);
    assert_eq!(view.gated(), Some((Replicas(1), WallTime(START))));
    let view = refresh(&mut state, (2, 1), None, &both(Readiness::NotReady), at(900));
    assert_eq!(pending_for(&view, at(905)), Some(5));
    assert_eq!(view.gated(), None);
}
