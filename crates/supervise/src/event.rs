//! Why a handler is called.

use std::fmt;

use super::incarnation::Incarnation;

/// Why a handler is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<M> {
    /// Always the first of a life, and only the first: answer doorbells and slots, then make a full
    /// pass. Whatever an earlier life left undone is found here.
    Started,
    /// A message.
    Message(M),
}

impl<M: fmt::Debug> Event<M> {
    pub(super) fn meet(&self, incarnation: &Incarnation) {
        match self {
            Self::Started => incarnation.hooks().meet(self),
            Self::Message(message) => incarnation.hooks().meet(message),
        }
    }
}
