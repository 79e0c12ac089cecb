//! An old life cannot write over a newer one.

use std::mem;
use std::sync::{Arc, Mutex, mpsc};

use futures::FutureExt;

use super::role::Role;
use super::stage::kit;
use crate::{
    Address, Context, Epoch, Event, ExitReason, Fenced, Guard, StateMachine, Writer, machine, run,
    supervisor,
};
use wva_base::moment::Moment;

fn epoch(number: u64) -> Epoch {
    Epoch::new(&Role::Planner, number)
}

#[test]
fn a_cell_refuses_an_older_tenure_once_a_newer_one_has_written() {
    let cell = Writer::new("initial");
    let mut reader = cell.follow();
    assert_eq!(*cell.load(), "initial");
    assert!(reader.changed().now_or_never().is_none());
    cell.publish(&epoch(3), Arc::new("third")).unwrap();
    assert_eq!(*cell.load(), "third");
    assert_eq!(*reader.changed().now_or_never().unwrap(), "third");
    assert!(reader.changed().now_or_never().is_none());
    cell.publish(&epoch(3), Arc::new("third again")).unwrap();
    let changed = cell.update(&epoch(4), |value| mem::replace(value, "fourth"));
    assert_eq!(changed, Ok("third again"));
    assert_eq!(*reader.changed().now_or_never().unwrap(), "fourth");
    let refusal = cell.publish(&epoch(3), Arc::new("too late")).unwrap_err();
    assert_eq!(refusal, Fenced { role: "planner".into(), number: 3, newest: 4 });
    assert!(refusal.to_string().contains("planner no. 3"), "{refusal}");
    assert!(cell.update(&epoch(3), |_| ()).is_err());
    assert_eq!(*cell.load(), "fourth");
}

/// With one of eight places for each by a throw, sixteen followers of five rounds would be in order once in
/// more than a billion times.
#[tokio::test]
async fn those_who_wait_wake_in_the_order_in_which_they_began_to() {
    const FOLLOWERS: usize = 16;
    let cell = Writer::new(0);
    let woken = Arc::new(Mutex::new(Vec::new()));
    let mut followers = tokio::task::JoinSet::new();
    for place in 0..FOLLOWERS {
        let (mut reader, woken) = (cell.follow(), Arc::clone(&woken));
        followers.spawn(async move {
            for round in 1..=5 {
                assert_eq!(*reader.wait_for(|value| *value == round).await, round);
                woken.lock().unwrap().push((round, place));
            }
        });
    }
    let mut expected = Vec::new();
    for round in 1..=5 {
        tokio::task::yield_now().await;
        assert_eq!(*woken.lock().unwrap(), expected);
        cell.publish(&epoch(1), Arc::new(round)).unwrap();
        expected.extend((0..FOLLOWERS).map(|place| (round, place)));
    }
    followers.join_all().await;
    assert_eq!(*woken.lock().unwrap(), expected);
}

