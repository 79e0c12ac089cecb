//! The rights that the controller ships with: enough, no more, and missed by name.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use reqwest::StatusCode;
use serde_json::{Value, json};
use wva::api::INSTANCE_LABEL;
use wva::api::variant_autoscaling::VariantAutoscaling;

use super::leadership::{QUICK, candidate};
use crate::harness::account::Account;
use crate::harness::audit::{Right, Uses, covers, granted, uses};
use crate::harness::controller::{ACCOUNT, Build, Controller, ControllerSpec, SHIPPED_ROLES};
use crate::harness::door::Door;
use crate::harness::fault::{Fault, Result};
use crate::harness::manifest;
use crate::harness::namespace::Workload;
use crate::harness::pod_autoscaler::workload;
use crate::harness::reader::Reader;
use crate::harness::suite::{Case, Cx, case};
use crate::harness::tools::repository;
use crate::harness::variants::{Variants, variant};
use crate::harness::wait::{eventually, seen};

const NAME: &str = "llama";
const MANAGER_ROLE: &str = "workload-variant-autoscaler-manager";
const LEASE_ROLE: &str = "workload-variant-autoscaler-leader-election";
const REVIEW_ROLE: &str = "workload-variant-autoscaler-metrics-auth";
/// Longer than the longest pause between two attempts to list.
const SOON: Duration = Duration::from_mins(1);
/// Part of the name of cases that take rights away.
const REMOVES: &str = "removed";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case!(shared, rights::a_rule_that_is_removed_is_named),
        case!(shared, rights::a_removed_rule_for_writing_is_named).within(SOON * 5),
        case!(shared, rights::any_rule_that_is_removed_is_named).within(SOON * 6),
        case!(shared, rights::manifests_are_accepted),
        case!(exclusive, rights::are_all_used_and_suffice),
    ]
}

fn shipped(file: &str) -> Result<Vec<Value>> {
    manifest::read(&repository().join("config").join(file))
}

async fn a_rule_that_is_removed_is_named(cx: &Cx) -> Result {
    let spec = ControllerSpec { build: Build::Killable, ..ControllerSpec::scoped(cx) };
    let controller = Controller::start_ready(cx, &spec).await?;
    let text = controller.readiness().await?;
    assert!(text.contains("[+] mirror/Pod: last answer"), "{text}");

    let account = Account::create(cx.system().await?, ACCOUNT).await?;
    takes_away(&account, "pods").await?;
    // The watch that is open stays so; the next one is refused.
    controller.kill_role("watcher/Pod").await?;
    names(&controller, "[!] mirror/Pod: ", "cannot list resource \"pods\"").await?;
    // What was seen last still serves.
    assert_eq!(controller.readyz().await?.0, StatusCode::OK);
    an_event_names(cx, "cannot list resource \"pods\"", SOON).await?;

    account.bind_shipped("rbac/role.yaml").await?;
    names(&controller, "[+] mirror/Pod: ", "last answer").await
}

/// Who writes says what it may not, and hurts no other role meanwhile.
async fn a_removed_rule_for_writing_is_named(cx: &Cx) -> Result {
    cx.namespace.deploy(&Workload::new(NAME, 2)).await?;
    let controller = Controller::start_ready(cx, &ControllerSpec::scoped(cx)).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    variants.apply(NAME, NAME, json!({})).await?;
    names(&controller, "[+] write/status: ", "accepted").await?;
    names(&controller, "[+] write/events: ", "accepted").await?;

    let account = Account::create(cx.system().await?, ACCOUNT).await?;
    let status = "variantautoscalings/status";
    takes_away(&account, status).await?;
    variants.apply(NAME, NAME, json!({ "minReplicas": 3 })).await?;
    names(&controller, "[!] write/status: ", status).await?;
    an_event_names(cx, status, SOON).await?;
    variants.publishes(NAME, Some(3.0), SOON).await?;
    seen(&variants.stored(NAME).await?, &Some(2))?;
    gives_back(&account, status).await?;
    names(&controller, "[+] write/status: ", "accepted").await?;
    seen(&variants.stored(NAME).await?, &Some(3))?;

    takes_away(&account, "events").await?;
    // Something that there is an event about.
    variants.apply("lost", "nothing", json!({})).await?;
    names(&controller, "[!] write/events: ", "cannot create resource \"events\"").await?;
    gives_back(&account, "events").await?;
    variants.apply("lost-too", "nothing", json!({})).await?;
    names(&controller, "[+] write/events: ", "accepted").await?;
    // That this right was missing shows only now.
    an_event_names(cx, "cannot create resource \"events\"", SOON * 2).await
}

