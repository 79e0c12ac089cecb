//! OpenShift: Thanos asks who it is asked by, and its certificate is of the authority of services.

use std::fs;
use std::path::PathBuf;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};

use super::kustomize::{
    MODEL, NAME, apply, follow_the_sample, main_config, quick, rendered, serve_the_sample,
};
use super::release::LATER;
use super::running::{nothing_was_refused, start};
use super::{RELEASE, SOON, at_home, values_file};
use crate::harness::container::{ACCOUNT_FOLDER, folder_of};
use crate::harness::fault::{Fault, Result};
use crate::harness::oracle::{Oracle, Report};
use crate::harness::pki::{Authority, Subject};
use crate::harness::shipping::{Shipping, find, name_of, set};
use crate::harness::suite::Cx;
use crate::harness::wait::eventually;

/// The only name in the certificate, which is not that of the address.
const HOST: &str = "thanos-querier.openshift-monitoring.svc";
const ADDRESS: &str = "https://thanos-querier.openshift-monitoring.svc.cluster.local:9091";
/// Under which OpenShift writes its authority of services into ConfigMaps.
const KEY: &str = "service-ca.crt";

/// Thanos, and the authority that has signed it.
struct Thanos {
    oracle: Oracle,
    authority: String,
}

impl Thanos {
    async fn new(cx: &Cx) -> Result<Self> {
        let folder = cx.folder("thanos")?;
        let subject = Subject { hosts: &[HOST], ..Subject::user("thanos") };
        Authority::make(&folder, "ca")?.issue(&folder, "server", &subject)?;
        let certificate = CertificateDer::from_pem_file(folder.join("server.crt"))?;
        let key = PrivateKeyDer::from_pem_file(folder.join("server.key"))?;
        let config = ServerConfig::builder().with_no_client_auth();
        Ok(Self {
            oracle: Oracle::tls(config.with_single_cert(vec![certificate], key)?).await?,
            authority: fs::read_to_string(folder.join("ca.crt"))?,
        })
    }

    fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.oracle.port)
    }

    /// Every query came with this token, by the name in the certificate.
    async fn is_asked_with(&self, token: PathBuf) -> Result {
        let asked = eventually("Thanos is asked", SOON, async || {
            let asked = self.oracle.asked();
            if asked.is_empty() {
                return Err(Fault::new("not yet"));
            }
            Ok(asked)
        })
        .await?;
        let bearer = format!("Bearer {}", fs::read_to_string(token)?);
        for query in asked {
            assert_eq!(query.authorization.as_deref(), Some(bearer.as_str()));
            assert_eq!(query.server_name.as_deref(), Some(HOST));
        }
        Ok(())
    }
}

/// The overlay as it is applied: its mounts, its token, the name that it verifies, its rights; and the
/// samples are scaled.
pub(super) async fn overlay_scales_the_samples(cx: &Cx) -> Result {
    let thanos = Thanos::new(cx).await?;
    serve_the_sample(cx).await?;
    let pods = cx.namespace.pods(&format!("app={NAME}")).await?;
    let reports = pods.iter().map(|pod| Report {
        namespace: cx.namespace.name.clone(),
        model: MODEL.to_owned(),
        pod: pod.metadata.name.clone().unwrap_or_default(),
        kv_cache: 0.95,
    });
    thanos.oracle.report(reports.collect());

    let system = &cx.system().await?.name;
    let mut objects = quick(&rendered(cx, &["openshift"]).await?)?;
    let account = find(&objects, "ServiceAccount", "-controller-manager")?;
    let account = folder_of(cx, system, name_of(account));
    let service_ca = name_of(find(&objects, "ConfigMap", "-service-ca")?).to_owned();
    let trusted = folder_of(cx, system, &service_ca);
    let data = main_config(&mut objects);
    assert_eq!(data["PROMETHEUS_BASE_URL"], ADDRESS);
    // Only the address is another, and paths are those of this machine.
    data["PROMETHEUS_BASE_URL"] = json!(thanos.url());
    let paths = data.to_string();
    let paths = paths.replace("/etc/openshift-ca", &trusted.display().to_string());
    let paths = paths.replace(ACCOUNT_FOLDER, &account.display().to_string());
    *data = serde_json::from_str(&paths)?;
    for object in &mut objects {
        if name_of(object) == service_ca {
            // OpenShift fills what is annotated.
            let annotation = "service.beta.openshift.io/inject-cabundle";
            assert_eq!(object["metadata"]["annotations"][annotation], "true");
            assert_eq!(object["data"], Value::Null);
            object["data"] = json!({ KEY: thanos.authority });
        }
    }
    apply(cx, &objects).await?;
    let controller = start(cx, &objects, system, "wva-0").await?.controller;
    controller.ready().await?;
    follow_the_sample(cx).await?;
    cx.namespace.settles(NAME, 2, LATER).await?;
    thanos.is_asked_with(account.join("token")).await?;
    assert_eq!(controller.stop().await?, Some(0));
    nothing_was_refused(cx, system)
}

/// The chart with its values for OpenShift: the ConfigMap that every namespace has, the token, the name.
pub(super) async fn chart_asks_thanos(cx: &Cx) -> Result {
    const BROUGHT: &str = "openshift-service-ca.crt";
    let thanos = Thanos::new(cx).await?;
    let shipping = Shipping::to(&cx.world)?;
    let namespace = &cx.namespace.name;
    let brought = json!({ KEY: thanos.authority });
    cx.namespace.configure(BROUGHT, brought).await?;
    let account = format!("{RELEASE}-workload-variant-autoscaler-controller-manager");
    let token = folder_of(cx, namespace, &account).join("token");
    let authority = folder_of(cx, namespace, BROUGHT).join(KEY);
    let mut values = values_file("values-openshift.yaml");
    let files = [&token, &authority].map(|file| file.display().to_string());
    values.extend(at_home(cx));
    values.extend(set(&[
        ("wva.prometheus.baseURL", &thanos.url()),
        ("wva.prometheus.tokenPath", &files[0]),
        ("wva.prometheus.tls.caCertPath", &files[1]),
        ("wva.controllerInstance", namespace),
        ("wva.reconcileInterval", "1s"),
    ]));
    shipping.install(RELEASE, namespace, &values).await?;
    let objects = shipping.manifest(RELEASE, namespace).await?;
    let manager = find(&objects, "Deployment", "-controller-manager")?.to_string();
    assert!(manager.contains(&format!("\"subPath\":\"{KEY}\"")), "{manager}");
    let controller = start(cx, &objects, namespace, "wva-0").await?.controller;
    controller.ready().await?;
    thanos.is_asked_with(token).await?;
    assert_eq!(controller.stop().await?, Some(0));
    nothing_was_refused(cx, namespace)?;
    shipping.uninstall(RELEASE, namespace).await
}
