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
    /// The number of the surroundings that were taken in last.
    number: Option<u64>,
}

/// Where a process keeps something about variants.
pub(crate) struct VariantStores<'a> {
    /// What outlives its roles.
    pub(crate) shared: &'a Readers,
    pub(crate) roles: &'a [RoleReport<Role>],
    pub(crate) page: &'a BTreeSet<VariantKey>,
}

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

    pub(crate) fn of_gone(
        &self,
        places: &VariantStores<'_>,
        learned: &Value,
        exists: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let VariantStores {
            shared,
            roles,
            page,
        } = places;
        let quarantined = shared.quarantined.load();
        let roles = roles.iter().filter_map(|one| match &one.role {
            Role::Variant(key) => Some(key.to_string()),
            _ => None,
        });
        let text = |keys: Vec<VariantKey>| keys.into_iter().map(|key| key.to_string()).collect();
        let mut taught = BTreeSet::new();
        names(learned, &mut taught);
        let kept: [(&str, BTreeSet<String>); 6] = [
            ("its role", roles.collect()),
            (
                "its view",
                text(shared.board.snapshot().into_keys().collect()),
            ),
            (
                "its record",
                text(shared.records.snapshot().into_keys().collect()),
            ),
            (
                "its quarantine",
                text(quarantined.keys().cloned().collect()),
            ),
            ("its series", text(page.iter().cloned().collect())),
            ("what was learned of it", taught),
        ];
        let mut found = Vec::new();
        for (what, names) in kept {
            let gone = |name: &String| self.seen.contains(name) && !exists(name);
            let gone = names.into_iter().filter(gone);
            found.extend(gone.map(|name| format!("{name} is gone, and {what} is kept")));
        }
        found
    }
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
    fn names_are_found_at_any_depth() {
        let mut found = BTreeSet::new();
        names(&json!({"a": [{"n/v": 1}, "n/w"], "b": null}), &mut found);
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(found, ["a", "b", "n/v", "n/w"]);
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
