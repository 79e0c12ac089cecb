//! One planning cycle: what it was made from, and what it decided.

use std::collections::BTreeMap;

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use wva_base::moment::Moment;
use wva_policy::key::VariantKey;
use wva_policy::learned::Learned;
use wva_policy::params::DynamicSettings;
use wva_policy::plan::{Decision, DecisionOutcome, Plan, PlanStage, Step};
use wva_policy::queueing::LearnedParameters;
use wva_policy::snapshot::ClusterSnapshot;
use wva_policy::units::Replicas;

/// Most bytes of figures that the first cycle of a segment has. Of all others there is the digest alone.
const MOST_FIGURES: usize = 16 * 1024;

/// Everything that a plan is made from.
#[derive(Debug, Clone, Copy)]
pub struct CycleInputs<'a> {
    /// When it is made.
    pub now: Moment,
    /// The settings generation.
    pub generation: u64,
    /// The fleet.
    pub snapshot: &'a ClusterSnapshot,
    /// What was learned before.
    pub learned: &'a Learned,
    /// The settings.
    pub settings: &'a DynamicSettings,
}

/// One cycle as it was recorded.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RecordedCycle {
    /// When the plan was made.
    pub now: Moment,
    /// The settings generation.
    pub generation: u64,
    /// The fleet.
    pub snapshot: ClusterSnapshot,
    /// What was learned before.
    pub learned: Learned,
    /// The settings.
    pub settings: DynamicSettings,
    /// What was decided.
    pub decided: RecordedDecisions,
}

/// What one cycle decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedDecisions {
    /// By variant.
    pub variants: BTreeMap<VariantKey, RecordedDecision>,
    /// SHA-256 of the whole plan with its figures, as JSON.
    pub digest: String,
    /// In the first cycle of a segment, the figures of the first models and variants.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, Value>,
}

/// The decision about one variant. The digest covers what is left out here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedDecision {
    /// Replicas that existed.
    pub current: Option<Replicas>,
    /// The published count.
    pub target: Option<Replicas>,
    /// What kind of decision it is.
    pub outcome: DecisionOutcome,
    /// The stage of the decisive step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<PlanStage>,
    /// Every step, where one of them changed the count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
}

impl RecordedDecision {
    fn of(decision: &Decision) -> Self {
        let is_changed = decision.steps.iter().any(|step| step.from != step.to);
        Self {
            current: decision.current,
            target: decision.target,
            outcome: decision.outcome,
            stage: decision.decisive().map(|step| step.stage),
            steps: if is_changed { decision.steps.clone() } else { Vec::new() },
        }
    }
}

impl RecordedDecisions {
    /// What a plan decided.
    pub fn of(plan: &Plan) -> Result<Self, serde_json::Error> {
        let variants = plan
            .decisions
            .iter()
            .map(|(key, decision)| (key.clone(), RecordedDecision::of(decision)));
        Ok(Self {
            variants: variants.collect(),
            digest: hex_digest(plan)?,
            figures: BTreeMap::new(),
        })
    }

    fn with_figures(mut self, plan: &Plan) -> Result<Self, serde_json::Error> {
        let mut room = MOST_FIGURES;
        for object in figures(plan) {
            let (object, figures) = object?;
            let Some(left) = room.checked_sub(figures.to_string().len()) else {
                break;
            };
            room = left;
            self.figures.insert(object, figures);
        }
        Ok(self)
    }
}

/// The figures of each model, then those of each variant.
pub(crate) fn figures(
    plan: &Plan,
) -> impl Iterator<Item = Result<(String, Value), serde_json::Error>> {
    let models = plan.models.iter().map(|(key, model)| {
        let figures = serde_json::to_value(model);
        figures.map(|figures| (key.to_string(), figures))
    });
    let variants = plan.decisions.iter().map(|(key, decision)| {
        let figures = serde_json::to_value(decision);
        figures.map(|figures| (key.to_string(), figures))
    });
    models.chain(variants)
}

/// SHA-256 of a value as JSON.
pub(crate) fn hex_digest(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let digest = digest(&SHA256, &serde_json::to_vec(value)?);
    let bytes = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
    Ok(bytes.collect())
}

impl CycleInputs<'_> {
    /// The learned state that the plan reads. Every collection tunes the queueing model, which no plan reads unless the
    /// settings ask for it; it would be the largest part.
    fn learned(&self) -> Result<Value, serde_json::Error> {
        if self.settings.asks_queueing_model() {
            return serde_json::to_value(self.learned);
        }
        let read = Learned { queueing: LearnedParameters::default(), ..self.learned.clone() };
        serde_json::to_value(&read)
    }

    /// The cycle, with figures where it is the first of a segment.
    pub(crate) fn recorded(&self, plan: &Plan, is_first: bool) -> Result<Value, serde_json::Error> {
        let mut decided = RecordedDecisions::of(plan)?;
        if is_first {
            decided = decided.with_figures(plan)?;
        }
        Ok(json!({
            "now": self.now,
            "generation": self.generation,
            "snapshot": serde_json::to_value(self.snapshot)?,
            "learned": self.learned()?,
            "settings": serde_json::to_value(self.settings)?,
            "decided": serde_json::to_value(&decided)?,
        }))
    }
}
