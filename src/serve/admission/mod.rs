//! Admission webhooks of `PodAutoscaler`. The API server shows no proof of itself, and needs none: the
//! answer depends on the request alone, holds nothing of this process, and changes nothing. Every replica
//! answers.

mod review;
mod verdict;

use http::request::Parts;
use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, StatusCode};

use self::review::AdmissionRequest;
use self::verdict::AdmissionVerdict;
use super::answer::{HttpResponse, json, plain};
use super::body::BodyReader;
use super::connection::Routes;

/// Where objects could be changed.
pub const MUTATING_PATH: &str = "/mutate-autoscaling-aibrix-ai-v1alpha1-podautoscaler";
/// Where objects are judged.
pub const VALIDATING_PATH: &str = "/validate-autoscaling-aibrix-ai-v1alpha1-podautoscaler";
/// Largest body that is read: an object of the size that etcd takes, twice.
const LARGEST_BODY: usize = 3 * 1024 * 1024;

/// The routes of the webhooks.
#[derive(Debug)]
pub struct AdmissionRoutes {
    bodies: BodyReader,
}

impl Default for AdmissionRoutes {
    fn default() -> Self {
        Self { bodies: BodyReader::new(LARGEST_BODY) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Webhook {
    Mutating,
    Validating,
}

impl Webhook {
    fn at(path: &str) -> Option<Self> {
        match path {
            MUTATING_PATH => Some(Self::Mutating),
            VALIDATING_PATH => Some(Self::Validating),
            _ => None,
        }
    }

    fn judge(self, request: AdmissionRequest) -> AdmissionVerdict {
        match self {
            Self::Mutating => AdmissionVerdict::default(),
            Self::Validating => AdmissionVerdict::on(request),
        }
    }
}

impl Routes for AdmissionRoutes {
    fn body_reader(&self, head: &Parts) -> Option<&BodyReader> {
        let is_call = head.method == Method::POST && Webhook::at(head.uri.path()).is_some();
        is_call.then_some(&self.bodies)
    }

    fn answer(&self, head: &Parts) -> HttpResponse {
        if Webhook::at(head.uri.path()).is_none() {
            return plain(StatusCode::NOT_FOUND, "not found");
        }
        let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "only POST");
        let headers = refused.headers_mut();
        headers.insert(ALLOW, HeaderValue::from_static("POST"));
        refused
    }

    fn answer_to_body(&self, head: &Parts, body: &[u8]) -> HttpResponse {
        let Some(webhook) = Webhook::at(head.uri.path()) else {
            return self.answer(head);
        };
        match AdmissionRequest::read(body) {
            Ok(request) => {
                let uid = request.uid.clone();
                json(StatusCode::OK, &webhook.judge(request).review(&uid))
            }
            Err(error) => plain(StatusCode::BAD_REQUEST, &error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
