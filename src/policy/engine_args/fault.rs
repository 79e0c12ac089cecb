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
        "argument --{flag} has the value {value:?}, which is not {expected}; it is read as if it \
         were absent, correct it in the pod template"
    )]
    Value {
        /// The argument, without dashes.
        flag: String,
        /// Its value, cut where it is long.
        value: String,
        /// What would be a value.
        expected: String,
    },
    /// It has no value.
    #[error(
        "argument --{flag} has no value; it is read as if it were absent, correct it in the pod \
         template"
    )]
    NoValue {
        /// The argument, without dashes.
        flag: String,
    },
    /// There are too many of them.
    #[error(
        "the commands of the pod template are longer than {bytes} bytes or {words} words; what is \
         beyond is not read"
    )]
    TooLong {
        /// Bytes that are read.
        bytes: usize,
        /// Words that are read.
        words: usize,
    },
}

impl ArgumentFault {
    pub(super) fn value(flag: &str, value: &str, expected: &str) -> Self {
        Self::Value {
            flag: flag.to_owned(),
            value: value.chars().take(SHOWN).collect(),
            expected: expected.to_owned(),
        }
    }
}
