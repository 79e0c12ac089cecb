//! What must hold at every moment, each by the number that it has in the list of invariants. What can be
//! judged from values alone is a function of them.

pub(super) mod autoscalers;
pub(super) mod claims;
pub(super) mod ends;
pub(super) mod eventually;
pub(super) mod hearing;
pub(super) mod kept;
pub(super) mod known;
pub(super) mod pace;
pub(super) mod plans;
pub(super) mod series;
pub(super) mod settings;
pub(super) mod spans;
pub(super) mod tree;
pub(super) mod zero;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InvariantViolation {
    pub(crate) invariant: &'static str,
    pub(crate) text: String,
}

impl InvariantViolation {
    pub(super) fn new(invariant: &'static str, text: impl Into<String>) -> Self {
        Self { invariant, text: text.into() }
    }
}

wva_base::display_of! { InvariantViolation: Self { invariant, text } => "{invariant}: {text}"; }
