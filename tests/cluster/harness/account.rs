//! Service accounts of a test, with the roles of `config` that it gives them.

use std::time::Duration;

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, from_value, json};

use super::fault::{Fault, Result};
use super::manifest;
use super::namespace::Namespace;
use super::tools::repository;
use super::wait::{eventually, seen};

/// The authorizer knows of a removed right within this.
const NOTICED: Duration = Duration::from_secs(30);
const GROUP: &str = "rbac.authorization.k8s.io";

/// A token for an account, which must exist.
pub(super) async fn issued(accounts: &Api<ServiceAccount>, name: &str) -> Result<String> {
    let issued = accounts
        .create_token_request(name, &PostParams::default(), &TokenRequest::default())
        .await?;
    let token = issued.status.map(|status| status.token);
    token.ok_or_else(|| Fault::new("the API server issued no token"))
}

/// A service account in the namespace of a test.
pub(crate) struct Account<'a> {
    namespace: &'a Namespace,
    name: &'a str,
}

impl<'a> Account<'a> {
    /// Makes it, without any right.
    pub(crate) async fn create(namespace: &'a Namespace, name: &'a str) -> Result<Self> {
        let metadata = json!({ "name": name });
        let object = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata });
        namespace.apply(object).await?;
        Ok(Self { namespace, name })
    }

    pub(crate) async fn uid(&self) -> Result<String> {
        let accounts: Api<ServiceAccount> = self.namespace.api();
        Ok(accounts.get(self.name).await?.metadata.uid.unwrap_or_default())
    }

    /// A token for it that is good for an hour.
    pub(crate) async fn token(&self) -> Result<String> {
        issued(&self.namespace.api(), self.name).await
    }

    /// Gives it the roles in a file below `config`, exactly as they are shipped.
    pub(crate) async fn bind_shipped(&self, file: &str) -> Result {
        for role in manifest::read(&repository().join("config").join(file))? {
            if role["rules"].is_array() {
                let (kind, name) = (role["kind"].clone(), role["metadata"]["name"].clone());
                self.namespace.apply(role).await?;
                self.bind(&kind, &name, &self.namespace.name).await?;
            }
        }
        Ok(())
    }

    /// Takes a shipped ClusterRole away from it.
    pub(crate) async fn unbind(&self, role: &str) -> Result {
        let bindings: Api<ClusterRoleBinding> = Api::all(self.namespace.client());
        let name = self.binding(role);
        bindings.delete(&name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Takes a shipped Role of its own namespace away from it.
    pub(crate) async fn unbind_within(&self, role: &str) -> Result {
        let bindings: Api<RoleBinding> = self.namespace.api();
        let name = self.binding(role);
        bindings.delete(&name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Gives it these rules in the whole cluster, as a role of its own.
    pub(crate) async fn bind_rules(&self, name: &str, rules: &Value) -> Result {
        let name = format!("{}-{name}", self.namespace.name);
        let role = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole",
            "metadata": { "name": name }, "rules": rules,
        });
        self.namespace.apply(role).await?;
        self.bind(&json!("ClusterRole"), &json!(name), "").await
    }

    /// Takes these rules away from it.
    pub(crate) async fn unbind_rules(&self, name: &str) -> Result {
        self.unbind(&format!("{}-{name}", self.namespace.name)).await
    }

    /// Waits until the API server refuses to let it create this: until then it gives answers, which a client
    /// keeps for minutes once it gives none.
    pub(crate) async fn may_not_create(&self, group: &str, resource: &str) -> Result {
        let user = format!("system:serviceaccount:{}:{}", self.namespace.name, self.name);
        let question = json!({ "spec": {
            "user": user,
            "resourceAttributes": { "group": group, "resource": resource, "verb": "create" },
        }});
        let question: SubjectAccessReview = from_value(question)?;
        let reviews: Api<SubjectAccessReview> = Api::all(self.namespace.client());
        eventually(format!("{user} may not create {resource}"), NOTICED, async || {
            let answer = reviews.create(&PostParams::default(), &question).await?;
            seen(&answer.status.map(|status| status.allowed), &Some(false))
        })
        .await
    }

    /// Gives it a Role of another namespace.
    pub(crate) async fn bind_role_in(&self, namespace: &str, role: &str) -> Result {
        self.bind(&json!("Role"), &json!(role), namespace).await
    }

    fn binding(&self, role: &str) -> String {
        format!("{}-{}-{role}", self.namespace.name, self.name)
    }

    async fn bind(&self, kind: &Value, role: &Value, within: &str) -> Result {
        let binding = if kind == "ClusterRole" { "ClusterRoleBinding" } else { "RoleBinding" };
        let own = &self.namespace.name;
        let name = self.binding(role.as_str().unwrap_or_default());
        let mut metadata = json!({ "name": name });
        if binding == "RoleBinding" {
            metadata["namespace"] = json!(within);
        }
        let subject = json!({ "kind": "ServiceAccount", "name": self.name, "namespace": own });
        let object = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": binding, "metadata": metadata,
            "roleRef": { "apiGroup": GROUP, "kind": kind, "name": role },
            "subjects": [subject],
        });
        self.namespace.apply(object).await?;
        Ok(())
    }
}
