//! Requests of a process are counted where they leave, and a server that asks to be left alone is.

use std::time::Duration;

use super::{Checker, CheckerState, RequestObserver};
use crate::chaos::check::InvariantViolation;
use crate::chaos::check::claims::Sent;
use crate::chaos::process_checker::ProcessChecker;

impl RequestObserver {
    pub(super) fn counted(&self, request: &Sent<'_>) {
        let judge = &self.judge;
        let now = judge.now();
        let found = {
            let mut bench = judge.bench();
            let CheckerState { seats, lately, .. } = &mut *bench;
            // What has come since the last look counts, and is looked for only where it matters.
            let mut were = |count: u64| {
                let is_enough = |most: usize| u64::try_from(most).is_ok_and(|most| most >= count);
                is_enough(lately.most()) || is_enough(lately.note(now, judge.present()))
            };
            let seat = seats.get_mut(&self.place);
            seat.and_then(|seat| seat.pace.sent(request, now, &mut were))
        };
        self.report(found);
    }

    pub(in crate::chaos) fn stored(&self, path: &str) {
        self.judged(|seat, now| seat.pace.stored(path, now));
    }

    fn judged(
        &self,
        judge: impl FnOnce(&mut ProcessChecker, Duration) -> Option<InvariantViolation>,
    ) {
        let now = self.judge.now();
        let found = {
            let mut bench = self.judge.bench();
            let seat = bench.seats.get_mut(&self.place);
            seat.and_then(|seat| judge(seat, now))
        };
        self.report(found);
    }

    fn report(&self, found: Option<InvariantViolation>) {
        let place = self.place;
        self.judge.report_all(found.map(|found| {
            InvariantViolation::new(found.invariant, format!("c{place}: {}", found.text))
        }));
    }

    pub(in crate::chaos) fn warded_off(&self, sent: &Sent<'_>, time: Duration) {
        self.judged(|seat, now| {
            let lives = seat.door.actors.lives();
            seat.spared.note(sent, time, lives, now);
            None
        });
    }

    /// T7: a process makes a request. One that is about to end has no time left to wait.
    pub(super) fn spares(&self, request: &Sent<'_>) {
        self.judged(|seat, now| {
            if seat.leaving {
                return None;
            }
            seat.spared.judge(request, seat.door.actors.lives(), now)
        });
    }

    pub(in crate::chaos) fn asked(&self) {
        self.judged(|seat, now| {
            let in_force = seat.door.shared.settings.load();
            let dynamic = &in_force.generation.dynamic;
            let fetched = dynamic.fetch_interval().unwrap_or(dynamic.interval);
            seat.pace.asked(dynamic.interval.min(fetched), now)
        });
    }
}

impl Checker {
    fn present(&self) -> usize {
        let kinds = ["variantautoscalings.llmd.ai", "pods."].into_iter();
        kinds.map(|kind| self.0.insider.list(kind).len()).sum()
    }
}
