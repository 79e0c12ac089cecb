//! Token and access reviews by the API server. Both are created as objects and stored nowhere, so they
//! need no right to write.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

use super::client::{RequestError, within};

/// Longest wait for one answer.
const DEADLINE: Duration = Duration::from_secs(5);
/// The group that every API server lets do everything, without asking.
const MASTERS: &str = "system:masters";

/// An authenticated client.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct User {
    /// Name, like `system:serviceaccount:monitoring:prometheus`.
    pub name: String,
    /// Unique id; empty where none is given.
    pub uid: String,
    pub groups: Vec<String>,
    /// What else the authenticator says about them.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Whether they may do everything. That is so on every API server, also when it cannot be asked.
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// A request for a path that is no resource.
    Path {
        /// The HTTP method in small letters.
        verb: String,
        path: String,
    },
    Resource {
        /// `get`, `list`, …
        verb: &'static str,
        group: &'static str,
        version: &'static str,
        /// The resource, with `/` and the subresource where it is one.
        resource: String,
        /// The namespace; empty for all.
        namespace: String,
    },
}

wva_base::display_of! { Access:
    Self::Path { verb, path } => "{verb} path {path:?}";
    Self::Resource { verb, group, resource, namespace, .. } =>
        "{verb} resource {resource:?} in API group {group:?} in the namespace {namespace:?}";
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AccessDecision {
    Allowed,
    Denied {
        /// What the authorizer says; often empty.
        reason: String,
    },
}

/// Asks whose token this is; `None` if it is no user's, or no longer.
pub(crate) async fn review_token(
    client: &Client,
    token: &str,
) -> Result<Option<User>, RequestError> {
    let review = TokenReview {
        spec: TokenReviewSpec { token: Some(token.to_owned()), audiences: None },
        ..TokenReview::default()
    };
    let api: Api<TokenReview> = Api::all(client.clone());
    let answer = within(DEADLINE, api.create(&PostParams::default(), &review)).await?;
    let status = answer.status.unwrap_or_default();
    Ok(status
        .user
        .filter(|_| status.authenticated == Some(true))
        .map(user)
        .filter(|user| !user.name.is_empty()))
}

fn user(info: UserInfo) -> User {
    User {
        name: info.username.unwrap_or_default(),
        uid: info.uid.unwrap_or_default(),
        groups: info.groups.unwrap_or_default(),
        extra: info.extra.unwrap_or_default(),
    }
}

pub(crate) async fn review_access(
    client: &Client,
    user: &User,
    access: &Access,
) -> Result<AccessDecision, RequestError> {
    let review =
        SubjectAccessReview { spec: specification(user, access), ..SubjectAccessReview::default() };
    let api: Api<SubjectAccessReview> = Api::all(client.clone());
    let answer = within(DEADLINE, api.create(&PostParams::default(), &review)).await?;
    let status = answer.status.unwrap_or_default();
    Ok(if status.allowed && status.denied != Some(true) {
        AccessDecision::Allowed
    } else {
        AccessDecision::Denied { reason: status.reason.unwrap_or_default() }
    })
}

fn specification(user: &User, access: &Access) -> SubjectAccessReviewSpec {
    let given = |text: &str| Some(text.to_owned());
    let mut spec = SubjectAccessReviewSpec {
        user: given(&user.name),
        uid: Some(user.uid.clone()).filter(|uid| !uid.is_empty()),
        groups: Some(user.groups.clone()),
        extra: Some(user.extra.clone()),
        ..SubjectAccessReviewSpec::default()
    };
    match access {
        Access::Path { verb, path } => {
            spec.non_resource_attributes =
                Some(NonResourceAttributes { verb: given(verb), path: given(path) });
        }
        Access::Resource { verb, group, version, resource, namespace } => {
            // A rule for */scale matches what is named apart.
            let (resource, subresource) = match resource.split_once('/') {
                Some((resource, subresource)) => (resource, given(subresource)),
                None => (resource.as_str(), None),
            };
            spec.resource_attributes = Some(ResourceAttributes {
                verb: given(verb),
                group: given(group),
                version: given(version),
                resource: given(resource),
                subresource,
                namespace: given(namespace),
                ..ResourceAttributes::default()
            });
        }
    }
    spec
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Access, AccessDecision, User, review_access, review_token};
    use crate::cluster::fake::{FakeResponse, FakeServer, refusal};

    fn prometheus() -> User {
        User {
            name: "system:serviceaccount:monitoring:prometheus".to_owned(),
            uid: "u-1".to_owned(),
            groups: vec!["system:authenticated".to_owned()],
            extra: [("scope".to_owned(), vec!["a".to_owned()])].into(),
        }
    }

    #[tokio::test]
    async fn a_token_is_its_owners_only_when_the_server_says_so() {
        let user = json!({
            "username": "system:serviceaccount:monitoring:prometheus", "uid": "u-1",
            "groups": ["system:authenticated"], "extra": { "scope": ["a"] },
        });
        for (status, wanted) in [
            (json!({ "authenticated": true, "user": user }), Some(prometheus())),
            (json!({ "authenticated": false, "user": user }), None),
            (json!({ "user": user }), None),
            (json!({ "authenticated": true }), None),
            (json!({ "authenticated": true, "user": { "username": "" } }), None),
            (json!({ "error": "token has expired" }), None),
        ] {
            let server = FakeServer::new([FakeResponse::Json(201, json!({ "status": status }))]);
            let found = review_token(&server.client(), "s3cret").await.unwrap();
            assert_eq!(found, wanted, "{status}");
            let asked = &server.asked()[0];
            assert_eq!(asked.path, "/apis/authentication.k8s.io/v1/tokenreviews");
            assert_eq!(asked.body["spec"], json!({ "token": "s3cret" }));
        }
    }

    #[tokio::test]
    async fn everything_that_is_known_of_a_user_is_part_of_the_question() {
        let list = Access::Resource {
            verb: "list",
            group: "external.metrics.k8s.io",
            version: "v1beta1",
            resource: "wva_desired_replicas".to_owned(),
            namespace: "team-a".to_owned(),
        };
        let get = Access::Path { verb: "get".to_owned(), path: "/metrics".to_owned() };
        let scale = Access::Resource {
            verb: "update",
            group: "apps",
            version: "v1",
            resource: "deployments/scale".to_owned(),
            namespace: "team-a".to_owned(),
        };
        let answer = || FakeResponse::Json(201, json!({ "status": { "allowed": true } }));
        let server = FakeServer::new([answer(), answer(), answer()]);
        for access in [&get, &list, &scale] {
            let decision = review_access(&server.client(), &prometheus(), access).await;
            assert_eq!(decision.unwrap(), AccessDecision::Allowed, "{access}");
        }
        let asked = server.asked();
        let who = json!({
            "user": "system:serviceaccount:monitoring:prometheus", "uid": "u-1",
            "groups": ["system:authenticated"], "extra": { "scope": ["a"] },
        });
        let mut wanted = who.clone();
        wanted["nonResourceAttributes"] = json!({ "verb": "get", "path": "/metrics" });
        assert_eq!(asked[0].body["spec"], wanted);
        let mut wanted = who.clone();
        wanted["resourceAttributes"] = json!({
            "verb": "list", "group": "external.metrics.k8s.io", "version": "v1beta1",
            "resource": "wva_desired_replicas", "namespace": "team-a",
        });
        assert_eq!(asked[1].body["spec"], wanted);
        let mut wanted = who;
        wanted["resourceAttributes"] = json!({
            "verb": "update", "group": "apps", "version": "v1",
            "resource": "deployments", "subresource": "scale", "namespace": "team-a",
        });
        assert_eq!(asked[2].body["spec"], wanted);
    }

    #[tokio::test]
    async fn only_a_clear_yes_is_one() {
        let get = Access::Path { verb: "get".to_owned(), path: "/metrics".to_owned() };
        for (status, reason) in [
            (json!({ "allowed": false, "reason": "no rule" }), "no rule"),
            (json!({ "allowed": true, "denied": true }), ""),
        ] {
            let server = FakeServer::new([FakeResponse::Json(201, json!({ "status": status }))]);
            let decision = review_access(&server.client(), &prometheus(), &get).await;
            let reason = reason.to_owned();
            assert_eq!(decision.unwrap(), AccessDecision::Denied { reason }, "{status}");
        }
        let server = FakeServer::new([refusal(403, "Forbidden", "may not ask")]);
        let error = review_access(&server.client(), &prometheus(), &get).await;
        assert_eq!(error.unwrap_err().code(), Some(403));
    }
}