#[test]
fn a_guard_does_not_run_a_refused_write_and_survives_a_panic_in_an_admitted_one() {
    let guard = Guard::new();
    assert_eq!(guard.admit(&epoch(2), || 20), Ok(20));
    let mut ran = false;
    guard.admit(&epoch(1), || ran = true).unwrap_err();
    assert!(!ran);
    let write = std::panic::AssertUnwindSafe(|| guard.admit(&epoch(5), || panic!("in a write")));
    std::panic::catch_unwind(write).unwrap_err();
    assert_eq!(guard.admit(&epoch(5), || 50), Ok(50));
    guard.admit(&epoch(4), || 40).unwrap_err();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_lives_writing_at_once_are_seen_in_order() {
    const LIVES: u64 = 64;
    const WRITES: u64 = 500;
    let cell = Arc::new(Writer::new((0, 0)));
    let guard = Arc::new(Guard::new());
    let admitted = Arc::new(Mutex::new(Vec::new()));
    let mut reader = cell.follow();
    let watching = tokio::spawn(async move {
        let mut seen = vec![(0, 0)];
        while seen.last().is_some_and(|(number, _)| *number < LIVES) {
            seen.push(*reader.changed().await);
        }
        seen
    });
    let mut writers = tokio::task::JoinSet::new();
    for number in 1..=LIVES {
        let (cell, guard, admitted) =
            (Arc::clone(&cell), Arc::clone(&guard), Arc::clone(&admitted));
        writers.spawn(async move {
            let mut refused = 0;
            for write in 0..WRITES {
                if cell.publish(&epoch(number), Arc::new((number, write))).is_err() {
                    refused += 1;
                }
                let note = || admitted.lock().unwrap().push(number);
                drop(guard.admit(&epoch(number), note));
                tokio::task::yield_now().await;
            }
            (number, refused)
        });
    }
    let refused = writers.join_all().await;
    let newest = refused.iter().find(|(number, _)| *number == LIVES);
    assert_eq!(newest, Some(&(LIVES, 0)), "the newest is never refused");
    assert_eq!(*cell.load(), (LIVES, WRITES - 1));
    let seen = watching.await.unwrap();
    assert!(seen.is_sorted(), "{seen:?}");
    assert!(admitted.lock().unwrap().is_sorted());
}

/// Holds its first life in the middle of a handler, where it cannot be killed, until it is let go.
struct Straggler {
    epoch: Epoch,
    cell: Arc<Writer<u64>>,
    gate: Arc<Mutex<Option<mpsc::Receiver<()>>>>,
    outcomes: mpsc::Sender<(u64, Result<(), Fenced>)>,
}

impl StateMachine for Straggler {
    type Msg = ();
    type Effect = ();

    fn step(&mut self, _now: Moment, event: Event<()>, effects: &mut Vec<()>) {
        assert_eq!(event, Event::Started);
        let gate = self.gate.lock().unwrap().take();
        if let Some(gate) = gate {
            // What waits behind this handler on the same worker thread may move to another one.
            tokio::task::block_in_place(|| gate.recv()).unwrap();
        }
        effects.push(());
    }

    fn perform(&mut self, _cx: &Context<()>, (): ()) {
        let number = self.epoch.number();
        let outcome = self.cell.publish(&self.epoch, Arc::new(number));
        self.outcomes.send((number, outcome)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_life_that_outlives_its_supervisor_cannot_write_over_its_successor() {
    let (open, gate) = mpsc::channel();
    let (outcomes, written) = mpsc::channel();
    let cell = Arc::new(Writer::new(0));
    let gate = Arc::new(Mutex::new(Some(gate)));
    let address = Address::vacant();
    let (value, closed) = (Arc::clone(&cell), Arc::clone(&gate));
    let planner = machine(Role::Planner, &address, move |epoch| Straggler {
        epoch: epoch.clone(),
        cell: Arc::clone(&value),
        gate: Arc::clone(&closed),
        outcomes: outcomes.clone(),
    });
    let kit = kit();
    let actors = kit.actors.clone();
    let (curtain, fallen) = tokio::sync::oneshot::channel();
    let engine = supervisor(Role::Engine, vec![planner]);
    let play = tokio::spawn(run(kit, vec![engine], async {
        drop::<Result<(), _>>(fallen.await);
    }));
    while gate.lock().unwrap().is_some() {
        tokio::task::yield_now().await;
    }
    assert!(actors.kill(&Role::Engine));
    cell.follow().changed().await;
    let (newer, outcome) = written.recv().unwrap();
    assert_eq!((outcome, *cell.load()), (Ok(()), newer));

    // The first life is still in its handler. Now it goes on, and tries to write.
    open.send(()).unwrap();
    let (older, outcome) = written.recv().unwrap();
    assert!(older < newer);
    let refusal = outcome.unwrap_err();
    assert_eq!((refusal.number, refusal.newest), (older, newer));
    assert_eq!(*cell.load(), newer);

    curtain.send(()).unwrap();
    assert_eq!(play.await.unwrap(), ExitReason::Shutdown);
    assert_eq!(actors.survivors(), []);
}
