//! The containers of a pod template, and what was read of them.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize, Serializer};

use super::EngineFingerprint;
use super::command::ContainerCommand;
use super::parse::{ParsedArgs, parse};

/// Containers of a pod template. Clones share what was read of them: every cycle needs it again.
#[derive(Clone, Default, Deserialize)]
#[serde(from = "Vec<ContainerCommand>")]
pub struct Containers(Arc<SharedContainers>);

#[derive(Default)]
struct SharedContainers {
    commands: Vec<ContainerCommand>,
    engine: OnceLock<ReadEngine>,
}

/// What containers state about their engine.
#[derive(Debug)]
pub(crate) struct ReadEngine {
    pub(crate) parsed: ParsedArgs,
    pub(crate) fingerprint: EngineFingerprint,
}

impl Containers {
    pub(crate) fn engine(&self) -> Option<&ReadEngine> {
        let read = || {
            let parsed = parse(self);
            let fingerprint = parsed.args.fingerprint();
            ReadEngine { parsed, fingerprint }
        };
        (!self.is_empty()).then(|| self.0.engine.get_or_init(read))
    }
}

impl Deref for Containers {
    type Target = [ContainerCommand];

    fn deref(&self) -> &[ContainerCommand] {
        &self.0.commands
    }
}

impl From<Vec<ContainerCommand>> for Containers {
    fn from(commands: Vec<ContainerCommand>) -> Self {
        Self(Arc::new(SharedContainers { commands, engine: OnceLock::new() }))
    }
}

impl FromIterator<ContainerCommand> for Containers {
    fn from_iter<I: IntoIterator<Item = ContainerCommand>>(commands: I) -> Self {
        commands.into_iter().collect::<Vec<_>>().into()
    }
}

impl PartialEq for Containers {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl Eq for Containers {}

impl fmt::Debug for Containers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(formatter)
    }
}

impl Serialize for Containers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}
