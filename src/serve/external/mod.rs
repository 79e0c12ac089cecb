//! `external.metrics.k8s.io`: an HPA reads decisions from here, without Prometheus and an adapter in
//! between. Every replica answers, from the status of the objects as it mirrors them: a Service
//! does not know the leader.

mod discovery;
mod values;

use http::request::Parts;
use hyper::{Method, StatusCode};
use serde_json::json;

use self::values::{ExternalMetric, Unknown, VARIANT, VariantCounts, list};
use super::access::AccessDenied;
use super::answer::{HttpResponse, challenge, json, status_of};
use super::connection::{Routes, path_access};
use super::visibility::{scaler_visible, variants_visible, visible};
use crate::cluster::review::Access;
use crate::policy::accelerator::Accelerator;
use crate::policy::key::VariantKey;
use crate::policy::params::LabelSelector;
use crate::state::Readers;
use crate::state::mirrors::target_of;
use wva_base::moment::Moment;

const GROUP: &str = "external.metrics.k8s.io";
const VERSION: &str = "v1beta1";
const GROUP_VERSION: &str = "external.metrics.k8s.io/v1beta1";

/// The routes of the group.
#[derive(Debug)]
pub struct ExternalMetricsRoutes {
    shared: Readers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place<'a> {
    Groups,
    Group,
    Resources,
    Values { namespace: &'a str, metric: &'a str },
    Nothing,
}

impl<'a> Place<'a> {
    fn of(path: &'a str) -> Self {
        let Some(rest) = path.strip_prefix("/apis") else {
            return Self::Nothing;
        };
        let parts: Vec<&str> = rest.split('/').collect();
        match *parts.as_slice() {
            [""] => Self::Groups,
            ["", GROUP] => Self::Group,
            ["", GROUP, VERSION] => Self::Resources,
            ["", GROUP, VERSION, "namespaces", namespace, metric]
                if !namespace.is_empty() && !metric.is_empty() =>
            {
                Self::Values { namespace, metric }
            }
            _ => Self::Nothing,
        }
    }
}

impl ExternalMetricsRoutes {
    /// Serves what these hold.
    pub fn new(shared: Readers) -> Self {
        Self { shared }
    }

    fn values(&self, namespace: &str, metric: &str, query: Option<&str>) -> HttpResponse {
        let Some(metric) = ExternalMetric::named(metric) else {
            let names = ExternalMetric::ALL.map(ExternalMetric::as_str).join(", ");
            let message = format!("there is no metric {metric:?}; there are {names}");
            return status(StatusCode::NOT_FOUND, "NotFound", &message);
        };
        let selector = match selector(query) {
            Ok(selector) => selector,
            Err(message) => return status(StatusCode::BAD_REQUEST, "BadRequest", &message),
        };
        let now = self.shared.clock.now();
        let scope = self.shared.mirrors.scope();
        let found = self.counts(namespace, metric, &selector, now).and_then(|all_counts| {
            list(metric, &all_counts, &selector, scope.instance.as_ref(), now.wall)
        });
        match found {
            Ok(list) => json(StatusCode::OK, &list),
            Err(unknown) => {
                let message = unknown.to_string();
                status(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", &message)
            }
        }
    }

    /// Those of at least all variants that the selector picks. Each HPA requests the one that it follows, which is not
    /// worth a look at all others.
    fn counts(
        &self,
        namespace: &str,
        metric: ExternalMetric,
        selector: &LabelSelector,
        now: Moment,
    ) -> Result<Vec<VariantCounts>, Unknown> {
        let mirrors = &self.shared.mirrors;
        variants_visible(mirrors, now)?;
        if metric != ExternalMetric::Desired {
            visible("Deployments", &mirrors.deployments, now)?;
        }
        let keys = match selector.values(VARIANT) {
            Some(names) => {
                let names = names.iter();
                names.map(|name| VariantKey::new(namespace, &**name)).collect()
            }
            None => mirrors.variants_in(namespace),
        };
        let ours = keys.into_iter().filter_map(|key| mirrors.managed(&key));
        let all_counts = ours.map(|record| {
            let stored = &record.object.stored;
            let target = target_of(&record);
            let target = target.and_then(|target| mirrors.sight(&target).found().cloned());
            VariantCounts {
                key: record.object.key.clone(),
                accelerator: stored
                    .accelerator
                    .clone()
                    .map_or(Accelerator::Unresolved, Accelerator::Named),
                desired: stored.desired,
                current: target.map(|target| target.status_replicas),
                unseen: scaler_visible(mirrors, &record, now).err(),
            }
        });
        Ok(all_counts.collect())
    }
}

fn selector(query: Option<&str>) -> Result<LabelSelector, String> {
    let query = query.unwrap_or_default();
    let mut text = String::new();
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*key {
            "labelSelector" => text = value.into_owned(),
            "watch" if !matches!(&*value, "" | "0" | "false") => {
                return Err("values cannot be watched; list them".to_owned());
            }
            _ => {}
        }
    }
    LabelSelector::parse(&text).map_err(|error| format!("labelSelector: {error}"))
}

impl Routes for ExternalMetricsRoutes {
    fn access(&self, head: &Parts) -> Access {
        match Place::of(head.uri.path()) {
            Place::Values { namespace, metric } => Access::Resource {
                // Other methods have no effect, for any client.
                verb: "list",
                group: GROUP,
                version: VERSION,
                resource: metric.to_owned(),
                namespace: namespace.to_owned(),
            },
            _ => path_access(head),
        }
    }

    fn answer(&self, head: &Parts) -> HttpResponse {
        if head.method != Method::GET {
            let code = StatusCode::METHOD_NOT_ALLOWED;
            return status(code, "MethodNotAllowed", "only GET");
        }
        match Place::of(head.uri.path()) {
            Place::Groups => json(StatusCode::OK, &discovery::groups()),
            Place::Group => json(StatusCode::OK, &discovery::group()),
            Place::Resources => json(StatusCode::OK, &discovery::resources()),
            Place::Values { namespace, metric } => self.values(namespace, metric, head.uri.query()),
            Place::Nothing => status(StatusCode::NOT_FOUND, "NotFound", "not found"),
        }
    }

    fn refuse(&self, refusal: &AccessDenied) -> HttpResponse {
        let reason = match refusal {
            AccessDenied::Unauthenticated => "Unauthorized",
            AccessDenied::Forbidden { .. } => "Forbidden",
            AccessDenied::Unavailable => "ServiceUnavailable",
        };
        challenge(status(status_of(refusal), reason, &refusal.to_string()))
    }
}

/// An answer that is no value, in the form of the Kubernetes API.
fn status(code: StatusCode, reason: &str, message: &str) -> HttpResponse {
    let document = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code.as_u16(),
    });
    json(code, &document)
}

#[cfg(test)]
mod tests;
