//! T5: what a process holds is bounded by what there is to be known. T4: nothing is held after its end.

use allocations::Owner;

use super::Violation;

/// What a process may hold that knows of nothing, in bytes.
const LEAST: usize = 1 << 20;
/// What it may hold of each variant and pod.
const EACH: usize = 48 << 10;

/// What one process holds.
#[derive(Debug, Default)]
pub(in crate::sim::chaos) struct Holdings {
    /// The most variants and pods that there were at one time. What has made room for them may keep it.
    objects: usize,
}

impl Holdings {
    /// Of a process that begins when there are so many variants and pods, which it may list before any look.
    pub(in crate::sim::chaos) fn beginning_with(objects: usize) -> Self {
        Self { objects }
    }

    /// Judges the most bytes that were held since the last look.
    pub(in crate::sim::chaos) fn judge(
        &mut self,
        bytes: usize,
        objects: usize,
    ) -> Option<Violation> {
        self.objects = self.objects.max(objects);
        let limit = LEAST + EACH * self.objects;
        (bytes > limit).then(|| {
            let text = format!(
                "{bytes} bytes were held, with {} variants and pods, not {limit}",
                self.objects
            );
            Violation::new("T5", text)
        })
    }
}

/// T4, after the end of everything: tasks that are left, and what is still held of processes, each with its
/// place.
pub(in crate::sim::chaos) fn left(tasks: usize, owners: &[(usize, Owner)]) -> Option<Violation> {
    if tasks > 0 {
        let text = format!("{tasks} tasks are left after the end of everything");
        return Some(Violation::new("T4", text));
    }
    owners.iter().find_map(|(place, owner)| {
        let bytes = owner.held();
        let text = format!("{bytes} bytes of a process of c{place} are left after its end");
        (bytes > 0).then(|| Violation::new("T4", text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_belongs_to_who_allocated_it_whoever_frees_it() {
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

    #[test]
    fn room_that_was_made_may_be_kept() {
        let mut holdings = Holdings::default();
        let limit = LEAST + 3 * EACH;
        let found = holdings.judge(limit + 1, 3).unwrap();
        assert_eq!(found.invariant, "T5");
        assert_eq!(holdings.judge(limit, 3), None);
        assert_eq!(holdings.judge(limit, 0), None);
        assert!(holdings.judge(limit + 1, 0).is_some());
        let mut holdings = Holdings::beginning_with(3);
        assert_eq!(holdings.judge(limit, 0), None);
    }
}
