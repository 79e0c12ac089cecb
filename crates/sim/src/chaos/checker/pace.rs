//! What a process asks for is counted where it leaves, and a server that asks to be left alone is.

use std::time::Duration;

use super::{Checker, CheckerState};
use crate::chaos::check::InvariantViolation;
use crate::chaos::check::claims::Sent;
use crate::chaos::process_checker::ProcessChecker;

impl Checker {
    /// T7: a process sends a request to the API server.
    pub(super) fn counted(&self, place: usize, request: &Sent<'_>) {
        let now = self.now();
        let found = {
            let mut bench = self.bench();
            let CheckerState { seats, lately, .. } = &mut *bench;
            // What has come since the last look counts, and is looked for only where it matters.
            let mut were = |count: u64| {
                let is_enough = |most: usize| u64::try_from(most).is_ok_and(|most| most >= count);
                is_enough(lately.most()) || is_enough(lately.note(now, self.present()))
            };
            let seat = seats.get_mut(&place);
            seat.and_then(|seat| seat.pace.sent(request, now, &mut were))
        };
        self.report_all(found.map(|found| of(place, &found)));
    }

    fn present(&self) -> usize {
        let kinds = ["variantautoscalings.llmd.ai", "pods."].into_iter();
        kinds.map(|kind| self.0.insider.list(kind).len()).sum()
    }

    /// T7: a write of a process was carried out.
    pub(super) fn stored(&self, place: usize, path: &str) {
        self.judged(place, |seat, now| seat.pace.stored(path, now));
    }

    /// Judges one process, and reports what is found.
    fn judged(
        &self,
        place: usize,
        judge: impl FnOnce(&mut ProcessChecker, Duration) -> Option<InvariantViolation>,
    ) {
        let now = self.now();
        let found = {
            let mut bench = self.bench();
            let seat = bench.seats.get_mut(&place);
            seat.and_then(|seat| judge(seat, now))
        };
        self.report_all(found.map(|found| of(place, &found)));
    }

    /// An answer to a process asks to be left alone for so long.
    pub(super) fn warded_off(&self, place: usize, sent: &Sent<'_>, time: Duration) {
        let now = self.now();
        if let Some(seat) = self.bench().seats.get_mut(&place) {
            let lives = seat.door.actors.lives();
            seat.pace.warded_off(sent, time, lives, now);
        }
    }

    /// T7: a process makes a request. One that is about to end has no time left to wait.
    pub(super) fn spares(&self, place: usize, request: &Sent<'_>) {
        self.judged(place, |seat, now| {
            if seat.leaving {
                return None;
            }
            seat.pace.heeds(request, seat.door.actors.lives(), now)
        });
    }

    /// T7: a process puts a question to Prometheus.
    pub(super) fn asked(&self, place: usize) {
        self.judged(place, |seat, now| {
            let in_force = seat.door.shared.settings.load();
            let dynamic = &in_force.generation.dynamic;
            let fetched = dynamic.fetch_interval().unwrap_or(dynamic.interval);
            seat.pace.asked(dynamic.interval.min(fetched), now)
        });
    }
}

fn of(place: usize, found: &InvariantViolation) -> InvariantViolation {
    InvariantViolation::new(found.invariant, format!("c{place}: {}", found.text))
}
