//! Service classes: latency targets per model, by class, in order of priority.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::queueing_model::LatencyTargets;

/// Label of a VariantAutoscaling that names the class of its model.
pub const CLASS_LABEL: &str = "wva.llmd.ai/service-class";

/// The model that stands for every model a class does not name.
pub const ANY_MODEL: &str = "default/default";

/// One class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceClass {
    /// Its name.
    pub name: String,
    /// Its rank; 1 is served before 10.
    pub priority: u32,
    /// Targets by model.
    pub targets: BTreeMap<String, LatencyTargets>,
}

/// Targets of a model, with the class that they come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassTargets<'a> {
    /// The class.
    pub class: &'a ServiceClass,
    /// Its targets for the model.
    pub targets: LatencyTargets,
}

/// Every class in force, by key of the ConfigMap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceClasses {
    /// As they are written.
    pub entries: BTreeMap<String, Vec<ServiceClass>>,
}

impl ServiceClasses {
    /// The class with this name, letter case ignored.
    pub fn named(&self, name: &str) -> Option<&ServiceClass> {
        self.all().find(|class| class.name.eq_ignore_ascii_case(name))
    }

    /// Targets of a model. The first class of `labels` (those of its variants, by name) that has some for it comes first,
    /// then the class of best priority that names the model, then the one that names [`ANY_MODEL`].
    pub fn targets<'a>(
        &self,
        model: &str,
        labels: impl IntoIterator<Item = &'a str>,
    ) -> Option<ClassTargets<'_>> {
        let mut labels = labels.into_iter();
        let labelled = labels.find_map(|label| self.of_class(model, label));
        labelled.or_else(|| {
            [model, ANY_MODEL].into_iter().find_map(|model| {
                let named = self.all().filter_map(|class| {
                    let targets = *class.targets.get(model)?;
                    Some(ClassTargets { class, targets })
                });
                named.min_by_key(|found| (found.class.priority, &found.class.name))
            })
        })
    }

    /// Targets of a model by the class of this name alone.
    pub fn of_class(&self, model: &str, name: &str) -> Option<ClassTargets<'_>> {
        let class = self.named(name)?;
        let targets = class.targets.get(model).or_else(|| class.targets.get(ANY_MODEL))?;
        Some(ClassTargets { class, targets: *targets })
    }

    /// Every class.
    pub fn all(&self) -> impl Iterator<Item = &ServiceClass> {
        self.entries.values().flatten()
    }
}
