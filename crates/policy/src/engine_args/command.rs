//! The command of a container.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What is needed of one container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ContainerCommand {
    /// `image`.
    pub image: Arc<str>,
    /// `command`.
    pub command: Vec<Arc<str>>,
    /// `args`.
    pub args: Vec<Arc<str>>,
    /// `env`, as far as values are written there and the command needs them.
    pub env: BTreeMap<Arc<str>, Arc<str>>,
}
