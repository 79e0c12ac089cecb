//! Versions in which a group serves a kind of which no definition is published.

use std::sync::Arc;

use http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIGroup;
use kube::{Api, Client};

use super::Guarded;

type Versioned<K> = dyn Fn(&str) -> Api<Guarded<K>> + Send + Sync;

/// Finds the versions of a group.
#[derive(Clone)]
pub struct Discovery<K> {
    client: Client,
    group: &'static str,
    /// The objects in one version.
    api: Arc<Versioned<K>>,
    /// What it found last.
    versions: Vec<String>,
}

wva_base::debug_of!([K] Discovery<K>: group, versions);

impl<K> Discovery<K> {
    /// Asks this server for the versions of a group.
    pub fn new(
        client: Client,
        group: &'static str,
        api: impl Fn(&str) -> Api<Guarded<K>> + Send + Sync + 'static,
    ) -> Self {
        Self { client, group, api: Arc::new(api), versions: Vec::new() }
    }

    /// The objects in each version that is served now, the preferred one first. Empty where these versions were found
    /// the last time, too.
    pub(super) async fn changed(&mut self) -> kube::Result<Vec<Api<Guarded<K>>>> {
        let request = Request::get(format!("/apis/{}", self.group)).body(Vec::new());
        let request = request.map_err(kube::Error::HttpError)?;
        let found: APIGroup = self.client.request(request).await?;
        let versions = found.versions.into_iter().map(|served| served.version);
        let versions: Vec<String> = versions.collect();
        if versions == self.versions {
            return Ok(Vec::new());
        }
        self.versions = versions;
        let apis = self.versions.iter().map(|version| (self.api)(version));
        Ok(apis.collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kube::Api;
    use serde_json::{Value, json};

    use super::Discovery;
    use crate::api::inference_pool::InferencePool;
    use crate::cluster::fake::{FakeResponse, FakeServer, refusal, throttled};
    use crate::cluster::watch::{Guarded, ServedVersion, Watch, WatchEvent, WatchOptions};

    const GROUP: &str = "llm-d.ai";

    fn api(server: &FakeServer, version: &str) -> Api<Guarded<InferencePool>> {
        let version = ServedVersion::Other { group: GROUP, version: Arc::from(version) };
        Api::all_with(server.client(), &version)
    }

    fn group(versions: &[&str]) -> FakeResponse {
        let versions = versions.iter().map(
            |version| json!({ "groupVersion": format!("{GROUP}/{version}"), "version": version }),
        );
        let versions: Vec<Value> = versions.collect();
        FakeResponse::Json(
            200,
            json!({ "kind": "APIGroup", "apiVersion": "v1", "name": GROUP, "versions": versions }),
        )
    }

    fn page() -> FakeResponse {
        let pool = json!({
            "metadata": { "namespace": "ns", "name": "p", "resourceVersion": "5" },
            "spec": { "selector": { "app": "a" }, "extensionRef": { "name": "epp" } },
        });
        FakeResponse::Json(200, json!({ "metadata": { "resourceVersion": "7" }, "items": [pool] }))
    }

    /// Absent with its group, then with it, refused for a while, at last present in a version that nothing names.
    #[tokio::test(start_paused = true)]
    async fn a_kind_is_read_in_any_version_that_its_group_serves() {
        let missing = || refusal(404, "NotFound", "no such path");
        let server = FakeServer::default();
        let clone = server.clone();
        let discovery = Discovery::new(server.client(), GROUP, move |version| api(&clone, version));
        let own = api(&server, "v1");
        let watch = Watch::new(own, WatchOptions::default(), |delay| delay);
        let mut watch = watch.or_any(Some(discovery));
        let mut paths = Vec::new();
        let mut step = async |answers: Vec<FakeResponse>| {
            let before = server.asked().len();
            for answer in answers {
                server.then(answer);
            }
            let event = watch.next().await;
            let asked = server.asked().into_iter().skip(before);
            paths = asked.map(|asked| asked.path).collect();
            (event, paths.clone())
        };
        let (event, asked) = step(vec![missing(), missing()]).await;
        assert!(matches!(event, WatchEvent::Absent { .. }), "{event:?}");
        assert_eq!(asked, ["/apis/llm-d.ai/v1/inferencepools", "/apis/llm-d.ai"]);

        let newer = || group(&["v1beta3", "v2alpha1"]);
        let answers = vec![missing(), newer(), missing(), missing(), newer()];
        let (event, asked) = step(answers).await;
        assert!(matches!(event, WatchEvent::Absent { .. }), "{event:?}");
        let other = "/apis/llm-d.ai/v1beta3/inferencepools";
        assert_eq!(asked[2], other);

        let (event, _) = step(vec![missing(), missing(), throttled(3)]).await;
        assert!(matches!(event, WatchEvent::Failed { .. }), "{event:?}");

        let (event, asked) = step(vec![missing(), page()]).await;
        assert!(matches!(event, WatchEvent::Restarted), "{event:?}");
        assert_eq!(asked, [other, "/apis/llm-d.ai/v2alpha1/inferencepools"]);
        let (event, _) = step(Vec::new()).await;
        let WatchEvent::Listed(pool) = event else {
            panic!("{event:?}");
        };
        assert_eq!(pool.spec.selector.labels()["app"], "a");
        assert_eq!(pool.spec.endpoint_picker_ref.unwrap().name, "epp");
    }
}
