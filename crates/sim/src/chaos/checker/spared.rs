//! A server that asks to be left alone.

use std::time::Duration;

use http::{Method, Uri};

use super::Checker;
use crate::chaos::check::InvariantViolation;
use crate::chaos::check::pace::Request;

impl Checker {
    /// An answer to a process asks to be left alone for so long.
    pub(super) fn warded_off(&self, place: usize, (method, uri): (&Method, &Uri), time: Duration) {
        let now = self.now();
        if let Some(seat) = self.bench().seats.get_mut(&place) {
            let lives = seat.door.actors.lives();
            seat.pace.warded_off(request(method, uri), time, lives, now);
        }
    }

    /// T7: a process makes a request. One that is about to end has no time left to wait.
    pub(super) fn spares(&self, place: usize, method: &Method, uri: &Uri) {
        let now = self.now();
        let found = {
            let mut bench = self.bench();
            let seat = bench.seats.get_mut(&place);
            seat.filter(|seat| !seat.leaving).and_then(|seat| {
                let lives = seat.door.actors.lives();
                seat.pace.heeds(request(method, uri), lives, now)
            })
        };
        let named = |found: InvariantViolation| {
            let text = format!("c{place}: {}", found.text);
            InvariantViolation::new(found.invariant, text)
        };
        self.report_all(found.map(named));
    }
}

fn request<'a>(method: &'a Method, uri: &'a Uri) -> Request<'a> {
    Request {
        method,
        path: uri.path(),
        query: uri.query().unwrap_or_default(),
    }
}
