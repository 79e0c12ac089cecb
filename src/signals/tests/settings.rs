//! Settings of the connection: every fault has its text.

use std::path::PathBuf;

use serde::Deserialize;

use super::vectors::load;
use crate::settings::secret::Secret;
use crate::settings::statics::CertificatePair;
use crate::settings::{PrometheusTls, TokenSource};
use crate::signals::PrometheusClientSettings;

#[derive(Deserialize)]
struct Transport {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    url: String,
    #[serde(default)]
    allow_http: bool,
    #[serde(default)]
    skip_verify: bool,
    token: Option<String>,
    token_file: Option<PathBuf>,
    ca: Option<PathBuf>,
    client_cert: Option<PathBuf>,
    client_key: Option<PathBuf>,
    server_name: Option<String>,
    faults: Vec<String>,
}

impl Case {
    fn settings(&self) -> PrometheusClientSettings {
        let client = self.client_cert.clone().zip(self.client_key.clone());
        PrometheusClientSettings {
            allow_http: self.allow_http,
            token: match (&self.token, &self.token_file) {
                (Some(text), _) => TokenSource::Value(Secret::new(text.as_str())),
                (None, Some(path)) => TokenSource::File(path.clone()),
                (None, None) => TokenSource::None,
            },
            tls: PrometheusTls {
                insecure_skip_verify: self.skip_verify,
                ca_path: self.ca.clone(),
                client: client.map(|(certificate, key)| CertificatePair { certificate, key }),
                server_name: self.server_name.clone(),
            },
            ..PrometheusClientSettings::new(self.url.clone())
        }
    }
}

#[test]
fn every_fault_is_found_and_no_secret_is_shown() {
    for case in load::<Transport>("transport.yaml").cases {
        let id = &case.id;
        let settings = case.settings();
        let faults: Vec<_> = settings.validate().iter().map(ToString::to_string).collect();
        assert_eq!(faults.len(), case.faults.len(), "{id}: {faults:?}");
        for (fault, expected) in faults.iter().zip(&case.faults) {
            assert!(fault.contains(expected), "{id}: {fault}");
            assert!(!fault.contains("hush"), "{id}: {fault}");
        }
        assert!(!format!("{:?}", settings.token).contains("hush"), "{id}");
    }
}
