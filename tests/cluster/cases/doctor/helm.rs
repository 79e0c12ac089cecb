//! `helm test`: the doctor with the rights that the chart names, and no others.

use std::process::Command;

use serde_json::Value;

use super::fleet::Fleet;
use super::{SOON, Verdict, run};
use crate::harness::account::Account;
use crate::harness::fault::{Fault, Result};
use crate::harness::manifest;
use crate::harness::shipping::{Shipping, find, name_of, set};
use crate::harness::suite::Cx;
use crate::harness::tools;
use crate::harness::wait::{eventually, seen};

/// Kinds of the objects that give an account its rights.
const RIGHTS: [&str; 5] =
    ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];

/// The account of controllers, as the chart names it, and that of the test: the suite counts what the former uses.
const ACCOUNTS: [&str; 2] = ["wva-controller-manager", "wva-helm-test"];

/// The chart, with the names of the fleet.
async fn rendered(cx: &Cx, namespace: &str) -> Result<Vec<Value>> {
    let values = set(&[
        ("doctor.enabled", "true"),
        ("fullnameOverride", "wva"),
        ("wva.prometheus.baseURL", &cx.world.prometheus.url),
        ("wva.prometheus.allowHTTP", "true"),
        ("wva.prometheus.clusterMonitoringView", "false"),
    ]);
    let shipping = Shipping::to(&cx.world)?;
    let objects = shipping.template("wva", namespace, &values).await?;
    let [controller, own] = ACCOUNTS;
    let text = Value::from(objects).to_string();
    Ok(serde_json::from_str(&text.replace(controller, own))?)
}

async fn grant(cx: &Cx, objects: &[&Value], namespace: &str) -> Result {
    for object in objects {
        manifest::apply(&cx.world.client, (*object).clone(), Some(namespace)).await?;
    }
    Ok(())
}

/// The container of the pod, which looks once.
fn look(pod: &Value, kubeconfig: &str, namespace: &str) -> Command {
    let arguments = pod["spec"]["containers"][0]["args"].as_array();
    let arguments = arguments.into_iter().flatten().filter_map(Value::as_str);
    let mut command = Command::new(tools::wva());
    command
        .env_clear()
        .env("KUBECONFIG", kubeconfig)
        .env("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        .env("HOSTNAME", name_of(pod))
        .env("POD_NAMESPACE", namespace)
        .args(arguments.filter(|one| !one.starts_with("--wait")))
        .arg("--output=json");
    command
}

/// Without the rights that last as long as the test something cannot be looked at, with them nothing is found.
pub(super) async fn test(fleet: &Fleet<'_>) -> Result {
    let cx = fleet.cx;
    let system = cx.system().await?;
    let own = system.name.as_str();
    let objects = rendered(cx, own).await?;
    let pod = find(&objects, "Pod", "-doctor")?;
    let rights = objects.iter().filter(|object| {
        let kind = object["kind"].as_str().unwrap_or_default();
        RIGHTS.contains(&kind)
    });
    let is_of_test = |object: &&Value| object["metadata"]["annotations"]["helm.sh/hook"] == "test";
    let (of_test, lasting): (Vec<&Value>, Vec<&Value>) = rights.partition(is_of_test);

    grant(cx, &lasting, own).await?;
    let account = pod["spec"]["serviceAccountName"].as_str();
    let account = Account::create(system, account.unwrap_or_default()).await?;
    let (site, token) = (&cx.world.site, account.token().await?);
    let kubeconfig = site.pki.kubeconfig_with_token(&cx.world.api.url, &token);
    let kubeconfig = site.write_kubeconfig("helm-test", &kubeconfig)?;
    eventually("helm test lacks rights", SOON, async || {
        let (verdict, _) = run(look(pod, &kubeconfig, own)).await?;
        seen(&verdict.exit, &Some(2))
    })
    .await?;

    grant(cx, &of_test, own).await?;
    eventually("helm test finds nothing", SOON, async || {
        let (verdict, report) = run(look(pod, &kubeconfig, own)).await?;
        seen(&verdict, &Verdict::of(&[]))
            .map_err(|fault| Fault::new(format!("{}: {report:#}", fault.text())))
    })
    .await
}
