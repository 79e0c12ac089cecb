//! What a page shows of the past: frames at even distances, never more than fit on a plot.

use std::sync::{Arc, Mutex};

use serde::Serialize;
use serde_json::Value;

use crate::threads::locked;

/// Most frames of the past. When they are reached, every other one is dropped, and the distance
/// between further ones is doubled.
const FRAMES: usize = 600;

#[derive(Debug, Clone)]
pub(crate) struct Film(Arc<Mutex<Reel>>);

#[derive(Debug)]
struct Reel {
    /// Distinguishes this film from one that was shown at the same address before.
    run: String,
    /// Virtual seconds between two frames that are kept.
    distance: f64,
    kept: Vec<Shot>,
    latest: Option<Shot>,
    next: u64,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Shot {
    number: u64,
    /// Virtual seconds since the start.
    seconds: f64,
    frame: Arc<Value>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct FilmReading {
    run: String,
    /// The frames of the past that it does not know.
    frames: Vec<Shot>,
    latest: Option<Shot>,
}

impl Film {
    /// A film without frames. `run` distinguishes it from others at the same address, `distance` is the time
    /// between two frames that are kept at first, in virtual seconds.
    pub(crate) fn new(run: &str, distance: f64) -> Self {
        Self(Arc::new(Mutex::new(Reel {
            run: run.to_owned(),
            distance,
            kept: Vec::new(),
            latest: None,
            next: 1,
        })))
    }

    /// Adds the frame of a time, in virtual seconds since the start.
    pub(crate) fn record(
        &self,
        seconds: f64,
        frame: &impl Serialize,
    ) -> Result<(), serde_json::Error> {
        let frame = Arc::new(serde_json::to_value(frame)?);
        locked(&self.0).take(seconds, frame);
        Ok(())
    }

    pub(super) fn after(&self, number: u64) -> FilmReading {
        let reel = locked(&self.0);
        // A reader that knows more than there is has seen another film.
        let number = if number < reel.next { number } else { 0 };
        let unknown = reel.kept.iter().filter(|shot| shot.number > number);
        FilmReading {
            run: reel.run.clone(),
            frames: unknown.cloned().collect(),
            latest: reel.latest.clone(),
        }
    }
}

impl Reel {
    fn take(&mut self, seconds: f64, frame: Arc<Value>) {
        let shot = Shot { number: self.next, seconds, frame };
        self.next += 1;
        let last = self.kept.last();
        if last.is_none_or(|last| seconds - last.seconds >= self.distance) {
            if self.kept.len() >= FRAMES {
                self.thin();
            }
            self.kept.push(shot.clone());
        }
        self.latest = Some(shot);
    }

    fn thin(&mut self) {
        let mut place = 0_usize;
        self.kept.retain(|_| {
            place += 1;
            place % 2 == 1
        });
        self.distance *= 2.0;
    }
}
