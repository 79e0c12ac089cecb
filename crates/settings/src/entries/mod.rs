//! What the policy ConfigMaps share: entries under any legal key, their identity in the body, a
//! `default`, and namespace over global, field by field.

mod changes;
mod read;

use serde::de::DeserializeOwned;

pub(super) use changes::{ScopeChange, changes, place, unused_entries};
pub(super) use read::{read_document, read_scoped, refuse};

use super::purpose::Purpose;
use wva_base::yaml::DocumentField;

pub(super) trait Entry: Clone + Default + PartialEq {
    type Document: DeserializeOwned + Default;
    /// The ConfigMap it stands in.
    const PURPOSE: Purpose;
    const FIELDS: &'static [DocumentField];
    /// Whether an entry without a model is a tier; else it is refused.
    const TIERS: bool = false;

    /// Model and namespace that the body names.
    fn identity(document: &Self::Document) -> (Option<&str>, Option<&str>);

    fn identity_fault(_document: &Self::Document) -> Option<&'static str> {
        None
    }

    /// Values that are accepted and mean nothing, each with its path and what to write. `scope` is the
    /// namespace that overrides, or `None` for the cluster.
    fn strange(_document: &Self::Document, _kind: EntryKind, _scope: Option<&str>) -> Vec<String> {
        Vec::new()
    }

    fn judge(document: Self::Document, entry: EntryKind) -> DocumentVerdict<Self>;

    fn lints(&self) -> Vec<String> {
        Vec::new()
    }

    /// Takes over from the entry in force before what [`DocumentVerdict::Partly`] left out.
    fn complete(&mut self, _previous: &Self) {}
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    /// Every model without an entry.
    Default,
    Model,
    /// Models whose variants name it.
    Tier,
}

#[derive(Debug)]
pub(super) enum DocumentVerdict<E> {
    Whole(E),
    /// Accepted without the faulty parts, which are named.
    Partly(E, Vec<String>),
    Refused(Vec<String>),
}

impl<E> DocumentVerdict<E> {
    fn into_faults(self) -> Vec<String> {
        match self {
            Self::Whole(_) => Vec::new(),
            Self::Partly(_, faults) | Self::Refused(faults) => faults,
        }
    }
}
