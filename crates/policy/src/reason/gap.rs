//! What keeps analyzers from a view.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::capacity::AnalyzerName;
use crate::snapshot::SignalName;

/// An input of an analyzer that is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingSignal {
    /// The engine instance, a pod or a rank of one, the variant whose arguments cannot be read, or the
    /// model whose router it is.
    pub instance: Arc<str>,
    /// The input.
    pub signal: MissingInput,
}

/// What is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MissingInput {
    /// The arguments of an engine.
    Arguments,
    /// A signal.
    #[serde(untagged)]
    Signal(SignalName),
}

impl fmt::Display for MissingSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.signal, self.instance)
    }
}

/// Why an analyzer has no view on a role that lacks no signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Abstention {
    /// The role serves a part of each request, which the queueing model does not describe.
    PartOfRequests,
    /// Its load has not shown yet what a replica can take.
    NothingLearned {
        /// The analyzer.
        analyzer: AnalyzerName,
    },
    /// What waits in the router has no price in tokens.
    QueueWithoutPrice,
    /// The queueing model sizes no replica.
    Unsized {
        /// Why, with the remedy.
        why: Arc<str>,
    },
}

impl fmt::Display for Abstention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (analyzer, why) = match self {
            Self::PartOfRequests => (
                AnalyzerName::QueueingModel,
                "sizes only replicas that serve whole requests",
            ),
            Self::NothingLearned { analyzer } => {
                (*analyzer, "has not learned the capacity of a replica yet")
            }
            Self::QueueWithoutPrice => (
                AnalyzerName::Saturation,
                "cannot price the queue of the router: its requests, their bytes or the mean request are not known",
            ),
            Self::Unsized { why } => (AnalyzerName::QueueingModel, &**why),
        };
        write!(f, "{} {why}", analyzer.as_str())
    }
}
