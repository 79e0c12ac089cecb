//! The decisions in memory as a page for a browser: one at a time, within a time.

use std::io::{self, Read};
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use tokio::sync::Semaphore;

use super::answer::{HttpResponse, plain, typed};
use crate::page::document;
use wva_recording::RecordingReader;
use wva_supervise::Clock;

/// Longest time of making it.
const LONGEST: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(super) struct PageMaker(Semaphore);

impl Default for PageMaker {
    fn default() -> Self {
        Self(Semaphore::new(1))
    }
}

impl PageMaker {
    /// The page of a recording; `None` where there is no recording.
    pub(super) fn page(
        &self,
        clock: &Clock,
        recording: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<HttpResponse> {
        // Each takes as much memory as the decisions themselves, and time of a processor.
        let Ok(_only) = self.0.try_acquire() else {
            return Some(refused("another reader waits for it; ask again later"));
        };
        let recording = recording()?;
        let timed = TimedReader {
            bytes: &recording,
            clock,
            end: clock.now().monotonic.saturating_add(LONGEST),
        };
        Some(match document(&mut RecordingReader::new(timed)) {
            Ok(document) => whole(document),
            Err(error) => refused(&error),
        })
    }
}

fn refused(why: &str) -> HttpResponse {
    let text = format!("the page cannot be made: {why}");
    plain(StatusCode::SERVICE_UNAVAILABLE, &text)
}

fn whole(document: String) -> HttpResponse {
    let mut answer = typed(StatusCode::OK, "text/html; charset=utf-8", document);
    let headers = answer.headers_mut();
    for (name, value) in [
        (CACHE_CONTROL, "no-store"),
        // The document has a policy of its own, and cannot state this part of it.
        (CONTENT_SECURITY_POLICY, "frame-ancestors 'none'"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

struct TimedReader<'a> {
    bytes: &'a [u8],
    clock: &'a Clock,
    end: Duration,
}

impl Read for TimedReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.clock.now().monotonic < self.end {
            return self.bytes.read(buffer);
        }
        let why = format!("it takes longer than {LONGEST:?}; use wva page");
        Err(io::Error::other(why))
    }
}

#[cfg(test)]
mod tests;
