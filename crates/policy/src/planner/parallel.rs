//! Many models at once. No model looks at another before limits are applied, so threads may share them
//! out; results are in the order of the models, whatever the number of threads.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

/// Models for which one more thread pays: some 20 ms of work where every analyzer is asked.
const SHARE: usize = 256;

pub(super) fn map<T: Sync, R: Send>(items: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = threads(items.len());
    if threads < 2 {
        return items.iter().map(of).collect();
    }
    let of = &of;
    thread::scope(|scope| {
        let parts = items.chunks(items.len().div_ceil(threads));
        let running: Vec<_> = parts
            .map(|part| scope.spawn(move || part.iter().map(of).collect::<Vec<R>>()))
            .collect();
        let done = running.into_iter().map(thread::ScopedJoinHandle::join);
        done.flat_map(|part| part.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// How many threads share out so many models. To ask for the processors takes as long as ten models do.
fn threads(models: usize) -> usize {
    let most = models / SHARE;
    if most < 2 {
        return 1;
    }
    thread::available_parallelism().map_or(1, NonZero::get).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_does_not_depend_on_the_number_of_threads() {
        for count in [0, 1, SHARE, 5 * SHARE + 1] {
            let items: Vec<usize> = (0..count).collect();
            let expected: Vec<usize> = (0..count).map(|item| 2 * item).collect();
            assert_eq!(map(&items, |item| 2 * item), expected);
        }
    }

    #[test]
    #[should_panic(expected = "the last one")]
    fn a_panic_is_not_swallowed() {
        let items: Vec<usize> = (0..4 * SHARE).collect();
        map(&items, |item| {
            assert!(*item + 1 < items.len(), "the last one");
        });
    }
}
