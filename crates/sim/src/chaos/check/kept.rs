//! T5: what is kept is of what exists, and what a process holds is bounded by what there is to be known. T4: nothing is
//! held after its end.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use allocations::Owner;
use serde_json::Value;

use super::super::process_checker::RELISTED;
use super::InvariantViolation;
use wva::policy::key::VariantKey;
use wva::roles::Role;
use wva::state::Readers;
use wva_supervise::RoleReport;

/// What is learned of the fleet as a whole, in bytes of JSON.
const LEARNED_LEAST: usize = 64 << 10;
const LEARNED_EACH: usize = 16 << 10;

#[derive(Debug, Default)]
pub(in crate::chaos) struct Kept {
    seen: BTreeSet<String>,
    number: Option<u64>,
}

pub(crate) type Places = Vec<(&'static str, BTreeSet<String>)>;

impl Kept {
    pub(crate) fn note<'a>(
        &mut self,
        number: u64,
        exist: impl IntoIterator<Item = &'a VariantKey>,
    ) {
        if self.number.replace(number) != Some(number) {
            let exist = exist.into_iter().map(ToString::to_string);
            self.seen.extend(exist);
        }
    }

    pub(crate) fn of_gone(&self, kept: Places, exists: impl Fn(&str) -> bool) -> Vec<String> {
        of_gone(kept, |name| !self.seen.contains(name) || exists(name))
    }
}

pub(crate) fn of_gone(kept: Places, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let gone = kept.into_iter().flat_map(|(what, names)| {
        let gone = names.into_iter().filter(|name| !exists(name));
        let gone: Vec<String> =
            gone.map(|name| format!("{name} is gone, and {what} is kept")).collect();
        gone
    });
    gone.collect()
}

pub(crate) fn places(
    shared: &Readers,
    roles: &[RoleReport<Role>],
    page: &BTreeSet<VariantKey>,
    learned: &Value,
) -> Places {
    let roles = roles.iter().filter_map(|one| match &one.role {
        Role::Variant(key) => Some(key.to_string()),
        _ => None,
    });
    let quarantined = shared.quarantined.load();
    let (board, records) = (shared.board.snapshot(), shared.records.snapshot());
    let mut taught = BTreeSet::new();
    names(learned, &mut taught);
    vec![
        ("its role", roles.collect()),
        ("its view", texts(board.keys())),
        ("its record", texts(records.keys())),
        ("its quarantine", texts(quarantined.keys())),
        ("its series", texts(page)),
        ("what was learned of it", taught),
    ]
}

pub(crate) fn texts<K: ToString>(keys: impl IntoIterator<Item = K>) -> BTreeSet<String> {
    keys.into_iter().map(|key| key.to_string()).collect()
}

pub(crate) fn outgrown(
    learned: &Value,
    variants: usize,
    pods: usize,
) -> Option<InvariantViolation> {
    let bytes = learned.to_string().len();
    let limit = LEARNED_LEAST + LEARNED_EACH * (variants + pods);
    (bytes > limit).then(|| {
        let text = format!(
            "{bytes} bytes were learned of {variants} variants and {pods} pods, not {limit}"
        );
        InvariantViolation::new("T5", text)
    })
}

fn names(of: &Value, found: &mut BTreeSet<String>) {
    match of {
        Value::String(text) => {
            found.insert(text.clone());
        }
        Value::Array(all) => all.iter().for_each(|one| names(one, found)),
        Value::Object(fields) => {
            for (key, value) in fields {
                found.insert(key.clone());
                names(value, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

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
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_is_kept_of_what_is_gone() {
        let mut kept = Kept::default();
        let of = |kept: &Kept, exist: &[&str]| {
            let mut taught = BTreeSet::new();
            names(&json!({"a": [{"n/v": 1}, "n/w"], "b": null}), &mut taught);
            kept.of_gone(vec![("it", taught)], |name| exist.contains(&name))
        };
        assert_eq!(of(&kept, &[]), [""; 0], "none of them existed");
        kept.note(1, &[VariantKey::new("n", "v"), VariantKey::new("n", "w")]);
        assert_eq!(of(&kept, &["n/v", "n/w"]), [""; 0]);
        assert_eq!(of(&kept, &["n/v"]), ["n/w is gone, and it is kept"]);
    }

    #[test]
    fn what_is_learned_is_bounded_by_what_exists() {
        let learned = |bytes: usize| Value::String("a".repeat(bytes - 2));
        let limit = LEARNED_LEAST + 3 * LEARNED_EACH;
        assert_eq!(outgrown(&learned(limit), 1, 2), None);
        let found = outgrown(&learned(limit + 1), 1, 2).unwrap();
        assert_eq!(found.invariant, "T5");
        assert_eq!(outgrown(&learned(limit + 1), 2, 2), None);
    }

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
