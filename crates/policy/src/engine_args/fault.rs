//! What cannot be read of a command line.

use serde::{Deserialize, Serialize};

/// Longest part of a value that is repeated in a message.
const SHOWN: usize = 64;

/// An argument that was not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum ArgumentFault {
    /// Its value is none.
    #[error(
        "argument --{flag} has the value {value:?}, which is not {expected}; {assumed} is assumed, \
         correct it in the pod template"
    )]
    Value {
        /// The argument, without dashes.
        flag: String,
        /// Its value, cut where it is long.
        value: String,
        /// What would be a value.
        expected: String,
        /// What is assumed instead.
        assumed: String,
    },
    /// Its value names a variable that is not known here, or whose dollar sign is escaped.
    #[error(
        "argument --{flag} has the literal text {value:?} as its value: the dollar sign is escaped, or \
         the pod template does not spell out the variable; {assumed} is assumed, write the value there, \
         or in env of the container"
    )]
    Variable {
        flag: String,
        /// Cut where it is long.
        value: String,
        assumed: String,
    },
    #[error("argument --{flag} has no value; {assumed} is assumed, correct it in the pod template")]
    NoValue { flag: String, assumed: String },
    #[error(
        "the commands of the pod template are longer than {bytes} bytes or {words} words; what is \
         beyond is not read"
    )]
    TooLong { bytes: usize, words: usize },
}

impl ArgumentFault {
    /// The same with what is assumed instead, which is known once all arguments are read.
    pub(super) fn assuming(mut self, text: String) -> Self {
        match &mut self {
            Self::Value { assumed, .. }
            | Self::Variable { assumed, .. }
            | Self::NoValue { assumed, .. } => *assumed = text,
            Self::TooLong { .. } => {}
        }
        self
    }
}

pub(super) fn shown(value: &str) -> String {
    value.chars().take(SHOWN).collect()
}
