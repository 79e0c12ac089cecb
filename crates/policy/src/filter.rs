//! Which objects of the cluster concern this controller.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What is kept of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceObject {
    /// Its name.
    pub name: Arc<str>,
    /// The annotation `wva.llmd.ai/exclude`.
    pub management: Management,
    /// The label `wva.llmd.ai/config-enabled`.
    pub opt_in: OptIn,
}

/// Whether the owner of a namespace lets the controller in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Management {
    /// The annotation is absent or not `"true"`.
    #[default]
    Managed,
    /// It is `"true"`: hands off.
    Excluded,
}

/// Whether ConfigMaps of a namespace act even before it holds a variant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OptIn {
    /// The label is absent or not `"true"`.
    #[default]
    Absent,
    /// It is `"true"`.
    Given,
}

/// Whether a namespace holds a variant of ours that is not being deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracking {
    /// It does.
    Tracked,
    /// It does not.
    Untracked,
}

/// The part of the cluster that this controller is in charge of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchScope {
    /// Where the controller itself lives, and with it the global ConfigMaps.
    pub system_namespace: Arc<str>,
    /// The one namespace that is watched; `None` for all of them.
    pub watch_namespace: Option<Arc<str>>,
    /// `CONTROLLER_INSTANCE`: only variants labelled with exactly this are ours. `None` for
    /// variants of whatever instance.
    pub instance: Option<Arc<str>>,
}

wva_base::named! {
    shown
    /// Whether a variant is ours.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[cfg_attr(test, derive(Deserialize), serde(rename_all = "kebab-case"))]
    pub enum Admission {
        /// It is.
        Ours = "ours",
        /// It lies outside the watched namespace.
        OutsideScope = "outside the watched namespace",
        /// Its namespace is excluded.
        Excluded = "in a namespace annotated wva.llmd.ai/exclude=true",
        /// It belongs to another instance, or to none.
        ForeignInstance = "not labelled with this controller's instance",
    }
}

/// Which part of the configuration a ConfigMap belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(Deserialize), serde(rename_all = "kebab-case"))]
pub enum ConfigReach {
    /// It holds for the whole cluster.
    Global,
    /// It overrides for its own namespace.
    Local,
    /// It has no effect.
    Ignored,
}

impl WatchScope {
    /// Whether the global ConfigMaps lie outside the one namespace that is watched.
    pub fn system_lies_outside(&self) -> bool {
        self.watch_namespace.as_ref().is_some_and(|watched| *watched != self.system_namespace)
    }

    /// Whether a variant is ours, by its namespace and its label
    /// `wva.llmd.ai/controller-instance`. A namespace that is not known counts as not excluded.
    /// The exclusion holds for everything we do, decisions included. It does not hold for the one
    /// namespace that the controller watches by its settings.
    pub fn admits(
        &self,
        variant_namespace: &str,
        instance_label: Option<&str>,
        namespace: Option<&NamespaceObject>,
    ) -> Admission {
        match self.watch_namespace.as_deref() {
            Some(watched) if watched != variant_namespace => return Admission::OutsideScope,
            None if management(namespace) == Management::Excluded => return Admission::Excluded,
            Some(_) | None => {}
        }
        match self.instance.as_deref() {
            Some(instance) if instance_label != Some(instance) => Admission::ForeignInstance,
            Some(_) | None => Admission::Ours,
        }
    }

    /// What a ConfigMap in this namespace is for; its name is judged elsewhere. A namespace may
    /// override the global configuration if it is the watched one, or if it holds a variant or the
    /// opt-in label and is not excluded: exclusion beats both.
    pub fn reach(
        &self,
        config_namespace: &str,
        namespace: Option<&NamespaceObject>,
        tracking: Tracking,
    ) -> ConfigReach {
        if *self.system_namespace == *config_namespace {
            return ConfigReach::Global;
        }
        let invited = tracking == Tracking::Tracked
            || namespace.is_some_and(|namespace| namespace.opt_in == OptIn::Given);
        let local = match self.watch_namespace.as_deref() {
            Some(watched) => watched == config_namespace,
            None => invited && management(namespace) == Management::Managed,
        };
        if local { ConfigReach::Local } else { ConfigReach::Ignored }
    }
}

fn management(namespace: Option<&NamespaceObject>) -> Management {
    namespace.map(|namespace| namespace.management).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde::Deserialize;

    use super::{Admission, ConfigReach, Management, NamespaceObject, OptIn, Tracking, WatchScope};

    const VECTORS: &str =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/filter.yaml"));

    #[derive(Deserialize)]
    struct Vectors {
        variants: Vec<Vector<Admission>>,
        config_maps: Vec<Vector<ConfigReach>>,
    }

    #[derive(Deserialize)]
    struct Vector<E> {
        id: String,
        namespace: String,
        watch: Option<Arc<str>>,
        instance: Option<Arc<str>>,
        label: Option<String>,
        #[serde(default)]
        tracked: bool,
        expect: E,
    }

    fn namespace(name: &str) -> Option<NamespaceObject> {
        let (management, opt_in) = match name {
            "n1" | "n3" | "sys" => (Management::Managed, OptIn::Absent),
            "n2" => (Management::Excluded, OptIn::Absent),
            "n4" => (Management::Managed, OptIn::Given),
            "n5" => (Management::Excluded, OptIn::Given),
            _ => return None,
        };
        Some(NamespaceObject { name: Arc::from(name), management, opt_in })
    }

    fn scope<E>(vector: &Vector<E>) -> WatchScope {
        WatchScope {
            system_namespace: Arc::from("sys"),
            watch_namespace: vector.watch.clone(),
            instance: vector.instance.clone(),
        }
    }

    #[test]
    fn variants_are_admitted_as_the_vectors_say() {
        let vectors: Vectors = serde_yaml::from_str(VECTORS).unwrap();
        assert!(vectors.variants.len() > 10);
        for vector in vectors.variants {
            let admission = scope(&vector).admits(
                &vector.namespace,
                vector.label.as_deref(),
                namespace(&vector.namespace).as_ref(),
            );
            assert_eq!(admission, vector.expect, "{}", vector.id);
        }
    }

    #[test]
    fn config_maps_reach_as_far_as_the_vectors_say() {
        let vectors: Vectors = serde_yaml::from_str(VECTORS).unwrap();
        assert!(vectors.config_maps.len() > 10);
        for vector in vectors.config_maps {
            let tracking = if vector.tracked { Tracking::Tracked } else { Tracking::Untracked };
            let namespace = namespace(&vector.namespace);
            let reach = scope(&vector).reach(&vector.namespace, namespace.as_ref(), tracking);
            assert_eq!(reach, vector.expect, "{}", vector.id);
        }
    }
}
