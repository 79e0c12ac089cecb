//! Asks whether the accounts of scalers may do what following a count takes.

use std::collections::BTreeMap;

use kube::Client;

use super::DoctorScope;
use super::objects::{Place, list};
use super::rights::{NeededRight, reviewed, service_account};
use crate::cluster::review::Access;
use crate::doctor::checks::{claimed, live_kind, of_others, scaled_target};
use crate::doctor::facts::{Facts, LiveKind, Reading, RightFact};
use crate::doctor::object::LiveObject;
use crate::policy::key::TargetKey;

/// Most rights that are reviewed: namespaces with scalers have much the same.
const MOST: usize = 200;

/// The account of the controller that computes every HorizontalPodAutoscaler, those of KEDA too.
const AUTOSCALER: (&str, &str) = ("kube-system", "horizontal-pod-autoscaler");

/// What KEDA's own manifests and its chart label the Deployments of operator and adapter with.
const KEDA: [&str; 2] = ["keda-operator", "keda-operator-metrics-apiserver"];

/// The Deployments of KEDA that run, by their label.
type Keda = BTreeMap<&'static str, LiveObject>;

/// Reviews the rights of every scaler that scales the target of a variant.
pub(super) async fn review(
    client: &Client,
    scope: &DoctorScope,
    facts: &Facts,
) -> Reading<Vec<RightFact>> {
    let scalers = scalers(facts);
    let is_keda = |object: &LiveObject| object.kind() == LiveKind::ScaledObject.as_str();
    let mut keda = Keda::new();
    if scalers.iter().any(|(object, _)| is_keda(object)) {
        match find_keda(client).await {
            Ok(found) => keda = found,
            // An account that reads one namespace does not see that of KEDA.
            Err(_) if scope.namespace.is_some() || scope.controller_namespace.is_some() => {}
            Err(why) => return Reading::Failed(why),
        }
    }
    let mut needed = BTreeMap::new();
    for (object, target) in scalers {
        let rights = if is_keda(object) {
            of_keda(object, &target, &keda)
        } else {
            of_autoscaler(object, &target)
        };
        for need in rights {
            let key = (need.user.name.clone(), need.access.clone());
            needed.entry(key).or_insert(need);
        }
    }
    let needed: Vec<NeededRight> = needed.into_values().take(MOST).collect();
    reviewed(client, &needed).await
}

/// Scalers with the targets of variants that they scale.
fn scalers(facts: &Facts) -> Vec<(&LiveObject, TargetKey)> {
    let (claimed, others) = (claimed(facts), of_others(facts));
    let kinds = [LiveKind::HorizontalPodAutoscaler, LiveKind::ScaledObject];
    let all = kinds.into_iter().flat_map(|kind| facts.all(kind));
    let all = all.filter(|object| !object.is_leaving() && !others.contains(&object.title()));
    let pairs = all.filter_map(|object| Some((object, scaled_target(object)?)));
    pairs.filter(|(_, target)| claimed.contains_key(target)).collect()
}

async fn find_keda(client: &Client) -> Result<Keda, String> {
    let selector = format!("app in ({})", KEDA.join(","));
    let found = list(client, LiveKind::Deployment, &[Place::Everywhere], &selector).await;
    let found = match found {
        Reading::Known(found) => found,
        Reading::Failed(why) => return Err(why),
        Reading::Absent | Reading::NotAsked => Vec::new(),
    };
    let runs = |one: &&LiveObject| one.0.pointer("/spec/replicas") != Some(&0.into());
    let running: Vec<&LiveObject> = found.iter().filter(runs).collect();
    // Which of several installations scales an object is not known.
    let only = KEDA.into_iter().filter_map(|label| {
        let mut labelled = running.iter().filter(|one| one.label("app") == Some(label));
        let one = labelled.next()?;
        (labelled.next().is_none()).then(|| (label, (*one).clone()))
    });
    Ok(only.collect())
}

/// The metrics that it reads from others than the kubelets, and the count that it sets.
fn of_autoscaler(object: &LiveObject, target: &TargetKey) -> Vec<NeededRight> {
    let (namespace, name) = AUTOSCALER;
    let metrics = object.list("/spec/metrics").iter();
    let metrics = metrics.filter_map(|metric| metric.pointer("/external/metric/name")?.as_str());
    let metrics = metrics.map(|metric| Access::Resource {
        verb: "list",
        group: "external.metrics.k8s.io",
        version: "v1beta1",
        resource: metric.to_owned(),
        namespace: object.namespace().to_owned(),
    });
    let rights = metrics.chain(scale(target)).map(|access| NeededRight {
        object: object.title(),
        user: service_account(namespace, name),
        access,
    });
    rights.collect()
}

/// The operator scales to zero and from zero; the adapter asks who reads its metrics.
fn of_keda(object: &LiveObject, target: &TargetKey, keda: &Keda) -> Vec<NeededRight> {
    let [operator, adapter] = KEDA.map(|label| keda.get(label));
    let review = Access::Resource {
        verb: "create",
        group: "authorization.k8s.io",
        version: "v1",
        resource: "subjectaccessreviews".to_owned(),
        namespace: String::new(),
    };
    let of_operator = operator.into_iter().flat_map(|one| {
        let rights = scale(target);
        rights.map(move |access| (one, access))
    });
    let of_adapter = adapter.map(|one| (one, review));
    let rights = of_operator.chain(of_adapter).map(|(one, access)| NeededRight {
        object: object.title(),
        user: service_account(one.namespace(), one.service_account()),
        access,
    });
    rights.collect()
}

/// To read and set the replicas of a target of a known kind.
fn scale(target: &TargetKey) -> impl Iterator<Item = Access> {
    let kind = live_kind(&target.kind);
    let namespace = target.namespace.to_string();
    let verbs = kind.into_iter().flat_map(|kind| {
        let verbs = ["get", "update"];
        verbs.map(|verb| (verb, kind))
    });
    verbs.map(move |(verb, kind)| Access::Resource {
        verb,
        group: kind.group(),
        version: "v1",
        resource: format!("{}/scale", kind.resource()),
        namespace: namespace.clone(),
    })
}
