//! The servers themselves: that they are the ones that the other cases rely on.

use std::fs;

use http::Request;
use k8s_openapi::apimachinery::pkg::version::Info;
use serde_json::Value;

use crate::harness::fault::{Fault, Result};
use crate::harness::suite::{Case, Cx, case};
use crate::harness::tools::repository;
use crate::harness::web;

pub(crate) fn cases() -> Vec<Case> {
    vec![case!(shared, servers::are_recent_enough), case!(shared, servers::no_reader_is_anonymous)]
}

/// Older ones fail in ways that look like faults of the controller: before Kubernetes 1.35 the HPA's
/// tolerance cannot be set, before etcd 3.6 streamed lists fail and clients loop.
async fn are_recent_enough(cx: &Cx) -> Result {
    let stopped: Vec<_> = cx.world.running().into_iter().filter(|(_, pid)| pid.is_none()).collect();
    assert_eq!(stopped, [], "every server runs");

    let kubernetes = cx.world.client.apiserver_version().await?;
    let version = numbers(&kubernetes.git_version);
    assert!(version >= vec![1, 35], "Kubernetes {}", kubernetes.git_version);
    stands_on_pages(&kubernetes)?;

    let version = format!("{}/version", cx.world.etcd.url);
    let answer = web::client()?.get(version).send().await?.text().await?;
    let answer: Value = serde_json::from_str(&answer)?;
    let etcd = answer["etcdserver"].as_str().unwrap_or_default();
    assert!(numbers(etcd) >= vec![3, 6], "etcd {etcd}");
    Ok(())
}

/// The pages for users name the version of a server.
pub(super) fn stands_on_pages(version: &Info) -> Result {
    let named = format!("{}.{}", version.major, version.minor);
    for page in ["README.md", "docs/install.md"] {
        let text = fs::read_to_string(repository().join(page))?;
        assert!(text.contains(&named), "{page} does not name {named}");
    }
    Ok(())
}

/// `v1.37.2` as 1, 37, 2.
fn numbers(version: &str) -> Vec<u32> {
    let parts = version.trim_start_matches('v').split(['.', '-', '+']);
    parts.map_while(|part| part.parse().ok()).collect()
}

async fn no_reader_is_anonymous(cx: &Cx) -> Result {
    let known = cx.world.client.request_text(Request::get("/api").body(Vec::new())?).await;
    known.map_err(|error| Fault::new(format!("the admin is refused: {error}")))?;

    let http =
        reqwest::Client::builder().no_proxy().tls_danger_accept_invalid_certs(true).build()?;
    let answer = http.get(format!("{}/api", cx.world.api.url)).send().await?;
    assert_eq!(answer.status(), reqwest::StatusCode::UNAUTHORIZED);
    Ok(())
}
