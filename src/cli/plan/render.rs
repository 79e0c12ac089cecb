//! A plan in the forms that people and programs read.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::autoscalers::{self, AutoscalerPlan, AutoscalerRow};
use super::{Format, PlanFlags};
use crate::cli::{add_notes, or_dash};
use crate::policy::gpu::PoolFigures;
use crate::policy::key::{ModelKey, VariantKey};
use crate::policy::learned::Learned;
use crate::policy::plan::{
    self as decided, Decision, MetricsState, ModelFigures, Plan, PlanStage, Reason, VariantFigures,
};
use crate::policy::slo::SloReport;
use crate::policy::throughput::ThroughputReport;
use crate::policy::units::Replicas;
use wva_base::text::{aligned, printable, shortened};

#[derive(Debug, Clone, Copy)]
pub(super) struct RenderedOutcome<'a> {
    pub(super) plan: &'a Plan,
    pub(super) learned: &'a Learned,
    /// The invariant that the plan breaks, if it does.
    pub(super) violation: Option<&'a str>,
    pub(super) autoscalers: &'a [AutoscalerPlan<'a>],
    /// What is to be known about the settings.
    pub(super) notes: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    cycle: u64,
    /// The invariant that the plan breaks, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    violation: Option<&'a str>,
    /// What is to be known about the settings.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'a [String],
    variants: BTreeMap<&'a VariantKey, Row<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pod_autoscalers: BTreeMap<String, AutoscalerRow<'a>>,
    /// Intermediate figures of each model that was analysed.
    #[serde(skip_serializing_if = "Option::is_none")]
    models: Option<&'a BTreeMap<ModelKey, ModelFigures>>,
    /// The pools of GPUs that the variants draw from, where they limit growth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pools: Option<&'a [PoolFigures]>,
    /// What is known after this collection; a next snapshot may hold it.
    #[serde(skip_serializing_if = "Option::is_none")]
    learned: Option<&'a Learned>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    model: &'a ModelKey,
    accelerator: &'a str,
    cost: String,
    current: Option<Replicas>,
    /// The count that the steps start from.
    from: Option<Replicas>,
    /// The count to publish.
    to: Option<Replicas>,
    action: String,
    outcome: decided::DecisionOutcome,
    metrics: MetricsState,
    reason: String,
    steps: Vec<StepRow<'a>>,
    /// What the object states and cannot act.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    figures: Option<&'a VariantFigures>,
}

#[derive(Serialize)]
struct StepRow<'a> {
    stage: &'static str,
    from: Replicas,
    to: Replicas,
    reason: String,
    why: &'a Reason,
}

pub(super) fn render(outcome: &RenderedOutcome<'_>, flags: &PlanFlags) -> Result<String, String> {
    let answer = answer(outcome, flags.explain);
    match flags.format {
        Format::Table => Ok(table(outcome, flags.explain)),
        Format::Json => serde_json::to_string_pretty(&answer)
            .map(|text| text + "\n")
            .map_err(|error| error.to_string()),
        // By way of a value, so that tagged unions become mappings.
        Format::Yaml => {
            let value = serde_json::to_value(&answer).map_err(|error| error.to_string())?;
            serde_yaml::to_string(&value).map_err(|error| error.to_string())
        }
    }
}

fn answer<'a>(outcome: &RenderedOutcome<'a>, explained: bool) -> Answer<'a> {
    let RenderedOutcome { plan, learned, violation, autoscalers, notes } = *outcome;
    Answer {
        cycle: plan.cycle.0,
        violation,
        notes,
        variants: plan
            .decisions
            .iter()
            .map(|(key, decision)| (key, row(decision, explained)))
            .collect(),
        pod_autoscalers: autoscalers.iter().map(|one| (one.key(), one.row(explained))).collect(),
        models: explained.then_some(&plan.models),
        pools: explained.then_some(&plan.pools),
        learned: explained.then_some(learned),
    }
}

fn row(decision: &Decision, explained: bool) -> Row<'_> {
    let steps = decision.steps.iter().map(|step| StepRow {
        stage: step.stage.as_str(),
        from: step.from,
        to: step.to,
        reason: step.why.to_string(),
        why: &step.why,
    });
    Row {
        model: &decision.model,
        accelerator: decision.accelerator.label(),
        cost: decision.cost.to_string(),
        current: decision.current,
        from: from(decision),
        to: decision.target,
        action: decision.action().to_string(),
        outcome: decision.outcome,
        metrics: decision.metrics,
        reason: decision.reason(),
        steps: steps.collect(),
        notes: &decision.notes,
        figures: explained.then_some(&decision.figures),
    }
}

