//! Which series a selector means.

use super::pattern::{InvalidPattern, Pattern};

/// A condition on one label. A label that a series does not have is empty.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Matcher {
    pub(super) label: String,
    condition: Condition,
}

#[derive(Debug, Clone, PartialEq)]
enum Condition {
    Equal(String),
    Unequal(String),
    Like(Pattern),
    Unlike(Pattern),
}

/// The operators between label and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    Unequal,
    /// `=~`
    Like,
    /// `!~`
    Unlike,
}

impl Matcher {
    /// A condition on a label.
    ///
    /// # Errors
    /// When the value has to be a pattern and is none.
    pub(super) fn new(
        label: &str,
        comparison: Comparison,
        value: String,
    ) -> Result<Self, InvalidPattern> {
        let condition = match comparison {
            Comparison::Equal => Condition::Equal(value),
            Comparison::Unequal => Condition::Unequal(value),
            Comparison::Like => Condition::Like(Pattern::new(&value)?),
            Comparison::Unlike => Condition::Unlike(Pattern::new(&value)?),
        };
        Ok(Self {
            label: label.to_owned(),
            condition,
        })
    }

    /// The condition that a label has this value.
    pub(super) fn equal(label: &str, value: &str) -> Self {
        Self {
            label: label.to_owned(),
            condition: Condition::Equal(value.to_owned()),
        }
    }

    /// Whether a value fulfils it.
    pub(super) fn matches(&self, value: &str) -> bool {
        match &self.condition {
            Condition::Equal(wanted) => value == wanted,
            Condition::Unequal(unwanted) => value != unwanted,
            Condition::Like(pattern) => pattern.matches(value),
            Condition::Unlike(pattern) => !pattern.matches(value),
        }
    }

    /// The only value that fulfils it, where that can be seen.
    pub(super) fn exact(&self) -> Option<&str> {
        match &self.condition {
            Condition::Equal(wanted) => Some(wanted),
            _ => None,
        }
    }
}
