//! Series of what plans say besides the counts.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use prometheus::GaugeVec;

use super::facts::{Fact, Row, RowSubject, Rows, enforced, limiter};
use super::families::{PlanCounters, Registrar};
use crate::policy::key::{ModelKey, VariantKey};
use crate::policy::plan::Plan;

/// Gauges that show the last plan, and counters of what plans did.
#[derive(Debug)]
pub(super) struct PlannedSeries {
    gauges: BTreeMap<Fact, GaugeVec>,
    counters: PlanCounters,
    shown: Mutex<Shown>,
}

/// What the gauges show. A model goes with its last variant, and the fleet with the last of all.
#[derive(Debug, Default)]
struct Shown {
    rows: BTreeMap<RowSubject, Vec<Row>>,
    models: BTreeMap<VariantKey, ModelKey>,
    members: BTreeMap<ModelKey, BTreeSet<VariantKey>>,
    limiters: BTreeMap<VariantKey, BTreeSet<String>>,
}

impl PlannedSeries {
    pub(super) fn new(registrar: &Registrar<'_>) -> Result<Self, prometheus::Error> {
        let gauges = Fact::ALL.into_iter().map(|fact| {
            let (name, help, labels) = fact.describe();
            Ok((fact, registrar.gauges(name, help, labels)?))
        });
        Ok(Self {
            gauges: gauges.collect::<Result<_, prometheus::Error>>()?,
            counters: PlanCounters::new(registrar)?,
            shown: Mutex::default(),
        })
    }

    /// Shows a plan in place of the one before, and counts what it did. Of variants that went since it
    /// was made nothing is shown.
    pub(super) fn show(&self, plan: &Plan, is_live: impl Fn(&VariantKey) -> bool) {
        let mut shown = self.shown();
        let rows = Rows::of(plan, &is_live).0;
        self.set(rows.values().flatten());
        let before = mem::replace(&mut shown.rows, rows);
        for (subject, old) in before {
            let kept = shown.rows.get(&subject).map_or(&[][..], Vec::as_slice);
            let is_gone = |old: &&Row| {
                let same = |row: &Row| row.fact == old.fact && row.labels == old.labels;
                !kept.iter().any(same)
            };
            self.remove(old.iter().filter(is_gone));
        }
        shown.models.clear();
        shown.members.clear();
        for decision in plan.decisions.values().filter(|one| is_live(&one.key)) {
            let (key, model) = (decision.key.clone(), decision.model.clone());
            let members = shown.members.entry(model.clone()).or_default();
            members.insert(key.clone());
            shown.models.insert(key.clone(), model);
            if let Some(limiter) = limiter(decision) {
                let labels = [&*key.name, &*key.namespace, limiter];
                self.counters.limited.with_label_values(&labels).inc();
                let limiters = shown.limiters.entry(key).or_default();
                limiters.insert(limiter.to_owned());
            }
            if let Some(policy) = enforced(decision) {
                self.counters.enforced.with_label_values(&[policy]).inc();
            }
        }
    }

    /// Removes the series of a variant, with those of its model if it was the last one.
    pub(super) fn withdraw(&self, variant: &VariantKey) {
        let mut shown = self.shown();
        self.forget(&mut shown, &RowSubject::Variant(variant.clone()));
        for limiter in shown.limiters.remove(variant).unwrap_or_default() {
            let labels = [&*variant.name, &*variant.namespace, &limiter];
            // An absent series is what was asked for, so the answer does not matter.
            drop(self.counters.limited.remove_label_values(&labels));
        }
        let Some(model) = shown.models.remove(variant) else {
            return;
        };
        if let Some(members) = shown.members.get_mut(&model) {
            members.remove(variant);
            if members.is_empty() {
                shown.members.remove(&model);
                self.forget(&mut shown, &RowSubject::Model(model));
            }
        }
        if shown.models.is_empty() {
            self.forget(&mut shown, &RowSubject::Fleet);
        }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, shown: &mut Shown, subject: &RowSubject) {
        let rows = shown.rows.remove(subject).unwrap_or_default();
        self.remove(&rows);
    }

    fn set<'a>(&self, rows: impl IntoIterator<Item = &'a Row>) {
        for row in rows {
            if let Some(gauge) = self.gauges.get(&row.fact) {
                gauge.with_label_values(&row.labels).set(row.value);
            }
        }
    }

    fn remove<'a>(&self, rows: impl IntoIterator<Item = &'a Row>) {
        for row in rows {
            if let Some(gauge) = self.gauges.get(&row.fact) {
                // As above.
                drop(gauge.remove_label_values(&row.labels));
            }
        }
    }
}
