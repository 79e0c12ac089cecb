//! Bounds at certain times of a week, by the wall clock of a time zone.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan as _};
use serde::{Deserialize, Serialize};

use super::check::{SpecProblem, Violations};
use super::object::ScheduleSpec;
use crate::units::Replicas;
use wva_base::names::is_dns_part;

/// Days that are searched for the next change: two weeks, since a shift of the clock may skip an entry of one of them,
/// and the day on which they begin again.
const HORIZON_DAYS: i64 = 15;

/// Entries of one object: each is compared with each.
pub(super) const MOST_ENTRIES: usize = 100;

const DAYS: [(&str, Weekday); 7] = [
    ("mon", Weekday::Monday),
    ("tue", Weekday::Tuesday),
    ("wed", Weekday::Wednesday),
    ("thu", Weekday::Thursday),
    ("fri", Weekday::Friday),
    ("sat", Weekday::Saturday),
    ("sun", Weekday::Sunday),
];

/// Fewest and most replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaBounds {
    /// Fewest.
    pub min: Replicas,
    /// Most.
    pub max: Replicas,
}

wva_base::display_of! { ReplicaBounds: Self { min, max } => "{min} to {max}"; }

/// The bounds in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveBounds {
    /// Fewest and most replicas.
    #[serde(flatten)]
    pub bounds: ReplicaBounds,
    /// The schedule that is active; `None` if the base bounds apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<Arc<str>>,
    /// Whether the active schedule states a minimum of its own, which may wake a target.
    pub explicit_min: bool,
}

impl From<ReplicaBounds> for EffectiveBounds {
    fn from(bounds: ReplicaBounds) -> Self {
        Self { bounds, active: None, explicit_min: false }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ScheduleEntry {
    name: Arc<str>,
    days: Vec<Weekday>,
    start: Time,
    end: Time,
    min: Option<Replicas>,
    max: Option<Replicas>,
}

impl ScheduleEntry {
    fn holds(&self, day: Weekday, time: Time) -> bool {
        self.days.contains(&day) && self.start <= time && time < self.end
    }

    fn overlaps(&self, other: &Self) -> bool {
        let share_a_day = self.days.iter().any(|day| other.days.contains(day));
        share_a_day && self.start < other.end && other.start < self.end
    }
}

/// All entries, which share a time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedules {
    zone: TimeZone,
    entries: Vec<ScheduleEntry>,
}

impl Schedules {
    /// The bounds at a time.
    pub fn resolve(&self, base: ReplicaBounds, now: Timestamp) -> EffectiveBounds {
        let Some(entry) = self.active(now) else {
            return base.into();
        };
        EffectiveBounds {
            bounds: ReplicaBounds {
                min: entry.min.unwrap_or(base.min),
                max: entry.max.unwrap_or(base.max),
            },
            active: Some(Arc::clone(&entry.name)),
            explicit_min: entry.min.is_some(),
        }
    }

    /// Whether an entry states a minimum of zero.
    pub(super) fn allow_zero(&self) -> bool {
        let mut entries = self.entries.iter();
        entries.any(|entry| entry.min == Some(Replicas::ZERO))
    }

    fn active(&self, now: Timestamp) -> Option<&ScheduleEntry> {
        let local = now.to_zoned(self.zone.clone());
        let (day, time) = (local.weekday(), local.time());
        self.entries.iter().find(|entry| entry.holds(day, time))
    }

    /// The first time after `now` at which another entry, or none, is in force; `None` if nothing changes
    /// within two weeks.
    pub fn next_boundary(&self, now: Timestamp) -> Option<Timestamp> {
        let name = |at| self.active(at).map(|entry| &entry.name);
        let before = name(now);
        let candidates = self.candidates(now);
        candidates.into_iter().find(|at| *at > now && name(*at) != before)
    }

    /// Every time of the horizon at which something may change. A shift of the clock is one: it skips a start
    /// or repeats an hour.
    fn candidates(&self, now: Timestamp) -> BTreeSet<Timestamp> {
        let today = now.to_zoned(self.zone.clone()).date();
        let days = (0..HORIZON_DAYS).filter_map(|days| today.checked_add(days.days()).ok());
        let mut found = BTreeSet::new();
        for day in days {
            let entries = self.entries.iter();
            for time in entries.flat_map(|entry| [entry.start, entry.end]) {
                found.extend(self.instants(day, time));
            }
        }
        let horizon = found.last().copied().unwrap_or(now);
        let shifts = self.zone.following(now);
        found.extend(shifts.map(|shift| shift.timestamp()).take_while(|at| *at <= horizon));
        found
    }

    /// When a clock on the wall shows a time: twice where an hour is repeated.
    fn instants(&self, day: Date, time: Time) -> Vec<Timestamp> {
        let ambiguous = self.zone.to_ambiguous_zoned(day.to_datetime(time));
        let both = [ambiguous.clone().earlier(), ambiguous.later()];
        let zoned = both.into_iter().filter_map(Result::ok);
        zoned.map(|zoned| zoned.timestamp()).collect()
    }

