//! The fleet as a table, and as a document.

use std::fmt::Write as _;

use super::fleet::{FleetStatus, PodAutoscalerRow, ReplicaCounts, VariantRow};
use crate::cli::{add_notes, or_dash};
use wva_base::text::{aligned, shortened};

const COLUMNS: [&str; 9] = [
    "MODEL / VARIANT",
    "CURRENT",
    "DESIRED",
    "READY",
    "PENDING",
    "GATED",
    "SCALER",
    "SIGNALS",
    "COST",
];

pub(super) fn json(status: &FleetStatus) -> Result<String, String> {
    let text = serde_json::to_string_pretty(status).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}

/// A line for each model, one for each of its variants below it; of one namespace, or of all.
pub(super) fn table(status: &FleetStatus, namespace: Option<&str>) -> String {
    let mut text = String::new();
    if status.variants.is_empty() && status.pod_autoscalers.is_empty() {
        let place = namespace.map_or_else(String::new, |namespace| {
            format!(" in namespace {namespace}; -A shows all namespaces")
        });
        writeln!(text, "no VariantAutoscalings and no PodAutoscalers{place}").unwrap_or_default();
    }
    variants(&mut text, &status.variants);
    autoscalers(&mut text, &status.pod_autoscalers);
    if !status.notes.is_empty() {
        text.push('\n');
    }
    add_notes(&mut text, &status.notes);
    text
}

fn variants(text: &mut String, variants: &[VariantRow]) {
    if variants.is_empty() {
        return;
    }
    let mut rows = vec![COLUMNS.map(str::to_owned)];
    let mut reasons = vec!["LAST DECISION"];
    let is_one_model = |one: &VariantRow, other: &VariantRow| {
        one.namespace == other.namespace && one.model == other.model
    };
    for model in variants.chunk_by(is_one_model) {
        rows.push(model_row(model));
        reasons.push("");
        for variant in model {
            rows.push(variant_row(variant));
            reasons.push(&variant.decision);
        }
    }
    lines(text, &rows, &reasons);
}

fn sum<T: std::iter::Sum>(counts: impl Iterator<Item = Option<T>>) -> Option<T> {
    counts.sum()
}

fn model_row(variants: &[VariantRow]) -> [String; 9] {
    let of = |read: fn(&VariantRow) -> Option<u64>| or_dash(sum(variants.iter().map(read)));
    let first = variants.first();
    let name = first.map(|first| format!("{}/{}", first.namespace, shortened(&first.model)));
    [
        name.unwrap_or_default(),
        of(|row| row.replicas.current),
        of(|row| row.desired),
        of(|row| row.replicas.ready),
        of(|row| row.replicas.pending),
        of(|row| row.replicas.gated),
        String::new(),
        String::new(),
        cost(sum(variants.iter().map(|row| row.cost))),
    ]
}

fn cost(cost: Option<f64>) -> String {
    or_dash(cost.map(|cost| format!("{cost:.1}")))
}

fn variant_row(row: &VariantRow) -> [String; 9] {
    let ReplicaCounts { current, ready, pending, gated } = row.replicas;
    [
        format!("  {}", row.name),
        or_dash(current),
        or_dash(row.desired),
        or_dash(ready),
        or_dash(pending),
        or_dash(gated),
        row.scaler.clone().unwrap_or_else(|| "none".to_owned()),
        or_dash(row.signal_age.as_deref()),
        cost(row.cost),
    ]
}

fn autoscalers(text: &mut String, autoscalers: &[PodAutoscalerRow]) {
    if autoscalers.is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push('\n');
    }
    let titles = ["AUTOSCALER", "STRATEGY", "CURRENT", "DESIRED", "READY", "PENDING", "GATED"];
    let mut rows = vec![titles.map(str::to_owned)];
    let mut reasons = vec!["LAST DECISION"];
    for row in autoscalers {
        rows.push([
            format!("{}/{}", row.namespace, row.name),
            row.strategy.clone(),
            or_dash(row.replicas.current),
            or_dash(row.desired),
            or_dash(row.replicas.ready),
            or_dash(row.replicas.pending),
            or_dash(row.replicas.gated),
        ]);
        reasons.push(&row.decision);
    }
    lines(text, &rows, &reasons);
}

fn lines<const N: usize>(text: &mut String, rows: &[[String; N]], reasons: &[&str]) {
    for (mut line, reason) in aligned(rows).zip(reasons) {
        line.push_str(&reason.replace('\n', " "));
        writeln!(text, "{}", line.trim_end()).unwrap_or_default();
    }
}
