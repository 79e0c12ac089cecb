//! GPUs that pods hold by dynamic resource allocation.

use serde_json::Value;

use super::targets::{target, templates};
use super::variants::settings_of;
use crate::api::resource_claim_template::ResourceClaimTemplate;
use crate::cluster::project::resource_claim_template::{device_class, device_gpus};
use crate::cluster::project::{Interner, Projected as _};
use crate::doctor::facts::{Facts, LiveKind};
use crate::doctor::finding::{Finding, FindingCode};
use crate::doctor::object::{LiveObject, list};
use crate::policy::params::DynamicSettings;
use crate::policy::pod_template::is_gpu;

checks! {
    Variants "GPUs of targets are counted" claims:
        Installed Kind(VariantAutoscaling) Kind(Deployment) Kind(ResourceClaimTemplate);
    Variants "GPUs of device classes are counted" classes:
        Installed Kind(VariantAutoscaling) Kind(Deployment) Kind(DeviceClass);
}

/// Targets of which some controller that this is so for handles the variant.
fn targets(facts: &Facts, is_so: impl Fn(&DynamicSettings) -> bool) -> Vec<&LiveObject> {
    let variants = facts.variants().filter(|variant| {
        let mut settings = settings_of(facts, variant);
        settings.any(|one| is_so(&one.dynamic))
    });
    variants.filter_map(|variant| target(facts, variant)).collect()
}

fn claims(facts: &Facts) -> Vec<Finding> {
    let limited = targets(facts, DynamicSettings::limits_growth).into_iter();
    let found = limited.filter_map(|target| {
        let maker =
            |claim: &Value| claim.get("resourceClaimTemplateName")?.as_str().map(str::to_owned);
        let shared = templates(target).map(|template| {
            let claims = list(template, "/spec/resourceClaims").iter();
            claims.filter(|claim| maker(claim).is_none()).count()
        });
        let mut makers = templates(target)
            .flat_map(|template| list(template, "/spec/resourceClaims"))
            .filter_map(maker);
        let what = match shared.max()? {
            0 => {
                let name = makers.find(|name| is_uncounted(facts, target.namespace(), name))?;
                format!("a resource claim from template {name}, whose GPUs cannot be counted")
            }
            claims => format!("{claims} resource claims that no template makes"),
        };
        let cause = format!("its pods have {what}, and growth is limited to GPUs");
        Some(FindingCode::ClaimsNotCounted.at(target.title(), cause))
    });
    found.collect()
}

/// Whether a template requests GPUs that the controller cannot count.
fn is_uncounted(facts: &Facts, namespace: &str, name: &str) -> bool {
    let object = facts.find(LiveKind::ResourceClaimTemplate, namespace, name);
    let read = object.and_then(|object| object.read::<ResourceClaimTemplate>().ok());
    read.is_some_and(|template| template.project(&mut Interner::default()).gpus.is_none())
}

/// Resources that a device class stands behind: nodes offer those of known drivers, and quotas know the names of some.
fn classes(facts: &Facts) -> Vec<Finding> {
    let of_nodes = targets(facts, DynamicSettings::wants_nodes);
    let limited = targets(facts, DynamicSettings::limits_growth).into_iter();
    let found = limited.filter_map(|target| {
        let is_of_nodes = of_nodes.iter().any(|one| std::ptr::eq(*one, target));
        let (resource, class) = templates(target)
            .flat_map(|template| list(template, "/spec/containers"))
            .flat_map(|container| ["/resources/limits", "/resources/requests"].map(|path| container.pointer(path)))
            .filter_map(|resources| resources?.as_object())
            .flat_map(|resources| resources.keys())
            .filter_map(|resource| Some((resource, class_behind(facts, resource)?)))
            .find(|(resource, class)| match device_gpus(class) {
                Some(gpus) if gpus.is_empty() => false,
                Some(_) => !(is_gpu(resource) || device_class(resource).is_some()),
                None => is_of_nodes || !is_gpu(resource),
            })?;
        let cause = format!(
            "its pods request {resource}, which DeviceClass {class} stands behind, and growth is limited to GPUs"
        );
        Some(FindingCode::ClaimsNotCounted.at(target.title(), cause))
    });
    found.collect()
}

/// The device class whose devices a container gets for this resource.
fn class_behind<'a>(facts: &'a Facts, resource: &'a str) -> Option<&'a str> {
    let classes = facts.all(LiveKind::DeviceClass).iter();
    let mut named = classes.filter(|class| class.text("/spec/extendedResourceName") == resource);
    device_class(resource).or_else(|| named.next().map(LiveObject::name))
}