    /// Reads entries. `base` are the bounds that they inherit from.
    pub(super) fn read(
        specs: &[ScheduleSpec],
        base: ReplicaBounds,
        violations: &mut Violations,
    ) -> Self {
        let mut reader = ScheduleReader { base, violations };
        if specs.is_empty() {
            reader.fault("spec.schedules", "must not be empty; add an entry, or remove the list");
        }
        if specs.len() > MOST_ENTRIES {
            let count = specs.len();
            let why = format!("has {count} entries; write at most {MOST_ENTRIES}");
            reader.fault("spec.schedules", why);
        }
        let specs = specs.get(..MOST_ENTRIES).unwrap_or(specs);
        let zone = reader.zone(specs);
        let mut entries: Vec<(usize, ScheduleEntry)> = Vec::new();
        for (index, spec) in specs.iter().enumerate() {
            let path = format!("spec.schedules[{index}]");
            let named = specs.iter().take(index).any(|other| other.name == spec.name);
            if named {
                let why = format!("duplicate of {:?}; give each entry its own", spec.name);
                reader.fault(&format!("{path}.name"), why);
            }
            let Some(entry) = reader.entry(&path, spec) else {
                continue;
            };
            for (other, _) in entries.iter().filter(|(_, other)| entry.overlaps(other)) {
                let why = format!("overlaps schedules[{other}]; part their days or their times");
                reader.fault(&path, why);
            }
            entries.push((index, entry));
        }
        Self {
            zone: zone.unwrap_or(TimeZone::UTC),
            entries: entries.into_iter().map(|(_, entry)| entry).collect(),
        }
    }
}

struct ScheduleReader<'a> {
    base: ReplicaBounds,
    violations: &'a mut Violations,
}

impl ScheduleReader<'_> {
    fn fault(&mut self, path: &str, why: impl Into<String>) {
        self.violations.add(SpecProblem::InvalidSpec, path, why);
    }

    fn zone(&mut self, specs: &[ScheduleSpec]) -> Option<TimeZone> {
        let name = |spec: &ScheduleSpec| match &*spec.timezone {
            "" => Arc::from("UTC"),
            _ => Arc::clone(&spec.timezone),
        };
        let first = specs.first().map(name)?;
        for (index, spec) in specs.iter().enumerate().skip(1) {
            let other = name(spec);
            if other != first {
                let path = format!("spec.schedules[{index}].timezone");
                let why = format!("mixed timezone: {other:?} after {first:?}; write one for all");
                self.fault(&path, why);
            }
        }
        // The database of this program, so that a decision is the same on every machine.
        let zone = TimeZoneDatabase::bundled().get(&first).ok();
        // The library knows this name as one without a zone.
        let zone = zone.filter(|zone| !zone.is_unknown());
        if zone.is_none() {
            let why = format!("{first:?} is no IANA timezone; write one like Europe/Berlin");
            self.fault("spec.schedules[0].timezone", why);
        }
        zone
    }

    fn entry(&mut self, path: &str, spec: &ScheduleSpec) -> Option<ScheduleEntry> {
        if !is_dns_part(&spec.name) {
            let name = &spec.name;
            let why = format!("{name:?} is no DNS label; write lower-case letters, digits and '-'");
            self.fault(&format!("{path}.name"), why);
        }
        let days = self.days(path, spec);
        let start = self.time(&format!("{path}.startTime"), &spec.start_time);
        let end = self.time(&format!("{path}.endTime"), &spec.end_time);
        let min = self.bound(&format!("{path}.minReplicas"), spec.min_replicas, 0);
        let max = self.bound(&format!("{path}.maxReplicas"), spec.max_replicas, 1);
        if spec.min_replicas.is_none() && spec.max_replicas.is_none() {
            self.fault(path, "at least one of minReplicas and maxReplicas must be set");
        }
        let (least, most) = (min.unwrap_or(self.base.min), max.unwrap_or(self.base.max));
        // A maximum that is no maximum was named already.
        if least > most && most > Replicas::ZERO {
            let why = format!(
                "minimum {least} is greater than maximum {most}; lower it or raise maxReplicas"
            );
            self.fault(path, why);
        }
        let (start, end) = (start?, end?);
        if start >= end {
            self.fault(
                path,
                format!(
                    "startTime must be earlier than endTime, {} is not before {}; split a window over midnight in two \
                     entries, one that ends at 23:59 and one that starts at 00:00; in the minute between, \
                     spec.minReplicas and spec.maxReplicas hold",
                    spec.start_time, spec.end_time
                ),
            );
            return None;
        }
        Some(ScheduleEntry { name: Arc::clone(&spec.name), days, start, end, min, max })
    }

    fn days(&mut self, path: &str, spec: &ScheduleSpec) -> Vec<Weekday> {
        let path = format!("{path}.daysOfWeek");
        let Some(names) = &spec.days_of_week else {
            return DAYS.iter().map(|(_, day)| *day).collect();
        };
        if names.is_empty() {
            self.fault(&path, "daysOfWeek must not be empty; remove it for every day");
        }
        let mut days = Vec::new();
        for name in names {
            let day = DAYS.iter().find(|(day, _)| name.eq_ignore_ascii_case(day));
            match day {
                Some((_, day)) if days.contains(day) => {}
                Some((_, day)) => days.push(*day),
                None => {
                    self.fault(&path, format!("unsupported weekday {name:?}; write Mon to Sun"));
                }
            }
        }
        days
    }

    fn bound(&mut self, path: &str, count: Option<i32>, least: i32) -> Option<Replicas> {
        let count = count?;
        if count < least {
            let side = if least > 0 { "be positive" } else { "not be negative" };
            let why = format!("{count} must {side}; write at least {least}");
            self.fault(path, why);
        }
        Some(Replicas::from_count(count))
    }

    fn time(&mut self, path: &str, text: &str) -> Option<Time> {
        let read = || {
            let (hour, minute) = text.split_once(':')?;
            let is_pair = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
            let is_time = is_pair(hour) && is_pair(minute);
            let pair = (hour.parse().ok()?, minute.parse().ok()?);
            is_time.then(|| Time::new(pair.0, pair.1, 0, 0).ok()).flatten()
        };
        let time = read();
        if time.is_none() {
            self.fault(path, format!("{text:?} is no time; write HH:MM from 00:00 to 23:59"));
        }
        time
    }
}
