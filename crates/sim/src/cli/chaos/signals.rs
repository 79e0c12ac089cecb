//! Being asked to end before the end.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wva::cli::complain;
use wva::cli::stop::StopSignals;

/// The exit code where something is broken, or a defect was not found.
const BROKEN: u8 = 1;
/// The exit code where something was left out for a signal, and nothing was broken until then.
const STOPPED: u8 = 3;

/// What is known of a command while it goes on.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub(super) enough: AtomicBool,
    /// Whether something is broken, or a defect was not found, whatever else is played.
    pub(super) broken: AtomicBool,
}

impl Asked {
    /// Lets a command come to its end before its time when the process is asked to end, and ends the process when
    /// it is asked again.
    pub(super) fn listen() -> std::io::Result<Arc<Self>> {
        let asked = Arc::new(Self::default());
        let heard = Arc::clone(&asked);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        // Here, so that none is lost before the thread runs, or between the two.
        let mut signals = {
            let _context = runtime.enter();
            StopSignals::new()?
        };
        let wait = move || {
            runtime.block_on(signals.next());
            heard.enough.store(true, Ordering::Relaxed);
            complain("\nends when the runs that are played now are over; once more ends it now\n");
            runtime.block_on(signals.next());
            std::process::exit(i32::from(heard.at_once()));
        };
        let thread = std::thread::Builder::new().name("signals".to_owned());
        thread.spawn(wait)?;
        Ok(asked)
    }

    pub(super) fn is_enough(&self) -> bool {
        self.enough.load(Ordering::Relaxed)
    }

    pub(super) fn note(&self, is_broken: bool) {
        self.broken.fetch_or(is_broken, Ordering::Relaxed);
    }

    /// The exit code of a process that does not wait for its runs: something is left out in any case.
    fn at_once(&self) -> u8 {
        if self.broken.load(Ordering::Relaxed) {
            BROKEN
        } else {
            STOPPED
        }
    }

    /// The exit code of a command that has come to its end: that of its output, where nothing is broken and nothing
    /// was left out.
    pub(super) fn code(&self, is_whole: bool, printed: ExitCode) -> ExitCode {
        let is_broken = self.broken.load(Ordering::Relaxed);
        if is_whole && !is_broken {
            printed
        } else {
            ExitCode::from(self.at_once())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_broken_counts_more_than_what_is_left_out() {
        let printed = ExitCode::from(7);
        let asked = Asked::default();
        asked.note(false);
        assert_eq!(asked.code(true, printed), printed);
        assert_eq!(asked.code(false, printed), ExitCode::from(3));
        assert_eq!(asked.at_once(), 3);
        asked.note(true);
        asked.note(false);
        for is_whole in [true, false] {
            assert_eq!(asked.code(is_whole, printed), ExitCode::from(1));
        }
        assert_eq!(asked.at_once(), 1);
    }
}
