//! What the policy ConfigMaps share: entries under any legal key, their identity in the body, a
//! `default`, and namespace over global, field by field.

mod changes;
mod read;

use serde::de::DeserializeOwned;

pub(super) use changes::{ScopeChange, changes, place, unused_entries};
pub(super) use read::{mention_unknown, read_scoped, refuse};

use super::config_maps::Purpose;
use wva_base::yaml::DocumentField;

/// A kind of entry.
pub(super) trait Entry: Clone + PartialEq {
    /// Its YAML form.
    type Document: DeserializeOwned + Default;
    /// The ConfigMap it stands in.
    const PURPOSE: Purpose;
    /// Fields of its YAML form.
    const FIELDS: &'static [DocumentField];

    /// Model and namespace that the body names.
    fn identity(document: &Self::Document) -> (Option<&str>, Option<&str>);

    /// A rule on the identity beyond those of every entry.
    fn identity_fault(_document: &Self::Document) -> Option<&'static str> {
        None
    }

    /// Values that are accepted and mean nothing, each with its path and what to write. `scope` is the
    /// namespace that overrides, or `None` for the cluster.
    fn strange(_document: &Self::Document, _kind: EntryKind, _scope: Option<&str>) -> Vec<String> {
        Vec::new()
    }

    /// Judges a document.
    fn judge(document: Self::Document, entry: EntryKind) -> DocumentVerdict<Self>;

    /// What to know about an entry that is accepted.
    fn lints(&self) -> Vec<String> {
        Vec::new()
    }

    /// Takes over from the entry in force before what [`DocumentVerdict::Partly`] left out.
    fn complete(&mut self, _previous: &Self) {}
}

/// Whom an entry is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    /// Every model without an entry.
    Default,
    /// One model.
    Model,
}

/// The judgement of a document.
#[derive(Debug)]
pub(super) enum DocumentVerdict<E> {
    /// Accepted.
    Whole(E),
    /// Accepted without the faulty parts, which are named.
    Partly(E, Vec<String>),
    /// Refused, with every fault.
    Refused(Vec<String>),
}
