//! Several things done at once.

use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

/// Memory of a thread that plays a world: a run holds its state on the heap.
const STACK: usize = 16 * 1024 * 1024;

/// Does some work with each of these on so many threads; the results stand in the order in which they end.
pub(crate) fn each<T, R: Send>(
    jobs: usize,
    all: impl Iterator<Item = T> + Send,
    work: impl Fn(T) -> R + Sync,
) -> std::io::Result<Vec<R>> {
    let (waiting, done) = (Mutex::new(all), Mutex::new(Vec::new()));
    let next = || {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.next()
    };
    let work = || {
        while let Some(one) = next() {
            let result = work(one);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push(result);
        }
    };
    std::thread::scope(|scope| {
        for number in 0..jobs.max(1) {
            let name = format!("play-{number}");
            let builder = Builder::new().name(name).stack_size(STACK);
            builder.spawn_scoped(scope, work)?;
        }
        Ok::<_, std::io::Error>(())
    })?;
    Ok(done.into_inner().unwrap_or_else(PoisonError::into_inner))
}
