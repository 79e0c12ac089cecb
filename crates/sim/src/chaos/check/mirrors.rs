//! M: what is known of the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::InvariantViolation;
use wva::policy::key::VariantKey;

#[derive(Debug, Default)]
pub(crate) struct Versions(BTreeMap<VariantKey, (Arc<str>, u64)>);

impl Versions {
    /// M1: no object goes back to an older version. `excused` where the server itself did.
    pub(crate) fn judge(
        &mut self,
        known: impl IntoIterator<Item = (VariantKey, Arc<str>, u64)>,
        excused: bool,
    ) -> Vec<InvariantViolation> {
        let mut found = Vec::new();
        let mut next = BTreeMap::new();
        for (key, uid, version) in known {
            let before = self.0.get(&key).filter(|(of, _)| *of == uid);
            if let Some((_, before)) = before
                && version < *before
                && !excused
            {
                let text = format!("{key} goes back from version {before} to {version}");
                found.push(InvariantViolation::new("M1", text));
            }
            next.insert(key, (uid, version));
        }
        self.0 = next;
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_does_not_grow_younger() {
        let known = |uid: &str, version| [(VariantKey::new("n", "v"), Arc::from(uid), version)];
        let mut versions = Versions::default();
        assert_eq!(versions.judge(known("a", 5), false), []);
        assert_eq!(versions.judge(known("a", 6), false), []);
        assert_eq!(versions.judge(known("b", 3), false), [], "another object");
        assert_eq!(versions.judge(known("b", 2), true), [], "so did the server");
        assert_eq!(versions.judge(known("b", 1), false)[0].invariant, "M1");
    }
}
