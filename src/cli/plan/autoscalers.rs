//! Decisions of PodAutoscalers, and how they are shown.

use std::fmt::Write as _;

use serde::Serialize;

use crate::cluster::scale::kind_without_watcher;
use crate::doctor::checks::{unreadable_fields, unserved};
use crate::policy::document::AutoscalerSituation;
use crate::policy::plan::Action;
use crate::policy::pod_autoscaler::check::ScalingStrategy;
use crate::policy::pod_autoscaler::claims::TargetRivals;
use crate::policy::pod_autoscaler::condition::{conflict_text, shared_text};
use crate::policy::pod_autoscaler::object::{PodAutoscalerObject, unreadable};
use crate::policy::pod_autoscaler::record::TargetOwner;
use crate::policy::pod_autoscaler::schedule::EffectiveBounds;
use crate::policy::pod_autoscaler::{
    AutoscalerDecision, AutoscalerState, AutoscalerStep, GeneratedHpa, decide,
};
use crate::policy::units::Replicas;
use crate::settings::endpoint_hosts::EndpointHosts;
use crate::settings::{FeatureSwitch, StaticSettings};
use wva_base::moment::Moment;
use wva_base::names::check_object_name;
use wva_base::text::aligned;

#[derive(Debug, Clone)]
pub(super) struct AutoscalerPlan<'a> {
    situation: &'a AutoscalerSituation,
    /// What is decided, or the object that scales the target instead.
    decision: Result<AutoscalerDecision, &'a TargetOwner>,
    state: AutoscalerState,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AutoscalerRow<'a> {
    strategy: &'static str,
    current: Replicas,
    desired: Replicas,
    action: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    algorithm: Option<&'static str>,
    reason: String,
    /// The object that scales the target instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    scaled_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bounds: Option<&'a EffectiveBounds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_boundary: Option<String>,
    /// What mode `Auto` of the forecast would decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    would_be: Option<Replicas>,
    steps: Vec<StepLine<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hpa: Option<serde_json::Value>,
    /// What is remembered; a next snapshot may hold it.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'a AutoscalerState>,
}

#[derive(Serialize)]
struct StepLine<'a> {
    #[serde(flatten)]
    step: &'a AutoscalerStep,
    reason: String,
}

impl<'a> AutoscalerPlan<'a> {
    pub(super) fn of(situation: &'a AutoscalerSituation, now: Moment) -> Self {
        let AutoscalerSituation { policy, view, state, rivals, .. } = situation;
        let (decision, state) = match rivals {
            TargetRivals::Owner(owner) => (Err(owner), state.suspended()),
            TargetRivals::Yielding(_) => {
                let (decision, state) = decide(policy, view, state, now);
                (Ok(decision), state)
            }
        };
        Self { situation, decision, state }
    }

    pub(super) fn key(&self) -> String {
        let metadata = &self.situation.policy.metadata;
        format!("{}/{}", metadata.namespace, metadata.name)
    }

    /// Annotations and fields that do nothing, other objects on the target, a target that no controller can scale, and
    /// sources that one which permits these hosts cannot read.
    pub(super) fn notes(&self, hosts: &EndpointHosts) -> Vec<String> {
        let (key, policy) = (self.key(), &self.situation.policy);
        let faults = policy.faults.iter();
        let mut notes: Vec<String> = faults.map(|fault| format!("{key}: {fault}")).collect();
        if let TargetRivals::Yielding(others) = &self.situation.rivals {
            let shared = shared_text(self.situation.target.as_ref(), others);
            notes.extend(shared.map(|why| format!("{key}: {why}")));
        }
        notes.extend(self.unserved().map(|why| format!("{key}: {why}")));
        // A generated object reads no pages.
        let sources = policy.sources.iter().enumerate();
        let sources = sources.filter(|_| policy.strategy != ScalingStrategy::Hpa);
        for (index, source) in sources {
            let fields = unreadable_fields(source, hosts).into_iter();
            notes.extend(
                fields.map(|(field, why)| {
                    format!("{key}: spec.metricsSources[{index}].{field}: {why}")
                }),
            );
        }
        notes
    }

    /// Why no API server has the target, as far as its reference shows that.
    fn unserved(&self) -> Option<String> {
        let target = &self.situation.policy.target;
        let why = unserved(&target.api_version, &target.kind, &target.name)?;
        let seen = self.situation.target.as_ref();
        let seen = seen.filter(|_| check_object_name(&target.name).is_ok());
        let is_unseen = seen.is_none_or(|target| kind_without_watcher(target).is_some());
        // One of a watched kind is found by any version, also by an HPA, and written by its own.
        let effect = match (is_unseen, self.situation.policy.strategy) {
            (true, _) => "; AbleToScale will be False (FailedGetScale)",
            (false, ScalingStrategy::Hpa) => "",
            (false, _) => "; AbleToScale will be False (FailedUpdateScale)",
        };
        Some(format!("{why}{effect}"))
    }