/// What is neither watched nor written as a decision: scales of foreign kinds, readers of both doors,
/// the lease.
async fn any_rule_that_is_removed_is_named(cx: &Cx) -> Result {
    let mut spec = candidate(cx, "wva-0", QUICK);
    spec.arguments.push("--metrics-secure=true".to_owned());
    let door = Door::open(cx, spec).await?;
    let controller = &door.controller;
    let set = workload("ReplicaSet", "set", &json!({ "app": "set" }), 1);
    cx.namespace.apply(set).await?;
    let foreign = json!({
        "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "set" },
    });
    let variants = Variants::new(&cx.namespace, controller);
    variants.apply("set", "set", foreign).await?;
    let found = [("TargetResolved", "True/TargetFound")];
    variants.says("set", &found, SOON).await?;
    let reader = Account::create(&cx.namespace, "reader").await?;
    let reader = Reader::anonymous().with_token(&reader.token().await?);
    let metrics = format!("https://{}", controller.metrics);
    let pages = [format!("{metrics}/metrics"), door.desired(&cx.namespace.name, "set")];
    for page in &pages {
        let (status, text) = reader.get(page).await?;
        assert_eq!(status, StatusCode::FORBIDDEN, "{page}: {text}");
    }
    for (reason, well) in [
        ("read/scale", "accepted"),
        ("access/metrics", "readers are checked"),
        ("access/external-metrics", "readers are checked"),
        ("write/lease", "accepted"),
    ] {
        names(controller, &format!("[+] {reason}: "), well).await?;
    }

    let account = Account::create(cx.system().await?, ACCOUNT).await?;
    takes_away(&account, "*/scale").await?;
    let scale = "replicasets/scale";
    names(controller, "[!] read/scale: ", scale).await?;
    let access = "subjectaccessreviews";
    let rules = without("rbac/metrics_auth_role.yaml", access)?;
    account.bind_rules(&role_without(access), &rules).await?;
    account.unbind(REVIEW_ROLE).await?;
    account.may_not_create("authorization.k8s.io", access).await?;
    let unknown = [format!("{metrics}/debug/tree"), door.desired("elsewhere", "set")];
    denied(&door, &reader, &unknown, access).await?;
    account.unbind_rules(&role_without(access)).await?;
    let stranger = Reader::anonymous().with_token("invented");
    let token = "tokenreviews";
    account.may_not_create("authentication.k8s.io", token).await?;
    denied(&door, &stranger, &pages, token).await?;
    account.unbind_within(LEASE_ROLE).await?;
    names(controller, "[!] write/lease: ", "leases").await?;
    // Of one object and reason there is an event a minute, which stands for all.
    for part in [scale, access, token, "leases"] {
        an_event_names(cx, part, SOON * 3).await?;
    }
    // What was known of the target still serves.
    variants.says("set", &found, SOON).await.map(drop)
}

/// The reader is not let in, and each door names the denied access.
async fn denied(door: &Door, reader: &Reader, pages: &[String; 2], resource: &str) -> Result {
    for (page, name) in pages.iter().zip(["metrics", "external-metrics"]) {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        reader.gets(page, status, SOON).await?;
        let reason = format!("[!] access/{name}: ");
        names(&door.controller, &reason, resource).await?;
    }
    Ok(())
}

/// Waits until a line of the readiness page begins like this and holds that.
pub(super) async fn names(controller: &Controller, begin: &str, part: &str) -> Result {
    eventually(format!("{begin} … {part}"), SOON, async || {
        let text = controller.readiness().await?;
        let line = text.lines().find(|line| line.starts_with(begin));
        let line = line.ok_or_else(|| Fault::new(text.clone()))?;
        if line.contains(part) { Ok(()) } else { Err(Fault::new(line)) }
    })
    .await
}

async fn an_event_names(cx: &Cx, part: &str, within: Duration) -> Result {
    let system = cx.system().await?;
    eventually(format!("an event names {part}"), within, async || {
        let missing = system.events("PermissionMissing").await?;
        let mut notes = missing.into_iter().filter_map(|event| event.note);
        seen(&notes.any(|note| note.contains(part)), &true)
    })
    .await
}

fn role_without(resource: &str) -> String {
    format!("without-{}", resource.replace(['/', '*'], "-"))
}