fn from(decision: &Decision) -> Option<Replicas> {
    let base = decision.steps.iter().find(|step| step.stage == PlanStage::Base)?;
    decision.target.map(|_published| base.to)
}

/// One line for each variant, its steps below it where they are asked for.
fn table(outcome: &RenderedOutcome<'_>, explained: bool) -> String {
    let plan = outcome.plan;
    let mut rows = vec![["VARIANT", "MODEL", "CURRENT", "FROM", "TO", "ACTION"].map(str::to_owned)];
    for (key, decision) in &plan.decisions {
        rows.push([
            key.to_string(),
            shortened(&decision.model.model),
            or_dash(decision.current),
            or_dash(from(decision)),
            or_dash(decision.target),
            decision.action().to_string(),
        ]);
    }
    let mut decisions = plan.decisions.values();
    let mut text = String::new();
    for (number, line) in aligned(&rows).enumerate() {
        text.push_str(&line);
        if number == 0 {
            text.write_str("REASON\n").unwrap_or_default();
        } else if let Some(decision) = decisions.next() {
            writeln!(text, "{}", decision.reason()).unwrap_or_default();
            if explained {
                steps(&mut text, decision);
                model_notes(&mut text, plan, decision);
                for note in &decision.notes {
                    writeln!(text, "    note         {note}").unwrap_or_default();
                }
            }
        }
    }
    if explained && !plan.pools.is_empty() {
        text.write_str("\npools\n").unwrap_or_default();
        for pool in &plan.pools {
            writeln!(text, "    {pool}").unwrap_or_default();
        }
    }
    if explained {
        claims(&mut text, plan);
    }
    if plan.decisions.is_empty() && !outcome.autoscalers.is_empty() {
        text.clear();
    }
    autoscalers::table(&mut text, outcome.autoscalers, explained);
    if !outcome.notes.is_empty() {
        text.push('\n');
    }
    add_notes(&mut text, outcome.notes);
    if let Some(violation) = outcome.violation {
        writeln!(text, "\nthe plan breaks an invariant: {violation}").unwrap_or_default();
    }
    printable(&text)
}

/// What each model claimed of contended budgets that are shared by priority.
fn claims(text: &mut String, plan: &Plan) {
    let claims = plan.models.iter();
    let claims = claims.filter_map(|(model, figures)| Some((model, figures.rescale.as_ref()?)));
    for (number, (model, claim)) in claims.enumerate() {
        if number == 0 {
            text.write_str("\nrescale\n").unwrap_or_default();
        }
        let ModelKey { namespace, model } = model;
        writeln!(text, "    {namespace}/{model}  {claim}").unwrap_or_default();
    }
}

pub(in crate::cli) fn model_notes(text: &mut String, plan: &Plan, decision: &Decision) {
    let figures = plan.models.get(&decision.model);
    let faults = figures.and_then(|figures| figures.arguments.get(&decision.key));
    for fault in faults.into_iter().flatten() {
        writeln!(text, "    note         {fault}").unwrap_or_default();
    }
    let throughput = figures.and_then(|figures| figures.throughput.as_ref());
    let slo = figures.and_then(|figures| figures.slo.as_ref());
    for line in slo.into_iter().flat_map(SloReport::lines) {
        writeln!(text, "    {line}").unwrap_or_default();
    }
    for (role, demand) in figures.iter().flat_map(|figures| &figures.limited) {
        writeln!(
            text,
            "    note         {role}: tokens stand in for latency objectives; they ask for {demand:.0}, and order at \
             most as many replicas again at once"
        )
        .unwrap_or_default();
    }
    if let Some(note) = throughput.and_then(ThroughputReport::note) {
        writeln!(text, "    note         {note}").unwrap_or_default();
    }
}

pub(in crate::cli) fn steps(text: &mut String, decision: &Decision) {
    for step in &decision.steps {
        let (stage, from, to) = (step.stage.as_str(), step.from, step.to);
        writeln!(text, "    {stage:<12} {from} -> {to}  {}", step.why).unwrap_or_default();
    }
}
