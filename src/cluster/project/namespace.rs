//! `Namespace`: whether its owner lets us in.

use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;

use super::{Interner, Projected, annotation, label, name};
use crate::api::{CONFIG_ENABLED_LABEL, EXCLUDE_ANNOTATION};
use crate::policy::filter::{Management, NamespaceObject, OptIn};

impl Projected for PartialObjectMeta<Namespace> {
    type View = NamespaceObject;

    fn project(self, _: &mut Interner) -> NamespaceObject {
        NamespaceObject {
            name: name(&self.metadata),
            management: match annotation(&self.metadata, EXCLUDE_ANNOTATION) {
                Some("true") => Management::Excluded,
                Some(_) | None => Management::Managed,
            },
            opt_in: match label(&self.metadata, CONFIG_ENABLED_LABEL) {
                Some("true") => OptIn::Given,
                Some(_) | None => OptIn::Absent,
            },
        }
    }
}
