//! What a refusal of one object does to the others, and what the tests of both roles begin with.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{DENIED_PAUSE, RoundWork, Rounds, turn};
use crate::actors::emitter::tests::key;
use crate::actors::variants::tests::shared;
use crate::cluster::autoscaler::AutoscalerWriteError;
use crate::cluster::client::RequestError;
use crate::policy;
use crate::policy::plan::Decision;
use crate::policy::record::{PublishedRecord, Troubles};
use crate::policy::snapshot::{CycleId, VariantView};
use crate::roles::Role;
use crate::state::events::Events;
use crate::state::permission_reporter::PermissionReporter;
use crate::state::records::RecordTable;
use crate::state::{PlanProposal, SharedState};
use kube::core::Status;
use wva_base::moment::Moment;
use wva_supervise::Epoch;

/// A cycle has decided on the variant, apart from `change`, and that is published.
pub(in crate::actors) fn decided(
    shared: &SharedState,
    view: &VariantView,
    change: impl FnOnce(&mut Decision),
) {
    let epoch = Epoch::for_test(Role::Variant(key()), 1);
    let board = &shared.writers.variants.board;
    board.put(&epoch, Arc::new(view.clone())).unwrap();
    let generation = &shared.settings.load().generation;
    let now = shared.clock.now();
    let mut plan = policy::plan(
        &shared.snapshot(CycleId(1)),
        &shared.learned.load(),
        &generation.dynamic,
        generation.number,
        now,
    );
    change(plan.decisions.get_mut(&key()).unwrap());
    let record = PublishedRecord::of(view, Some(&plan), None, Troubles::default(), now);
    let put = |records: &mut RecordTable| {
        records.term = 1;
        records.put(Arc::new(record));
    };
    let epoch = Epoch::for_test(Role::Emitter, 1);
    let writers = &shared.writers.emitter;
    writers.records.update(&epoch, put).unwrap();
    let proposal = PlanProposal { term: 1, plan: Arc::new(plan), gaps: Arc::default() };
    let plans = &writers.plan;
    plans.publish(&epoch, Arc::new(Some(proposal))).unwrap();
}

/// Objects that always differ, of which some are refused.
#[derive(Debug)]
struct Refusing {
    objects: Vec<&'static str>,
    denied: BTreeSet<&'static str>,
    written: Arc<Mutex<Vec<&'static str>>>,
}

impl RoundWork for Refusing {
    type Object = &'static str;
    type Change = ();

    const ABOUT: &str = "object";
    const REQUESTS: u32 = 3;
    const PAUSE: Duration = Duration::from_secs(1);

    fn until_next(&self) -> Duration {
        Self::PAUSE
    }

    fn differences(&mut self, _now: Moment) -> Vec<(&'static str, ())> {
        self.objects.iter().map(|object| (*object, ())).collect()
    }

    async fn write(&self, object: &&'static str, (): ()) -> Result<(), AutoscalerWriteError> {
        self.written.lock().unwrap().push(object);
        if !self.denied.contains(object) {
            return Ok(());
        }
        let status = Status::failure("no", "Forbidden").with_code(403);
        Err(AutoscalerWriteError::Denied {
            verbs: "update",
            resource: "objects".to_owned(),
            error: RequestError::Refused(Box::new(status)),
        })
    }
}

/// What is written by rounds after so many seconds each.
async fn written(denied: &[&'static str], seconds: &[u64]) -> Vec<Vec<&'static str>> {
    let shared = shared();
    let permissions = PermissionReporter::for_test(shared.clock.clone(), Events::for_test());
    let written = Arc::default();
    let work = Refusing {
        objects: vec!["a", "b"],
        denied: denied.iter().copied().collect(),
        written: Arc::clone(&written),
    };
    let requests = Arc::clone(&shared.writers.target_scaler);
    let mut rounds = Rounds::new(work, shared.readers.clone(), requests, permissions);
    let begin = shared.clock.now();
    let mut of_rounds = Vec::new();
    for after in seconds {
        rounds.round(begin.later(Duration::from_secs(*after))).await;
        let mut done = std::mem::take(&mut *written.lock().unwrap());
        done.sort_unstable();
        of_rounds.push(done);
    }
    of_rounds
}

#[tokio::test(start_paused = true)]
async fn one_that_is_refused_is_left_alone_and_the_others_are_written() {
    let minute = DENIED_PAUSE.as_secs();
    let rounds = written(&["a"], &[0, 1, minute - 1, minute]).await;
    assert_eq!(rounds, [vec!["a", "b"], vec!["b"], vec!["b"], vec!["a", "b"]]);
}

#[tokio::test(start_paused = true)]
async fn where_each_is_refused_none_is_written_for_a_minute() {
    let minute = DENIED_PAUSE.as_secs();
    let rounds = written(&["a", "b"], &[0, 1, minute - 1, minute]).await;
    assert_eq!(rounds, [vec!["a", "b"], vec![], vec![], vec!["a", "b"]]);
}

#[test]
fn every_object_has_its_turn() {
    let all = || (0..100).rev().map(|number| (number, ())).collect();
    let numbers = |reached: Option<usize>| -> Vec<usize> {
        let due = turn(all(), reached.as_ref(), 64);
        due.into_iter().map(|(number, ())| number).collect()
    };
    assert_eq!(numbers(None), (0..64).collect::<Vec<_>>());
    assert_eq!(numbers(Some(63)), (64..100).chain(0..28).collect::<Vec<_>>());
    assert_eq!(numbers(Some(99)), (0..64).collect::<Vec<_>>());
}
