//! Finds the controller and resolves its settings, as it would itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::Client;
use serde_json::Value;

use super::objects::{Place, list};
use super::{DoctorScope, add};
use crate::cli::args;
use crate::doctor::facts::{ControllerFacts, Facts, LiveKind, Reading};
use crate::doctor::object::{LiveObject, ObjectName, list as elements, text};
use crate::policy::key::ObjectKey;
use crate::settings::config_maps::{ConfigMapNames, ConfigMapView, gather};
use crate::settings::layers::resolve;
use crate::settings::problem::Severity;
use crate::settings::purpose::Purpose;
use crate::settings::{Diagnostics, FirstGeneration, Sources, locate_main, start};

/// The label that the chart and the manifests give to the controller.
const SELECTOR: &str = "control-plane=controller-manager";
/// Words that its name, its labels or its image have.
const MARKS: [&str; 2] = ["workload-variant-autoscaler", "wva"];

/// Reads the controllers, and adds the ConfigMaps of their namespaces to the facts.
pub(super) async fn read(
    client: &Client,
    scope: &DoctorScope,
    facts: &mut Facts,
) -> Reading<Vec<ControllerFacts>> {
    let place = scope.controller_namespace.clone().map_or(Place::Everywhere, Place::Namespace);
    let deployments = match list(client, LiveKind::Deployment, &[place], SELECTOR).await {
        Reading::Known(deployments) => deployments,
        Reading::Failed(why) => {
            return Reading::Failed(format!(
                "{why}; name the namespace of the controller with --controller-namespace"
            ));
        }
        Reading::Absent => return Reading::Absent,
        Reading::NotAsked => return Reading::NotAsked,
    };
    let own: Vec<LiveObject> = deployments.into_iter().filter(is_controller).collect();
    let namespaces: BTreeSet<String> = own.iter().map(|one| one.namespace().to_owned()).collect();
    let places: Vec<Place> = namespaces.into_iter().map(Place::Namespace).collect();
    if !places.is_empty() {
        let maps = list(client, LiveKind::ConfigMap, &places, "").await;
        add(facts, LiveKind::ConfigMap, maps);
    }
    Reading::Known(own.iter().map(|one| controller(one, facts)).collect())
}

/// Whether a Deployment is this controller, which shares its label with many others.
pub(in crate::doctor) fn is_controller(deployment: &LiveObject) -> bool {
    let image = containers(deployment).map(|one| text(one, "/image"));
    let label = deployment.label("app.kubernetes.io/name");
    let mut texts = image.chain(label).chain([deployment.name()]);
    texts.any(|text| {
        let mut words = text.split(['/', ':', '.', '@']);
        words.any(|word| MARKS.iter().any(|mark| word.starts_with(mark)))
    })
}

pub(super) fn has_image(deployment: &LiveObject) -> bool {
    containers(deployment).any(|one| !text(one, "/image").is_empty())
}

fn containers(deployment: &LiveObject) -> impl Iterator<Item = &Value> {
    deployment.list("/spec/template/spec/containers").iter()
}

/// Resolves the settings of a controller from its Deployment and the ConfigMaps among the facts.
pub(in crate::doctor) fn controller(deployment: &LiveObject, facts: &Facts) -> ControllerFacts {
    let mut sources = sources(deployment, facts);
    let place = locate_main(&sources);
    if let Ok(place) = &place {
        let maps = config_maps(facts);
        for _pass in ["main", "the others"] {
            let names = ConfigMapNames::of(&resolve(&sources, None).values);
            let views = maps.iter().map(|(key, data)| ConfigMapView {
                namespace: &key.namespace,
                name: &key.name,
                data,
            });
            gather(&mut sources, &names, &place.namespace, |_| true, views);
        }
    }
    let (settings, problems, notes) = match start(&sources) {
        Ok(first) => {
            let (problems, notes) = remarks(&first, facts);
            (Ok(Arc::new(first.generation)), problems, notes)
        }
        Err(errors) => {
            let errors = errors.iter().map(ToString::to_string).collect();
            (Err(errors), Vec::new(), Vec::new())
        }
    };
    ControllerFacts {
        key: ObjectKey::new(deployment.namespace(), deployment.name()),
        account: deployment.service_account().to_owned(),
        wanted: deployment.number("/spec/replicas").unwrap_or(1),
        ready: deployment.number("/status/readyReplicas").unwrap_or(0),
        settings,
        has_secrets: containers(deployment).any(has_secrets),
        problems,
        notes,
        file: deployment.file().cloned(),
    }
}

/// Remarks on settings, each with the ConfigMap that it is about.
type Remarks = Vec<(Option<ObjectName>, String)>;

