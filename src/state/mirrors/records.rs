//! Variants, whichever kind of object they are: VariantAutoscalings, and scalers whose annotations declare them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Mirrors, object_key, target_of, variant_object_key};
use crate::cluster::mirror::{Mirror, ObjectKey};
use crate::cluster::project::scaler::ScalerObject;
use crate::cluster::project::variant::{MANAGED_ANNOTATION, VariantRecord};
use crate::cluster::status::CountPatch;
use crate::policy::filter::Admission;
use crate::policy::key::{TargetKey, VariantKey};
use crate::policy::object::{Lifecycle, SpecReading};
use crate::policy::variant;
use crate::settings::FeatureSwitch;

impl Mirrors {
    /// The object of a variant, if this controller manages it. One that shares its name or its target with another, of
    /// which annotations declare one at least, is malformed: none is chosen, and both keep their counts.
    pub fn managed(&self, key: &VariantKey) -> Option<Arc<VariantRecord>> {
        let record = self.all_managed(key).into_iter().next()?;
        match self.disputant(&record) {
            Some(rival) => Some(Arc::new(disputed(&record, &rival))),
            None => Some(record),
        }
    }

    /// All objects of this controller with the name of a variant, the one that stands for it first.
    pub fn all_managed(&self, key: &VariantKey) -> Vec<Arc<VariantRecord>> {
        let mut records = self.named(&variant_object_key(key));
        records.retain(|record| self.admits(record));
        records
    }

    /// An object, of whichever controller, that is a variant of this name.
    pub fn any_record(&self, key: &VariantKey) -> Option<Arc<VariantRecord>> {
        self.named(&variant_object_key(key)).into_iter().next()
    }

    /// Every object that is a variant, of whichever controller.
    pub fn all_records(&self) -> Vec<Arc<VariantRecord>> {
        let variants = self.variants.all().into_iter().map(|(_, record)| record);
        let declared = self.declaring().flat_map(Mirror::all);
        let declared = declared.filter_map(|(_, scaler)| scaler.declared.clone());
        variants.chain(declared).collect()
    }

    /// The variants of a namespace, of whichever controller.
    pub fn variants_in(&self, namespace: &str) -> BTreeSet<VariantKey> {
        let variants = self.variants.in_namespace(namespace).into_iter();
        let variants = variants.map(|(_, record)| record.object.key.clone());
        let declared = self.declaring().flat_map(|mirror| mirror.in_namespace(namespace));
        let declared =
            declared.filter_map(|(_, scaler)| Some(scaler.declared.as_ref()?.object.key.clone()));
        variants.chain(declared).collect()
    }

    /// All variants of this controller and of other instances that name a target and make sense,
    /// sorted: one that does not scales nothing, and takes nothing from others.
    pub fn claimants(&self, target: &TargetKey) -> Vec<VariantKey> {
        let claims = self.scaling(target).into_iter().filter(|record| self.counts(record));
        let keys: BTreeSet<_> = claims.map(|record| record.object.key.clone()).collect();
        keys.into_iter().collect()
    }

    /// A variant that names a target, and is not of this controller.
    pub fn foreign_claimant(&self, target: &TargetKey) -> Option<Arc<VariantRecord>> {
        let mut all = self.scaling(target).into_iter();
        all.find(|record| self.admission(record).is_some_and(|one| one != Admission::Ours))
    }

    /// Every object that is a variant, of whichever controller, and names a target.
    fn scaling(&self, target: &TargetKey) -> Vec<Arc<VariantRecord>> {
        let name = object_key(target);
        let variants = self.variants.naming(&name).into_iter().map(|(_, record)| record);
        let declared = self.declaring().flat_map(|mirror| mirror.naming(&name));
        let declared = declared.filter_map(|(_, scaler)| scaler.declared.clone());
        // An object of another kind may have the same name.
        let is_same = |record: &Arc<VariantRecord>| target_of(record).as_ref() == Some(target);
        variants.chain(declared).filter(is_same).collect()
    }

    fn counts(&self, record: &VariantRecord) -> bool {
        self.is_handled(record) && variant::read(&record.object).is_ok()
    }

