//! T5: what is kept is of what exists.

use std::collections::BTreeSet;

use serde_json::Value;

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
}
