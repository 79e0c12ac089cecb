//! Which ConfigMap is for what, by name, and which of them count.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::problem::Warning;
use super::purpose::Purpose;
use super::schema;
use super::sources::{Data, MainConfigMap, PolicySources, Sources};
use super::values::SettingValues;

/// Names of the ConfigMaps that are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigMapNames {
    /// Main.
    pub main: String,
    /// Saturation.
    pub saturation: String,
    /// Queueing model.
    pub queueing_model: String,
    /// Service classes.
    pub service_classes: String,
}

impl ConfigMapNames {
    /// Name of the scale-to-zero ConfigMaps; it is the same in every installation.
    pub const SCALE_TO_ZERO: &'static str = "wva-model-scale-to-zero-config";

    /// The names that the settings say.
    pub fn of(values: &SettingValues) -> Self {
        Self {
            main: values.name(&schema::CONFIG_MAP_NAME),
            saturation: values.name(&schema::SATURATION_CONFIG_MAP_NAME),
            queueing_model: values.name(&schema::QUEUEING_MODEL_CONFIG_MAP_NAME),
            service_classes: values.name(&schema::SERVICE_CLASSES_CONFIG_MAP_NAME),
        }
    }

    /// The name in use for a purpose.
    pub fn current(&self, purpose: Purpose) -> &str {
        match purpose {
            Purpose::Main => &self.main,
            Purpose::Saturation => &self.saturation,
            Purpose::ScaleToZero => Self::SCALE_TO_ZERO,
            Purpose::QueueingModel => &self.queueing_model,
            Purpose::ServiceClasses => &self.service_classes,
        }
    }

    /// What a ConfigMap of this name is for; `None` if it is nothing to us. Older names count.
    pub fn purpose(&self, name: &str) -> Option<Purpose> {
        Purpose::ALL.into_iter().find(|purpose| self.current(*purpose) == name).or_else(|| {
            Purpose::ALL.into_iter().find(|purpose| purpose.older_names().contains(&name))
        })
    }

    /// Every name, current before older, that is looked at for a purpose.
    pub fn names(&self, purpose: Purpose) -> impl Iterator<Item = &str> {
        std::iter::once(self.current(purpose)).chain(purpose.older_names().iter().copied())
    }
}

/// One ConfigMap of the cluster.
#[derive(Debug, Clone, Copy)]
pub struct ConfigMapView<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its data.
    pub data: &'a Data,
}

/// Puts the ConfigMaps that count into `sources`, in place of those that were there. Global are
/// those in `system_namespace`; `may_override` returns whether those of another namespace count.
pub fn gather<'a>(
    sources: &mut Sources,
    names: &ConfigMapNames,
    system_namespace: &str,
    may_override: impl Fn(&str) -> bool,
    config_maps: impl IntoIterator<Item = ConfigMapView<'a>>,
) -> Vec<Warning> {
    let mut found: BTreeMap<(Purpose, &str), BTreeMap<&str, &Data>> = BTreeMap::new();
    for view in config_maps {
        let Some(purpose) = names.purpose(view.name) else {
            continue;
        };
        let global = view.namespace == system_namespace;
        if global || (purpose.may_be_local() && may_override(view.namespace)) {
            found.entry((purpose, view.namespace)).or_default().insert(view.name, view.data);
        }
    }
    let mut notices = Vec::new();
    sources.main = MainConfigMap::Absent;
    sources.service_classes = None;
    sources.saturation = PolicySources::default();
    sources.scale_to_zero = PolicySources::default();
    sources.queueing_model = PolicySources::default();
    for ((purpose, namespace), candidates) in found {
        let Some(data) = choose(names, purpose, namespace, &candidates, &mut notices) else {
            continue;
        };
        let global = namespace == system_namespace;
        match purpose {
            Purpose::Main => sources.main = MainConfigMap::Present(data),
            Purpose::ServiceClasses => sources.service_classes = Some(data),
            Purpose::Saturation => put(&mut sources.saturation, global, namespace, data),
            Purpose::ScaleToZero => put(&mut sources.scale_to_zero, global, namespace, data),
            Purpose::QueueingModel => put(&mut sources.queueing_model, global, namespace, data),
        }
    }
    notices
}

fn put(policy: &mut PolicySources, global: bool, namespace: &str, data: Data) {
    if global {
        policy.global = Some(data);
    } else {
        policy.namespaces.insert(Arc::from(namespace), data);
    }
}

/// The first of the known names wins; every older one is mentioned.
fn choose(
    names: &ConfigMapNames,
    purpose: Purpose,
    namespace: &str,
    candidates: &BTreeMap<&str, &Data>,
    notices: &mut Vec<Warning>,
) -> Option<Data> {
    let mut chosen = None;
    let mut in_force = names.current(purpose);
    for name in names.names(purpose) {
        let Some(data) = candidates.get(name) else {
            continue;
        };
        let read = chosen.is_none();
        if read {
            in_force = name;
            chosen = Some((*data).clone());
        }
        if name != names.current(purpose) {
            let older = format!("{purpose} {namespace}/{name}");
            notices.push(Warning::remark(if read {
                let current = names.current(purpose);
                format!("{older} has an older name; rename it to {current}")
            } else {
                format!("{older} is not read, since {namespace}/{in_force} exists")
            }));
        }
    }
    chosen
}
