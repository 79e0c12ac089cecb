//! GPU quotas as `limiters[]` states them.

use std::collections::{BTreeMap, BTreeSet};

use serde_yaml::Value;

use super::document::LimiterDocument;
use crate::settings::namespace::shortened;

/// Largest quota of one accelerator type.
const MAX_QUOTA: i64 = 1_048_576;

/// How many GPUs of one type may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quota {
    /// As many as there are; written -1.
    Unlimited,
    /// This many; 0 denies the type.
    AtMost(u32),
}

/// Quotas by accelerator type.
pub type Quotas = BTreeMap<String, Quota>;

/// One limiter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limiter {
    /// Unique among the limiters of one list.
    pub name: String,
    /// What it limits.
    pub scope: LimiterScope,
    /// Namespaces that it does not limit.
    pub exclude: BTreeSet<String>,
}

/// Most contradictions of one limiter that are told.
const MAX_TOLD: usize = 8;

impl Limiter {
    /// Namespaces that have a quota and are excluded: the quota does not count.
    pub(super) fn contradictions(&self) -> impl Iterator<Item = String> {
        let quotas = match &self.scope {
            LimiterScope::Namespaces(quotas) => Some(quotas),
            LimiterScope::Cluster(_) => None,
        };
        let names = quotas.into_iter().flat_map(BTreeMap::keys);
        let both = names.filter(|name| self.exclude.contains(*name));
        both.take(MAX_TOLD).map(|name| {
            format!(
                "namespace {:?} stands in exclude and in namespaceQuotas; it is not limited, remove it \
                 from one of them",
                shortened(name)
            )
        })
    }
}

/// What a limiter limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimiterScope {
    /// The sum over the cluster.
    Cluster(Quotas),
    /// Each namespace by itself; `default` stands for those that are not listed.
    Namespaces(BTreeMap<String, Quotas>),
}

/// Checks a whole list and names every fault.
pub(super) fn judge_limiters(
    documents: Vec<LimiterDocument>,
    faults: &mut Vec<String>,
) -> Vec<Limiter> {
    let mut names = BTreeSet::new();
    let mut limiters = Vec::new();
    for (index, document) in documents.into_iter().enumerate() {
        let name = document.name.clone().unwrap_or_default();
        let place = format!("limiters[{index}]");
        if name.is_empty() {
            faults.push(format!(
                "{place}: a name is required: write one such as name: gpus"
            ));
        } else if !names.insert(name.clone()) {
            faults.push(format!(
                "{place}: name {name:?} stands twice: rename one of them"
            ));
        }
        match document.kind.as_deref() {
            Some("quota") => {}
            other => faults.push(format!(
                "{place}: type must be \"quota\", got {:?}",
                other.unwrap_or_default()
            )),
        }
        judge_accelerators(&place, &document, faults);
        if let Some(scope) = judge_scope(&place, &document, faults) {
            limiters.push(Limiter {
                name,
                scope,
                exclude: document.exclude.unwrap_or_default().into_iter().collect(),
            });
        }
    }
    limiters
}

/// Names every quota without an accelerator type or outside its range, whatever the scope.
fn judge_accelerators(place: &str, document: &LimiterDocument, faults: &mut Vec<String>) {
    let cluster = (document.quotas.iter()).map(|quotas| (place.to_owned(), quotas));
    let namespaces = (document.namespace_quotas.iter().flatten())
        .map(|(name, quotas)| (format!("{place}.namespaceQuotas.{name}"), quotas));
    for (place, quotas) in cluster.chain(namespaces) {
        for (accelerator, value) in quotas {
            if accelerator.trim().is_empty() {
                faults.push(format!(
                    "{place}: quota of {accelerator:?} needs an accelerator type: write one, for example \
                     H100"
                ));
            }
            if quota(value).is_none() {
                faults.push(format!(
                    "{place}: quota of {accelerator:?} must be -1 (unlimited) or 0 to {MAX_QUOTA}, \
                     got {}",
                    refused(value)
                ));
            }
        }
    }
}

fn judge_scope(
    place: &str,
    document: &LimiterDocument,
    faults: &mut Vec<String>,
) -> Option<LimiterScope> {
    let read = |quotas: &BTreeMap<String, Value>| -> Quotas {
        (quotas.iter())
            .filter_map(|(accelerator, value)| Some((accelerator.clone(), quota(value)?)))
            .collect()
    };
    match (
        document.scope.as_deref(),
        &document.quotas,
        &document.namespace_quotas,
    ) {
        (Some("cluster"), Some(quotas), None) => Some(LimiterScope::Cluster(read(quotas))),
        (Some("namespace"), None, Some(namespaces)) => Some(LimiterScope::Namespaces(
            namespaces
                .iter()
                .map(|(name, quotas)| (name.clone(), read(quotas)))
                .collect(),
        )),
        (Some("cluster"), _, _) => {
            faults.push(format!(
                "{place}: scope cluster needs quotas and no namespaceQuotas"
            ));
            None
        }
        (Some("namespace"), _, _) => {
            faults.push(format!(
                "{place}: scope namespace needs namespaceQuotas and no quotas"
            ));
            None
        }
        (other, _, _) => {
            faults.push(format!(
                "{place}: scope must be \"cluster\" or \"namespace\", got {:?}",
                other.unwrap_or_default()
            ));
            None
        }
    }
}

fn quota(value: &Value) -> Option<Quota> {
    match value.as_i64()? {
        -1 => Some(Quota::Unlimited),
        number @ 0..=MAX_QUOTA => u32::try_from(number).ok().map(Quota::AtMost),
        _ => None,
    }
}

/// A quota that is not accepted, with the remedy where it is no whole number.
fn refused(value: &Value) -> String {
    let given = match value {
        Value::Number(number) if !number.is_f64() => return number.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Bool(switch) => switch.to_string(),
        Value::String(text) => format!("{:?}", shortened(text)),
        Value::Null => "nothing".to_owned(),
        Value::Sequence(_) => "a list".to_owned(),
        Value::Mapping(_) | Value::Tagged(_) => "a mapping".to_owned(),
    };
    format!("{given}: write a whole number without quotes")
}