pub(super) async fn takes_away(account: &Account<'_>, resource: &str) -> Result {
    let rules = without("rbac/role.yaml", resource)?;
    account.bind_rules(&role_without(resource), &rules).await?;
    account.unbind(MANAGER_ROLE).await
}

async fn gives_back(account: &Account<'_>, resource: &str) -> Result {
    account.bind_shipped("rbac/role.yaml").await?;
    account.unbind_rules(&role_without(resource)).await
}

/// The rules of a shipped role but for one.
fn without(file: &str, removed_resource: &str) -> Result<Value> {
    let role = shipped(file)?.into_iter().next();
    let mut rules = role.ok_or_else(|| Fault::new(format!("{file} is empty")))?["rules"].clone();
    let mut removed = 0;
    for rule in rules.as_array_mut().into_iter().flatten() {
        if let Some(resources) = rule["resources"].as_array_mut() {
            let before = resources.len();
            resources.retain(|resource| resource != removed_resource);
            removed += before - resources.len();
        }
    }
    if let Some(rules) = rules.as_array_mut() {
        rules.retain(|rule| rule["resources"] != json!([]));
    }
    assert_eq!(removed, 1);
    Ok(rules)
}

/// Every object that a kustomization lists, but for kinds that the servers of the tests lack and the
/// registration, which only one case at a time can make.
async fn manifests_are_accepted(cx: &Cx) -> Result {
    const LEFT_OUT: [&str; 3] = ["Issuer", "Certificate", "APIService"];
    let config = repository().join("config");
    let mut accepted = 0;
    for folder in ["rbac", "external-metrics"] {
        let folder = config.join(folder);
        let list = manifest::read(&folder.join("kustomization.yaml"))?;
        let list: Vec<Value> = list.into_iter().flat_map(|list| resources(&list)).collect();
        for file in list.iter().filter_map(Value::as_str) {
            for mut object in manifest::read(&folder.join(file))? {
                let kind = object["kind"].as_str().unwrap_or_default().to_owned();
                if LEFT_OUT.contains(&kind.as_str()) {
                    continue;
                }
                let metadata = &mut object["metadata"];
                if metadata["namespace"] == "workload-variant-autoscaler-system" {
                    metadata["namespace"] = json!(cx.namespace.name);
                }
                cx.namespace
                    .apply(object)
                    .await
                    .map_err(|fault| Fault::new(format!("{file}: {}", fault.text())))?;
                accepted += 1;
            }
        }
    }
    assert!(accepted > 12, "only {accepted} objects");
    Ok(())
}

fn resources(kustomization: &Value) -> Vec<Value> {
    kustomization["resources"].as_array().cloned().unwrap_or_default()
}

/// One controller does everything that it can, and over all cases so far nothing was refused.
async fn are_all_used_and_suffice(cx: &Cx) -> Result {
    does_everything(cx).await?;
    let uses = uses(&cx.world.site.logs())?;
    suffice(&uses)?;
    are_all_used(&uses)
}

/// Whether the audit log never shows the use of a right: of an API that is not served here, of an admission plugin,
/// or to create by an apply, which the log names by its patch.
fn is_of_others((group, resource, verb): &Right) -> bool {
    let is_never_logged =
        resource.ends_with("/finalizers") || verb == "create" && group == "autoscaling";
    group.ends_with("metrics.k8s.io") || is_never_logged
}

/// Everything that is granted was used.
pub(crate) fn are_all_used(uses: &Uses) -> Result {
    let granted = all_granted()?;
    let is_idle = |granted: &&Right| {
        !is_of_others(granted) && !uses.allowed.iter().any(|used| covers(granted, used))
    };
    let idle: BTreeSet<&Right> = granted.iter().filter(is_idle).collect();
    if idle.is_empty() {
        Ok(())
    } else {
        Err(Fault::new(format!("granted and never used: {idle:?}")))
    }
}

/// Everything that the shipped roles grant.
fn all_granted() -> Result<BTreeSet<Right>> {
    let mut roles = Vec::new();
    for file in SHIPPED_ROLES {
        roles.extend(shipped(file)?);
    }
    Ok(granted(&roles))
}

