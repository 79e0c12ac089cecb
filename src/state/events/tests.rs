use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use prometheus::{IntCounterVec, Opts};

use super::{Events, NOTES, RING};
use crate::cluster::event::{EventNotice, EventReason, EventType, NOTE_LIMIT, Regarding};
use wva_base::moment::{Moment, WallTime};

fn at(seconds: u64) -> Moment {
    Moment {
        monotonic: Duration::from_secs(seconds),
        wall: WallTime(i64::try_from(seconds).unwrap() * 1_000),
    }
}

fn notice(name: &str, reason: EventReason, note: &str) -> EventNotice {
    EventNotice {
        regarding: Regarding {
            api_version: Arc::from("v1"),
            kind: Arc::from("ConfigMap"),
            namespace: Arc::from("ns"),
            name: Arc::from(name),
            uid: Arc::from(""),
        },
        severity: EventType::Normal,
        reason,
        action: "Scale",
        note: note.to_owned(),
        cycle: None,
    }
}

fn scaled(note: &str) -> EventNotice {
    notice("llama", EventReason::ScaledUp, note)
}

impl Events {
    /// Events that nothing publishes, and the counter of those that are lost.
    fn counted(wake: impl Fn() + Send + Sync + 'static) -> (Self, IntCounterVec) {
        let lost = IntCounterVec::new(Opts::new("lost", "lost"), &["reason"]).unwrap();
        (Self::new(lost.clone(), wake), lost)
    }

    /// Events that nothing publishes.
    pub(crate) fn for_test() -> Self {
        Self::counted(|| {}).0
    }
}

/// Events, the counter of what is lost, and how often the recorder was woken.
fn events() -> (Events, IntCounterVec, Arc<AtomicU32>) {
    let woken = Arc::new(AtomicU32::new(0));
    let wake = {
        let woken = Arc::clone(&woken);
        move || {
            woken.fetch_add(1, Ordering::Relaxed);
        }
    };
    let (events, lost) = Events::counted(wake);
    (events, lost, woken)
}

/// Note, how often and when, of what is sent next.
fn sent(events: &Events, now: u64) -> Option<(String, u32, i64)> {
    let next = events.next(at(now))?;
    Some((next.notice.note, next.times, next.at.0 / 1_000))
}

fn once(note: &str, at: i64) -> (String, u32, i64) {
    (note.to_owned(), 1, at)
}

#[test]
fn a_second_change_within_a_minute_is_published_when_the_minute_is_over() {
    let (events, _, woken) = events();
    events.throw(at(100), scaled("2"));
    assert_eq!(sent(&events, 100), Some(once("2", 100)));
    assert_eq!(events.next_due(at(100)), None);
    events.throw(at(110), scaled("3"));
    // The recorder is woken, since it must wait now.
    assert_eq!(woken.load(Ordering::Relaxed), 2);
    assert_eq!(sent(&events, 159), None);
    assert_eq!(events.next_due(at(159)).map(|due| due.monotonic), Some(at(160).monotonic));
    assert_eq!(sent(&events, 160), Some(once("3", 110)));
    // What was held counts as sent, too.
    events.throw(at(161), scaled("4"));
    assert_eq!(sent(&events, 219), None);
    assert_eq!(sent(&events, 220), Some(once("4", 161)));
    events.throw(at(300), scaled("5"));
    assert_eq!(sent(&events, 300), Some(once("5", 300)));
}

#[test]
fn everything_of_a_minute_is_merged_in_one_event() {
    let (events, _, woken) = events();
    for (second, note) in [(0, "2"), (10, "3"), (20, "4"), (30, "5")] {
        events.throw(at(second), scaled(note));
    }
    assert_eq!(woken.load(Ordering::Relaxed), 1, "there was no look yet");
    assert_eq!(sent(&events, 30), Some(once("2", 0)));
    assert_eq!(sent(&events, 60), Some(once("3 | 4 | 5", 30)));
    assert_eq!(sent(&events, 600), None);
}

#[test]
fn what_only_repeats_is_counted() {
    let (events, lost, _) = events();
    for second in [0, 1, 2, 3] {
        events.throw(at(second), scaled("no"));
    }
    assert_eq!(sent(&events, 3), Some(once("no", 0)));
    assert_eq!(sent(&events, 60), Some(("no".to_owned(), 3, 3)));
    // Two that take turns are two all the same.
    for second in [70, 71, 72, 73] {
        events.throw(at(second), scaled(["a", "b"][usize::try_from(second).unwrap() % 2]));
    }
    assert_eq!(sent(&events, 120), Some(once("a | b", 73)));
    assert_eq!(lost.with_label_values(&["left-out"]).get(), 0);
}

#[test]
fn other_objects_and_other_reasons_do_not_wait() {
    let (events, _, _) = events();
    events.throw(at(0), scaled("2"));
    events.throw(at(1), notice("llama", EventReason::ScaledDown, "1"));
    events.throw(at(2), notice("qwen", EventReason::ScaledUp, "2"));
    let all = [sent(&events, 2), sent(&events, 2), sent(&events, 2)];
    let wanted = [once("2", 0), once("1", 1), once("2", 2)];
    assert_eq!(all, wanted.map(Some));
}

#[test]
fn what_is_lost_is_counted() {
    let (events, lost, _) = events();
    let count = |reason: &str| lost.with_label_values(&[reason]).get();
    for number in 0..NOTES + 3 {
        events.throw(at(0), scaled(&number.to_string()));
    }
    assert_eq!(count("left-out"), 2);
    assert_eq!(sent(&events, 0), Some(once("0", 0)));
    let (note, ..) = sent(&events, 60).unwrap();
    assert_eq!(note, "2 left out | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10");

    for number in 0..=RING {
        events.throw_always(at(100), scaled(&number.to_string()));
    }
    assert_eq!(count("ring-full"), 1);
    assert_eq!(sent(&events, 100), Some(once("1", 100)));
}

#[test]
fn notes_that_one_event_has_no_room_for_need_several() {
    let (events, _, _) = events();
    events.throw(at(0), scaled("x"));
    let notes = ["a", "b", "c"].map(|letter| letter.repeat(NOTE_LIMIT / 2 - 1));
    for note in &notes {
        events.throw(at(1), scaled(note));
    }
    assert_eq!(sent(&events, 1), Some(once("x", 0)));
    for note in &notes {
        assert_eq!(sent(&events, 60), Some(once(note, 1)));
    }
    assert_eq!(sent(&events, 60), None);
}

#[test]
fn at_the_end_nothing_waits_for_its_minute() {
    let (events, _, _) = events();
    events.throw(at(0), scaled("2"));
    events.throw(at(1), scaled("3"));
    let notes: Vec<String> =
        std::iter::from_fn(|| events.last()).map(|last| last.notice.note).collect();
    assert_eq!(notes, ["2", "3"]);
}

#[test]
fn a_storm_wakes_once_until_the_next_look() {
    let (events, _, woken) = events();
    let woken = || woken.load(Ordering::Relaxed);
    assert_eq!(woken(), 0);
    for number in 0..3 * RING {
        let name = format!("llama-{number}");
        events.throw(at(0), notice(&name, EventReason::ScaledUp, "1 to 2"));
    }
    events.throw_always(at(0), scaled("2 to 3"));
    events.ring();
    assert_eq!(woken(), 1);

    assert!(events.next(at(0)).is_some());
    events.throw(at(0), notice("another", EventReason::ScaledUp, "1 to 2"));
    events.ring();
    assert_eq!(woken(), 2);
}
