//! What happened, one dense line per event, and one number for all of it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::number::{HASH_OF_NOTHING, hash};
use crate::threads::locked;
use wva_supervise::Clock;

pub(crate) const TAIL: usize = 100;

#[derive(Debug, Clone)]
pub(super) struct Trace {
    clock: Clock,
    lines: Arc<Mutex<Lines>>,
}

#[derive(Debug, Default)]
struct Lines {
    count: u64,
    hash: u64,
    tail: VecDeque<String>,
    /// Whether the last lines are those before what was to be shown.
    is_sealed: bool,
    whole: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The last hundred lines, without what is done again and again.
    Tail,
    All,
}

impl Trace {
    pub(super) fn new(clock: Clock, keep: Keep) -> Self {
        let lines = Lines {
            hash: HASH_OF_NOTHING,
            tail: VecDeque::with_capacity(TAIL),
            whole: (keep == Keep::All).then(Vec::new),
            ..Lines::default()
        };
        Self { clock, lines: Arc::new(Mutex::new(lines)) }
    }

    pub(super) fn note(&self, who: &str, what: &str, text: &str) {
        self.take_down(who, what, text, true);
    }

    /// The same of what is done again and again as long as nothing happens: the last lines leave it out.
    pub(super) fn hum(&self, who: &str, what: &str, text: &str) {
        self.take_down(who, what, text, false);
    }

    pub(super) fn fold(&self, text: &str) {
        let mut lines = locked(&self.lines);
        lines.hash = hash(lines.hash, text.bytes().chain([0xfe]));
    }

    fn take_down(&self, who: &str, what: &str, text: &str, is_news: bool) {
        let now = self.clock.now().monotonic;
        let mut lines = locked(&self.lines);
        lines.count += 1;
        let (seconds, count) = (now.as_secs_f64(), lines.count);
        let line = format!("{seconds:>11.3} {count:>7} {who:<5} {what:<12} {text}");
        lines.hash = hash(lines.hash, line.bytes().chain([0xff]));
        if let Some(whole) = &mut lines.whole {
            whole.push(line.clone());
        }
        if !is_news || lines.is_sealed {
            return;
        }
        if lines.tail.len() == TAIL {
            lines.tail.pop_front();
        }
        lines.tail.push_back(line);
    }

    pub(super) fn seal(&self) {
        locked(&self.lines).is_sealed = true;
    }

    pub(super) fn hash(&self) -> u64 {
        locked(&self.lines).hash
    }

    pub(super) fn count(&self) -> u64 {
        locked(&self.lines).count
    }

    pub(super) fn take(&self) -> Vec<String> {
        let mut lines = locked(&self.lines);
        let whole = lines.whole.take();
        whole.unwrap_or_else(|| lines.tail.drain(..).collect())
    }
}
