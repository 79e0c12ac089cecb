//! Several things done at once, and one in virtual time.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

use tokio::runtime;

/// Memory of a thread that plays a world: a run holds its state on the heap.
const STACK: usize = 16 * 1024 * 1024;

/// A runtime for one thread whose time passes when nothing is left to do.
pub(crate) fn paused() -> std::io::Result<runtime::Runtime> {
    let mut builder = runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build()
}

/// What a mutex guards, also where a thread has panicked with it.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does some work with each of these on so many threads; the results stand in the order in which they end.
pub(crate) fn each<T, R: Send>(
    jobs: usize,
    all: impl Iterator<Item = T> + Send,
    work: impl Fn(T) -> R + Sync,
) -> Result<Vec<R>, String> {
    let (waiting, done) = (Mutex::new(all), Mutex::new(Vec::new()));
    let next = || locked(&waiting).next();
    let work = || {
        while let Some(one) = next() {
            let result = work(one);
            locked(&done).push(result);
        }
    };
    std::thread::scope(|scope| {
        for number in 0..jobs.max(1) {
            let name = format!("play-{number}");
            let builder = Builder::new().name(name).stack_size(STACK);
            let begun = builder.spawn_scoped(scope, work);
            begun.map_err(|error| format!("a thread cannot start: {error}; give fewer --jobs"))?;
        }
        Ok::<_, String>(())
    })?;
    Ok(done.into_inner().unwrap_or_else(PoisonError::into_inner))
}
