//! T5: what a process holds is bounded by what there is to be known. T4: nothing is held after its end.

use std::collections::VecDeque;
use std::time::Duration;

use allocations::Owner;

use super::super::process_checker::RELISTED;
use super::InvariantViolation;

/// What a process may hold that knows of nothing, in bytes: of an unreadable entry of settings, which has
/// 200 kB, there are several copies for a moment.
const LEAST: usize = 2 << 20;
const EACH: usize = 48 << 10;

/// The most variants and pods that there were at one time lately: what a server may still show that has gone
/// back in time.
#[derive(Debug, Default)]
pub(crate) struct Lately(VecDeque<(Duration, usize)>);

impl Lately {
    pub(crate) fn note(&mut self, now: Duration, count: usize) -> usize {
        while self.0.pop_back_if(|(_, least)| *least <= count).is_some() {}
        self.0.push_back((now, count));
        let is_over = |(at, _): &mut (Duration, usize)| *at + RELISTED < now;
        while self.0.pop_front_if(is_over).is_some() {}
        self.0.front().map_or(count, |(_, most)| *most)
    }

    pub(crate) fn most(&self) -> usize {
        self.0.front().map_or(0, |(_, most)| *most)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Holdings {
    /// The most variants and pods that there were at one time. What has made room for them may keep it.
    objects: usize,
}

impl Holdings {
    pub(crate) fn judge(&mut self, bytes: usize, objects: usize) -> Option<InvariantViolation> {
        self.objects = self.objects.max(objects);
        let limit = LEAST + EACH * self.objects;
        (bytes > limit).then(|| {
            let text = format!(
                "{bytes} bytes were held, with {} variants and pods, not {limit}",
                self.objects
            );
            InvariantViolation::new("T5", text)
        })
    }
}

/// T4, after the end of everything: tasks that are left, and what is still held of processes, each with its
/// place.
pub(crate) fn left(tasks: usize, owners: &[(usize, Owner)]) -> Option<InvariantViolation> {
    if tasks > 0 {
        let text = format!("{tasks} tasks are left after the end of everything");
        return Some(InvariantViolation::new("T4", text));
    }
    owners.iter().find_map(|(place, owner)| {
        let bytes = owner.held();
        let text = format!("{bytes} bytes of a process of c{place} are left after its end");
        (bytes > 0).then(|| InvariantViolation::new("T4", text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_belongs_to_who_allocated_it_wherever_it_is_freed() {
        let (one, other) = (Owner::new(), Owner::new());
        let scope = one.enter();
        let mut kept: Vec<u8> = Vec::with_capacity(1_000);
        let passed = vec![0_u64; 100];
        drop(scope);
        assert_eq!((one.held(), other.held()), (1_800, 0));
        let scope = other.enter();
        kept.reserve_exact(3_000);
        drop(passed);
        let aligned = Box::new(Aligned([1; 64]));
        drop(scope);
        assert_eq!((one.held(), other.held()), (3_000, 64));
        assert_eq!(std::ptr::from_ref(&*aligned).addr() % 64, 0);
        assert_eq!(aligned.0, [1; 64]);
        assert_eq!((one.take_peak(), one.take_peak()), (3_800, 3_000));
        let found = left(0, &[(0, Owner::new()), (2, one)]).unwrap();
        assert_eq!(found.invariant, "T4");
        assert!(found.text.contains("3000 bytes of a process of c2"));
        drop((kept, aligned));
        assert_eq!(left(0, &[(1, one), (2, other)]), None);
        assert_eq!(left(1, &[]).unwrap().invariant, "T4");
    }

    #[repr(align(64))]
    struct Aligned([u8; 64]);
}
