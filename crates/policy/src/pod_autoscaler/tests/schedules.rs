//! Schedules by the clock on the wall.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::policy;

fn spec(zone: &str, entries: &str) -> String {
    let mut text = "minReplicas: 2\nmaxReplicas: 6\nschedules:\n".to_owned();
    for entry in entries.lines().map(str::trim).filter(|line| !line.is_empty()) {
        writeln!(text, "- {{timezone: {zone}, {entry}}}").unwrap();
    }
    text
}

fn active(spec: &str, now: &str) -> Option<String> {
    let bounds = policy(spec, &[]).bounds(now.parse().unwrap());
    bounds.active.map(|name| name.to_string())
}

fn boundaries(spec: &str, from: &str, count: usize) -> Vec<String> {
    let policy = policy(spec, &[]);
    let schedules = policy.schedules.unwrap();
    let mut now: Timestamp = from.parse().unwrap();
    let mut found = Vec::new();
    while found.len() < count {
        let Some(next) = schedules.next_boundary(now) else {
            break;
        };
        found.push(next.to_string());
        now = next;
    }
    found
}

#[test]
fn an_entry_inherits_the_bound_that_it_leaves_out() {
    let spec = spec(
        "Europe/Berlin",
        "name: late, daysOfWeek: [Fri], startTime: '22:00', endTime: '23:30', maxReplicas: 20",
    );
    let policy = policy(&spec, &[]);
    let at = |now: &str| {
        let found = policy.bounds(now.parse().unwrap());
        (found.bounds.min.0, found.bounds.max.0, found.explicit_min)
    };
    assert_eq!(at("2026-01-09T21:10:00Z"), (2, 20, false));
    assert_eq!(at("2026-01-09T22:30:00Z"), (2, 6, false));
    assert_eq!(at("2026-01-10T21:10:00Z"), (2, 6, false));
}

#[test]
fn windows_follow_the_wall_clock_over_a_shift() {
    let office =
        spec("Europe/Berlin", "name: office, startTime: '07:30', endTime: '19:00', minReplicas: 4");
    // Summer time begins on 2026-03-29: a day of 23 hours.
    assert_eq!(
        boundaries(&office, "2026-03-28T12:00:00Z", 4),
        [
            "2026-03-28T18:00:00Z",
            "2026-03-29T05:30:00Z",
            "2026-03-29T17:00:00Z",
            "2026-03-30T05:30:00Z"
        ]
    );
    // It ends on 2026-10-25.
    assert_eq!(
        boundaries(&office, "2026-10-24T12:00:00Z", 2),
        ["2026-10-24T17:00:00Z", "2026-10-25T06:30:00Z"]
    );
}

#[test]
fn a_start_in_a_skipped_hour_is_its_end_and_a_repeated_hour_counts_twice() {
    let night =
        spec("Europe/Berlin", "name: night, startTime: '02:30', endTime: '03:30', minReplicas: 4");
    // 02:00 is 03:00.
    assert_eq!(active(&night, "2026-03-29T00:59:59Z"), None);
    assert_eq!(active(&night, "2026-03-29T01:00:00Z").as_deref(), Some("night"));
    assert_eq!(
        boundaries(&night, "2026-03-29T00:00:00Z", 2),
        ["2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"]
    );
    // 03:00 is 02:00 again.
    assert_eq!(
        boundaries(&night, "2026-10-25T00:00:00Z", 4),
        [
            "2026-10-25T00:30:00Z",
            "2026-10-25T01:00:00Z",
            "2026-10-25T01:30:00Z",
            "2026-10-25T02:30:00Z"
        ]
    );
}

#[test]
fn touching_entries_change_once_and_only_changes_are_boundaries() {
    let days = spec(
        "UTC",
        "name: a, daysOfWeek: [Mon], startTime: '09:00', endTime: '12:00', minReplicas: 3
         name: b, daysOfWeek: [Mon], startTime: '12:00', endTime: '13:00', minReplicas: 4",
    );
    assert_eq!(active(&days, "2026-08-03T12:00:00Z").as_deref(), Some("b"));
    assert_eq!(
        boundaries(&days, "2026-08-03T09:00:00Z", 3),
        ["2026-08-03T12:00:00Z", "2026-08-03T13:00:00Z", "2026-08-10T09:00:00Z"]
    );
}

#[test]
fn an_entry_that_a_shift_of_the_clock_skips_is_due_a_week_later() {
    let early =
        "name: early, daysOfWeek: [Fri], startTime: '00:00', endTime: '00:30', minReplicas: 3";
    let cairo = spec("Africa/Cairo", early);
    let next = |now: &str| boundaries(&cairo, now, 1);
    assert_eq!(next("2026-04-16T21:59:00Z"), ["2026-04-16T22:00:00Z"]);
    // On the 24th the clock goes from 00:00 to 01:00.
    assert_eq!(next("2026-04-23T21:59:00Z"), ["2026-04-30T21:00:00Z"]);
    assert_eq!(next("2026-04-23T22:00:00Z"), ["2026-04-30T21:00:00Z"]);
}