    fn strategy(&self) -> &'static str {
        self.situation.policy.strategy.as_str()
    }

    fn desired(&self) -> Replicas {
        let decision = self.decision.as_ref();
        decision.map_or(self.situation.view.current, |decided| decided.desired)
    }

    fn reason(&self) -> String {
        match &self.decision {
            Ok(decision) => decision.reason(),
            Err(owner) => conflict_text(self.situation.target.as_ref(), owner),
        }
    }

    fn action(&self) -> Action {
        match self.desired().cmp(&self.situation.view.current) {
            std::cmp::Ordering::Greater => Action::ScaleUp,
            std::cmp::Ordering::Less => Action::ScaleDown,
            std::cmp::Ordering::Equal => Action::NoChange,
        }
    }

    pub(super) fn row(&self, explained: bool) -> AutoscalerRow<'_> {
        let owner = self.decision.as_ref().err().copied();
        let decision = self.decision.as_ref().ok();
        let steps = decision.into_iter().flat_map(|decision| &decision.steps);
        let steps = steps.map(|step| StepLine { step, reason: step.why.to_string() });
        let hpa = decision.and_then(|decision| decision.hpa.as_ref());
        let next_boundary = decision.and_then(|decision| decision.next_boundary);
        AutoscalerRow {
            strategy: self.strategy(),
            current: self.situation.view.current,
            desired: self.desired(),
            action: self.action().to_string(),
            algorithm: decision.map(|decision| decision.algorithm.as_str()),
            reason: self.reason(),
            scaled_by: owner.map(ToString::to_string),
            bounds: decision.map(|decision| &decision.bounds),
            next_boundary: next_boundary.map(|at| at.to_string()),
            would_be: decision.and_then(|decision| decision.would_be),
            steps: steps.collect(),
            hpa: hpa.filter(|_| explained).map(GeneratedHpa::manifest),
            state: explained.then_some(&self.state),
        }
    }
}

/// Values that a snapshot may hold without quotes, and that the API server refuses so.
pub(super) fn unquoted(snapshot: &str) -> Vec<String> {
    let snapshot = snapshot.trim_start_matches('\u{feff}');
    let read: serde_yaml::Value = serde_yaml::from_str(snapshot).unwrap_or_default();
    let documents = read.get("podAutoscalers");
    let documents = documents.and_then(serde_yaml::Value::as_sequence);
    let documents = documents.into_iter().flatten().enumerate();
    let fields = documents.flat_map(|(index, document)| {
        let object = document.get("object").map(serde_json::to_value);
        let fields = object.and_then(Result::ok).map(unreadable::<PodAutoscalerObject>);
        let fields = fields.into_iter().flatten();
        fields.map(move |field| format!("podAutoscalers[{index}].object.{field}"))
    });
    fields.collect()
}

/// Everything to be known about the autoscalers of a snapshot under these settings.
pub(super) fn all_notes(plans: &[AutoscalerPlan<'_>], settings: &StaticSettings) -> Vec<String> {
    let hosts = &settings.pod_pages.endpoint_hosts;
    let is_off = settings.pod_autoscalers == FeatureSwitch::Disabled && !plans.is_empty();
    let off = is_off.then(|| {
        let why =
            "a controller with these settings decides on none; set POD_AUTOSCALERS_ENABLED to true";
        format!("podAutoscalers: {why}")
    });
    let notes = plans.iter().flat_map(|plan| plan.notes(hosts));
    off.into_iter().chain(notes).collect()
}

/// One line for each autoscaler, its steps below it where they are asked for.
pub(super) fn table(text: &mut String, plans: &[AutoscalerPlan<'_>], explained: bool) {
    if plans.is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push('\n');
    }
    let mut rows = vec![["AUTOSCALER", "STRATEGY", "CURRENT", "TO", "ACTION"].map(str::to_owned)];
    rows.extend(plans.iter().map(|plan| {
        [
            plan.key(),
            plan.strategy().to_owned(),
            plan.situation.view.current.to_string(),
            plan.desired().to_string(),
            plan.action().to_string(),
        ]
    }));
    let mut plans = plans.iter();
    for (number, line) in aligned(&rows).enumerate() {
        text.push_str(&line);
        if number == 0 {
            text.push_str("REASON\n");
        } else if let Some(plan) = plans.next() {
            writeln!(text, "{}", plan.reason()).unwrap_or_default();
            if let (Ok(decision), true) = (&plan.decision, explained) {
                steps(text, decision);
            }
        }
    }
}

fn steps(text: &mut String, decision: &AutoscalerDecision) {
    for step in &decision.steps {
        let (stage, from, to) = (step.stage.as_str(), step.from, step.to);
        writeln!(text, "    {stage:<12} {from} -> {to}  {}", step.why).unwrap_or_default();
    }
    if let Some(next) = decision.next_boundary {
        writeln!(text, "    note         the bounds change next at {next}").unwrap_or_default();
    }
}