/// What is refused or ignored, and what is taken and does not act as it seems to.
fn remarks(first: &FirstGeneration, facts: &Facts) -> (Remarks, Remarks) {
    let statics = &first.generation.statics;
    let holder = |(purpose, namespace): (Purpose, Option<&Arc<str>>), key: &str| {
        let namespace = namespace.map_or(&*statics.scope.system_namespace, |one| one);
        let named = |name: &&str| facts.find(LiveKind::ConfigMap, namespace, name);
        let mut possible = statics.config_maps.names(purpose);
        let name = possible.find(|name| named(name).is_some())?;
        // Of several that hold a key the last one counts.
        let maps = facts.all(LiveKind::ConfigMap).iter().rev();
        let mut maps = maps.filter(|map| map.namespace() == namespace && map.name() == name);
        let mut holding = maps.clone().filter(|map| map.has(&format!("/data/{key}")));
        holding.next().or_else(|| maps.next()).map(LiveObject::title)
    };
    let Diagnostics { problems, notices } = &first.diagnostics;
    let problems = problems.iter().map(|one| {
        let holder = one.key().and_then(|key| holder(one.config_map(), key));
        (holder, one.to_string())
    });
    let noticed = |severity: Severity| -> Remarks {
        let notices = notices.iter().filter(|one| one.severity() == severity);
        let placed = notices.map(|one| {
            let place = one.config_map().zip(one.key());
            let holder = place.and_then(|(map, key)| holder(map, key));
            (holder, one.to_string())
        });
        placed.collect()
    };
    let problems = problems.chain(noticed(Severity::Mistake)).collect();
    (problems, noticed(Severity::Warning))
}

fn has_secrets(container: &Value) -> bool {
    let mut all = elements(container, "/envFrom").iter();
    let mut each = elements(container, "/env").iter();
    all.any(|one| one.get("secretRef").is_some())
        || each.any(|one| one.pointer("/valueFrom/secretKeyRef").is_some())
}

/// The data of every ConfigMap. Of several files with one name a later one changes the earlier, as a patch does.
fn config_maps(facts: &Facts) -> BTreeMap<ObjectKey, BTreeMap<String, String>> {
    let mut read: BTreeMap<ObjectKey, BTreeMap<String, String>> = BTreeMap::new();
    for object in facts.all(LiveKind::ConfigMap) {
        let data = object.0.get("data").and_then(Value::as_object);
        let data = data.into_iter().flatten();
        let data =
            data.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        let key = ObjectKey::new(object.namespace(), object.name());
        read.entry(key).or_default().extend(data);
    }
    read
}

/// Flags and environment of the first container that has any of ours.
fn sources(deployment: &LiveObject, facts: &Facts) -> Sources {
    let mut sources = Sources::default();
    let mut all = containers(deployment);
    let Some(container) =
        all.find(|one| text(one, "/name") == "manager").or_else(|| containers(deployment).next())
    else {
        return sources;
    };
    let words = elements(container, "/command").iter();
    let words = words.chain(elements(container, "/args")).filter_map(Value::as_str);
    let flags = words.skip_while(|word| !word.starts_with('-')).map(str::to_owned);
    sources.flags = args::parse(flags).0.flags;
    for from in elements(container, "/envFrom") {
        let name = text(from, "/configMapRef/name");
        let map = facts.find(LiveKind::ConfigMap, deployment.namespace(), name);
        let data = map.and_then(|map| map.0.get("data")?.as_object());
        for (name, value) in data.into_iter().flatten() {
            let value = value.as_str().unwrap_or_default().to_owned();
            let name = format!("{}{name}", text(from, "/prefix"));
            sources.environment.insert(name, value);
        }
    }
    for variable in elements(container, "/env") {
        if let Some(value) = value_of(variable, deployment, facts) {
            let name = text(variable, "/name").to_owned();
            sources.environment.insert(name, value);
        }
    }
    sources
}

/// The value of a variable; `None` where it is in a Secret, which is not read.
fn value_of(variable: &Value, deployment: &LiveObject, facts: &Facts) -> Option<String> {
    if let Some(value) = variable.get("value").and_then(Value::as_str) {
        return Some(value.to_owned());
    }
    match text(variable, "/valueFrom/fieldRef/fieldPath") {
        "metadata.namespace" => return Some(deployment.namespace().to_owned()),
        "metadata.name" => return Some(deployment.name().to_owned()),
        _ => {}
    }
    let key = text(variable, "/valueFrom/configMapKeyRef/key");
    let name = text(variable, "/valueFrom/configMapKeyRef/name");
    let map = facts.find(LiveKind::ConfigMap, deployment.namespace(), name)?;
    let value = map.0.get("data")?.get(key)?;
    value.as_str().map(str::to_owned)
}
