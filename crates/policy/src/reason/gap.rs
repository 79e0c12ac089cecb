//! What keeps analyzers from a view.

use std::fmt::{self, Display};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::capacity::AnalyzerName;
use crate::signal::SignalName;
use crate::units::Replicas;
use wva_base::text::listed;

/// An input of an analyzer that is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingSignal {
    /// The engine instance, a pod or a rank of one, the variant whose arguments cannot be read, or the
    /// model whose router it is.
    pub instance: Arc<str>,
    pub signal: MissingInput,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MissingInput {
    Arguments,
    #[serde(untagged)]
    Signal(SignalName),
}

wva_base::display_of! { MissingInput:
    Self::Arguments => "arguments";
    Self::Signal(signal) => "{}", signal.as_str();
}

wva_base::display_of! { MissingSignal: Self { instance, signal } => "{signal} of {instance}"; }

/// What keeps analyzers from a view.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ViewGap {
    /// One input of each instance.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingSignal>,
    /// Why there is no view whatever the instances report.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub abstaining: Vec<Abstention>,
}

impl ViewGap {
    pub(crate) fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.abstaining.is_empty()
    }

    pub(crate) fn add(&mut self, signal: MissingSignal) {
        if !self.missing.contains(&signal) {
            self.missing.push(signal);
        }
    }

    pub(crate) fn abstain(&mut self, why: Abstention) {
        if !self.abstaining.contains(&why) {
            self.abstaining.push(why);
        }
    }
}

wva_base::display_of! { ViewGap: Self { missing, abstaining } => "{}", view_gap(missing, abstaining); }

/// Continues a statement that there is no view.
pub(super) fn view_gap(missing: &[MissingSignal], abstaining: &[Abstention]) -> impl Display {
    fmt::from_fn(move |f| {
        let mut separator = ": ";
        if !missing.is_empty() {
            write!(f, ", missing: {}", listed(missing))?;
            separator = "; ";
        }
        for why in abstaining {
            write!(f, "{separator}{why}")?;
            separator = "; ";
        }
        Ok(())
    })
}

/// Why an analyzer has no view on a role that lacks no signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Abstention {
    /// The role serves a part of each request, which the queueing model does not describe.
    PartOfRequests,
    /// Its load has not shown yet what a replica can take.
    NothingLearned { analyzer: AnalyzerName },
    /// What waits in the router has no price in tokens.
    QueueWithoutPrice,
    /// Ready replicas have no sample.
    Silent { analyzer: AnalyzerName, variant: Arc<str>, silent: Replicas, ready: Replicas },
    /// Every analyzer that is listed is disabled.
    NoneEnabled,
    /// The queueing model sizes no replica.
    Unsized { why: Arc<str> },
}

wva_base::display_of! { Abstention:
    Self::PartOfRequests => "{} sizes only replicas that serve whole requests", AnalyzerName::QueueingModel;
    Self::NothingLearned { analyzer } => "{analyzer} has not learned the capacity of a replica yet";
    Self::QueueWithoutPrice =>
        "{} cannot price the queue of the router: its requests, their bytes or the mean request are not known",
        AnalyzerName::Saturation;
    Self::Unsized { why } => "{} {why}", AnalyzerName::QueueingModel;
    Self::Silent { analyzer, variant, silent, ready } =>
        "{analyzer} has no sample of {silent} of {ready} ready replicas of {variant}";
    Self::NoneEnabled => "none of its analyzers is enabled";
}