    /// Whether annotations of scalers declare variants.
    pub fn takes_annotations(&self) -> bool {
        self.annotated == FeatureSwitch::Enabled
    }

    /// Whether who leads may do without a fresh list of a kind: it declares no variant, or may not be listed.
    pub fn is_dispensable(&self, mirror: &Mirror<ScalerObject>) -> bool {
        !self.takes_annotations() || mirror.is_forbidden()
    }

    /// Whether each kind that can be a variant was listed once, or may not be: what is missing until then may have the
    /// name or the target of what is there. Among VariantAutoscalings alone that is judged with the target.
    pub fn knows_variants(&self) -> bool {
        let is_listed = || self.variants.synced() && self.declaring().all(Mirror::synced);
        !self.takes_annotations() || is_listed()
    }

    /// The kinds that declare variants. While one may not be listed, its variants end, and their counts stay stored.
    fn declaring(&self) -> impl Iterator<Item = &Mirror<ScalerObject>> {
        let mirrors = [&self.horizontal_pod_autoscalers, &self.scaled_objects];
        let mirrors = mirrors.into_iter();
        mirrors.filter(|mirror| !self.is_dispensable(mirror))
    }

    fn named(&self, name: &ObjectKey) -> Vec<Arc<VariantRecord>> {
        let declared = self.declaring().filter_map(|mirror| mirror.get(name)?.declared.clone());
        let all = self.variants.get(name).into_iter();
        all.chain(declared).collect()
    }

    /// The names of objects that declare no variant any more and hold a count that this field manager wrote.
    pub fn left_counts(&self, manager: &str) -> Vec<VariantKey> {
        let scalers = self.declaring().flat_map(Mirror::all);
        let left = scalers.filter_map(|(_, scaler)| left_by(manager, &scaler));
        left.map(|left| left.key).collect()
    }

    /// What removes those of one name, each from an object of another kind.
    pub fn removals(&self, key: &VariantKey, manager: &str) -> Vec<CountPatch> {
        let name = variant_object_key(key);
        let scalers = self.declaring().filter_map(|mirror| mirror.get(&name));
        let left = scalers.filter_map(|scaler| left_by(manager, &scaler));
        left.collect()
    }

    /// Another object with the name or the target of a variant, where annotations declare one of both.
    fn disputant(&self, record: &VariantRecord) -> Option<Arc<VariantRecord>> {
        if variant::read(&record.object).is_err() {
            return None;
        }
        // Objects of other instances publish under this name with a label of their own.
        let named = self.all_managed(&record.object.key).into_iter();
        // Among VariantAutoscalings alone the target is contested, which is judged with the target.
        let claims = target_of(record).map(|target| self.scaling(&target));
        let claims = claims.into_iter().flatten();
        let claims =
            claims.filter(|other| record.declared_by.is_some() || other.declared_by.is_some());
        named.chain(claims).filter(|other| self.counts(other)).find(|other| {
            record.declared_by != other.declared_by || record.object.key != other.object.key
        })
    }
}

fn left_by(manager: &str, scaler: &ScalerObject) -> Option<CountPatch> {
    let left = (scaler.leftover.as_ref()).filter(|_| scaler.lifecycle == Lifecycle::Live)?;
    let is_ours = left.owners.iter().any(|owner| &*owner.manager == manager);
    is_ours.then(|| left.removal.clone())
}

fn disputed(record: &VariantRecord, rival: &VariantRecord) -> VariantRecord {
    let what = match (target_of(record), target_of(rival)) {
        (Some(target), other) if other.as_ref() == Some(&target) => {
            format!("scale target {} {}", target.kind, target.name)
        }
        _ => format!("variant name {}", record.object.key.name),
    };
    let why = format!(
        "{} {} and {} {} claim {what}, and none of them scales it; delete one, or set its annotation {MANAGED_ANNOTATION} to \"false\"",
        record.kind(),
        record.object.key,
        rival.kind(),
        rival.object.key,
    );
    let mut record = record.clone();
    record.object.spec = SpecReading::Malformed { why: why.into() };
    record
}

#[cfg(test)]
mod tests;