/// Nothing was refused to a controller whose rules are complete, and nothing was done by rules
/// that are not shipped.
pub(crate) fn suffice(uses: &Uses) -> Result {
    let refused: Vec<_> =
        uses.never_granted().filter(|(user, _)| !user.contains(REMOVES)).collect();
    let granted = all_granted()?;
    let is_missing = |used: &&Right| !granted.iter().any(|granted| covers(granted, used));
    let missing: BTreeSet<&Right> = uses.allowed.iter().filter(is_missing).collect();
    if refused.is_empty() && missing.is_empty() {
        Ok(())
    } else {
        let text = format!("refused: {refused:?}; used and not shipped: {missing:?}");
        Err(Fault::new(text))
    }
}

/// It sees the whole cluster with its GPUs, reads the scale of a foreign kind, leads, writes a status over that of a
/// former owner, checks a reader, refuses an edit with an event, and hands the lease back.
async fn does_everything(cx: &Cx) -> Result {
    let namespace = &cx.namespace.name;
    let objects = written_by_another(cx).await?;
    let spec = ControllerSpec {
        watch_namespace: None,
        environment: vec![
            ("CONTROLLER_INSTANCE", namespace.clone()),
            ("WVA_LIMITED_MODE", "true".to_owned()),
        ],
        arguments: vec!["--leader-elect=true".to_owned(), "--metrics-secure=true".to_owned()],
        ..ControllerSpec::scoped(cx)
    };
    let controller = Controller::start_ready(cx, &spec).await?;
    eventually("the former owner is gone", SOON, async || {
        let object = objects.get(NAME).await?;
        let owners = object.metadata.managed_fields.unwrap_or_default();
        let mut owners = owners.iter().filter(|entry| entry.subresource.is_some());
        let former = owners.any(|entry| entry.manager.as_deref() == Some("manager"));
        let resolved = object.data["status"]["conditions"].to_string().contains("TargetFound");
        seen(&(former, resolved), &(false, true))
    })
    .await?;

    let mut foreign = variant(
        "set",
        "set",
        &json!({
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "set" },
        }),
    );
    foreign["metadata"]["labels"] = json!({ INSTANCE_LABEL: namespace });
    cx.namespace.apply(foreign).await?;
    eventually("the foreign kind has been read", SOON, async || {
        let object = objects.get("set").await?;
        let conditions = object.data["status"]["conditions"].to_string();
        seen(&conditions.contains("ReplicaSet set not found"), &true)
    })
    .await?;

    let account = Account::create(&cx.namespace, "reader").await?;
    let reader = Reader::anonymous().with_token(&account.token().await?);
    let (status, text) = reader.get(&format!("https://{}/metrics", controller.metrics)).await?;
    assert_eq!(status, StatusCode::FORBIDDEN, "{text}");

    an_edit_is_refused_twice(cx).await?;
    assert_eq!(controller.stop().await?, Some(0));
    Ok(())
}

/// There is an event, which is counted up the second time.
async fn an_edit_is_refused_twice(cx: &Cx) -> Result {
    let edits = |value: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "wva-variantautoscaling-config", "labels": { "edit": value } },
            "data": { "WATCH_NAMESPACE": "elsewhere" },
        })
    };
    let system = cx.system().await?;
    for (edit, count) in [("first", None), ("second", Some(2))] {
        system.apply(edits(edit)).await?;
        eventually("the edit is refused", SOON, async || {
            let rejected = system.events("ImmutableConfigChangeRejected").await?;
            let event = rejected.first();
            let series = event.map(|event| event.series.as_ref().map(|series| series.count));
            seen(&series, &Some(count))
        })
        .await?;
    }
    Ok(())
}

/// A variant whose status the original has written.
async fn written_by_another(cx: &Cx) -> Result<Api<DynamicObject>> {
    cx.namespace.deploy(&Workload::new(NAME, 2)).await?;
    let mut object = variant(NAME, NAME, &json!({}));
    object["metadata"]["labels"] = json!({ INSTANCE_LABEL: cx.namespace.name });
    cx.namespace.apply(object).await?;
    let objects = cx.namespace.erased(&ApiResource::erase::<VariantAutoscaling>(&()));
    let former = json!({ "status": {
        "desiredOptimizedAlloc": { "numReplicas": 5, "accelerator": "L40S" },
        "actuation": { "applied": false },
        "conditions": [{
            "type": "TargetResolved", "status": "False", "reason": "TargetNotFound",
            "message": "Scale target Deployment llama not found",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
    }});
    let manager =
        PatchParams { field_manager: Some("manager".to_owned()), ..PatchParams::default() };
    objects.patch_status(NAME, &manager, &Patch::Merge(former)).await?;
    Ok(objects)
}
