//! Users that the API server has authenticated for us: it proves itself with a certificate and names
//! the user in headers. By which authority, which names and which headers stands in a ConfigMap that
//! every API server keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use hyper::HeaderMap;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::common_name::common_name;
use crate::api::text::bounded;
use crate::cluster::mirror::{Mirror, ObjectKey};
use crate::cluster::project::config_map::ConfigMapObject;
use crate::cluster::review::User;
use crate::serve::tls::pem_fault;

/// Namespace of the ConfigMap.
pub const NAMESPACE: &str = "kube-system";
/// Name of the ConfigMap.
pub const CONFIG_MAP: &str = "extension-apiserver-authentication";

/// Longest description of what is wrong with a list, in bytes.
const LONGEST_QUOTE: usize = 512;

/// How front proxies prove themselves, as the cluster says now.
#[derive(Debug)]
pub struct FrontProxies {
    mirror: Mirror<ConfigMapObject>,
    read: Mutex<Option<Read>>,
}

#[derive(Debug, Clone)]
struct Read {
    object: Arc<ConfigMapObject>,
    outcome: Result<Arc<FrontProxyRules>, Arc<str>>,
}

/// What the ConfigMap says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontProxyRules {
    /// Authorities that sign the certificates of front proxies.
    pub authorities: Vec<CertificateDer<'static>>,
    /// Common names that they may have; none means any.
    names: BTreeSet<String>,
    user_headers: Vec<String>,
    uid_headers: Vec<String>,
    group_headers: Vec<String>,
    extra_prefixes: Vec<String>,
}

impl FrontProxies {
    /// As `mirror` says, which holds that ConfigMap alone.
    pub fn new(mirror: Mirror<ConfigMapObject>) -> Self {
        Self { mirror, read: Mutex::default() }
    }

    /// The rules in force.
    ///
    /// # Errors
    /// Why no front proxy can be believed now.
    pub fn rules(&self) -> Result<Arc<FrontProxyRules>, Arc<str>> {
        let key = ObjectKey::new(NAMESPACE, CONFIG_MAP);
        let Some(object) = self.mirror.get(&key) else {
            return Err(Arc::from(format!(
                "ConfigMap {NAMESPACE}/{CONFIG_MAP} is not known; bind the Role \
                 extension-apiserver-authentication-reader to the controller's service account"
            )));
        };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = read.as_ref().filter(|read| Arc::ptr_eq(&read.object, &object)) {
            return known.outcome.clone();
        }
        let outcome = FrontProxyRules::read(&object.data).map(Arc::new).map_err(|why| {
            let why = format!("ConfigMap {NAMESPACE}/{CONFIG_MAP}: {why}");
            tracing::error!(why, "no front proxy is believed");
            Arc::from(why)
        });
        let outcome = read.insert(Read { object, outcome }).outcome.clone();
        drop(read);
        outcome
    }
}

impl FrontProxyRules {
    fn read(data: &BTreeMap<String, String>) -> Result<Self, String> {
        let authorities = data
            .get("requestheader-client-ca-file")
            .ok_or("requestheader-client-ca-file is missing: the API server has no front proxy")?;
        let authorities: Vec<_> = CertificateDer::pem_slice_iter(authorities.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|error| {
                let fault = pem_fault(&error);
                format!("requestheader-client-ca-file is not PEM: {fault}")
            })?;
        if authorities.is_empty() {
            return Err("requestheader-client-ca-file holds no certificate".to_owned());
        }
        let user_headers = list(data, "requestheader-username-headers")?;
        if user_headers.is_empty() {
            return Err("requestheader-username-headers names no header".to_owned());
        }
        Ok(Self {
            authorities,
            names: list(data, "requestheader-allowed-names")?.into_iter().collect(),
            user_headers,
            uid_headers: list(data, "requestheader-uid-headers")?,
            group_headers: list(data, "requestheader-group-headers")?,
            extra_prefixes: list(data, "requestheader-extra-headers-prefix")?,
        })
    }

    /// The user that a front proxy names; `None` if it is none, or names no user. That its
    /// certificate is signed by one of the authorities must have been proved.
    pub fn user(&self, certificate: &CertificateDer<'_>, headers: &HeaderMap) -> Option<User> {
        if !self.names.is_empty() && !self.names.contains(&common_name(certificate)?) {
            return None;
        }
        let first = |names: &[String]| {
            let mut values = names.iter().filter_map(|name| headers.get(name)?.to_str().ok());
            values.find(|value| !value.is_empty()).map(str::to_owned)
        };
        Some(User {
            name: first(&self.user_headers)?,
            uid: first(&self.uid_headers).unwrap_or_default(),
            groups: self
                .group_headers
                .iter()
                .flat_map(|name| headers.get_all(name))
                .filter_map(|value| value.to_str().ok())
                .map(str::to_owned)
                .collect(),
            extra: self.extra(headers),
        })
    }

    /// Header names arrive in small letters; what follows the prefix is percent-encoded.
    fn extra(&self, headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in headers {
            let key = self
                .extra_prefixes
                .iter()
                .find_map(|prefix| name.as_str().strip_prefix(prefix.as_str()));
            if let (Some(key), Ok(value)) = (key, value.to_str()) {
                let key = percent_decoded(key);
                extra.entry(key).or_default().push(value.to_owned());
            }
        }
        extra
    }
}

/// A list of header names or common names, as a JSON array; header names in small letters.
fn list(data: &BTreeMap<String, String>, key: &str) -> Result<Vec<String>, String> {
    let Some(text) = data.get(key).filter(|text| !text.is_empty()) else {
        return Ok(Vec::new());
    };
    // The parser may quote a text of any length.
    let list: Vec<String> = serde_json::from_str(text).map_err(|error| {
        let error = bounded(&error.to_string(), LONGEST_QUOTE);
        format!("{key} is not a JSON list of texts: {error}")
    })?;
    Ok(if key == "requestheader-allowed-names" {
        list
    } else {
        list.iter().map(|name| name.to_ascii_lowercase()).collect()
    })
}

fn percent_decoded(text: &str) -> String {
    // A plus stands for itself here, unlike in forms.
    let text = text.replace('+', "%2B");
    let mut parts = form_urlencoded::parse(text.as_bytes());
    parts.next().map_or_else(String::new, |(key, _)| key.into_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hyper::HeaderMap;
    use hyper::header::{HeaderName, HeaderValue};
    use rcgen::{CertificateParams, DnType, KeyPair};
    use rustls::pki_types::CertificateDer;

    use super::FrontProxyRules;
    use crate::cluster::review::User;

    fn certificate(name: &str) -> (CertificateDer<'static>, String) {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        (certificate.der().clone(), certificate.pem())
    }

    fn data(names: &str) -> BTreeMap<String, String> {
        [
            ("requestheader-client-ca-file", certificate("ca").1.as_str()),
            ("requestheader-allowed-names", names),
            ("requestheader-username-headers", r#"["X-Remote-User"]"#),
            ("requestheader-uid-headers", r#"["X-Remote-Uid"]"#),
            ("requestheader-group-headers", r#"["X-Remote-Group"]"#),
            ("requestheader-extra-headers-prefix", r#"["X-Remote-Extra-"]"#),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name = HeaderName::from_static(name);
            headers.append(name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn a_user_is_read_from_the_headers_that_the_cluster_names() {
        let rules = FrontProxyRules::read(&data(r#"["front-proxy-client"]"#)).unwrap();
        let headers = headers(&[
            ("x-remote-user", "hpa"),
            ("x-remote-uid", "u-1"),
            ("x-remote-group", "system:serviceaccounts"),
            ("x-remote-group", "system:authenticated"),
            ("x-remote-extra-scopes%2fa", "one"),
            ("x-remote-extra-scopes%2fa", "two"),
            ("x-other", "three"),
        ]);
        let user = User {
            name: "hpa".to_owned(),
            uid: "u-1".to_owned(),
            groups: ["system:serviceaccounts", "system:authenticated"].map(str::to_owned).into(),
            extra: [("scopes/a".to_owned(), vec!["one".to_owned(), "two".to_owned()])].into(),
        };
        let (proxy, _) = certificate("front-proxy-client");
        assert_eq!(rules.user(&proxy, &headers), Some(user));
    }

    #[test]
    fn only_the_names_in_the_list_are_believed_and_an_empty_list_is_every_name() {
        let headers = headers(&[("x-remote-user", "hpa")]);
        for (names, name, believed) in [
            (r#"["front-proxy-client"]"#, "front-proxy-client", true),
            (r#"["front-proxy-client"]"#, "someone", false),
            (r#"["front-proxy-client"]"#, "Front-Proxy-Client", false),
            (r#"["a", "b"]"#, "b", true),
            ("[]", "someone", true),
            ("", "someone", true),
        ] {
            let rules = FrontProxyRules::read(&data(names)).unwrap();
            let found = rules.user(&certificate(name).0, &headers);
            assert_eq!(found.is_some(), believed, "{name} where {names} is allowed");
        }
    }

    #[test]
    fn a_proxy_that_names_no_user_speaks_for_none() {
        let rules = FrontProxyRules::read(&data("[]")).unwrap();
        let (proxy, _) = certificate("front-proxy-client");
        for pairs in [&[][..], &[("x-remote-user", "")], &[("x-remote-group", "system:masters")]] {
            assert_eq!(rules.user(&proxy, &headers(pairs)), None, "{pairs:?}");
        }
    }

    #[test]
    fn what_is_wrong_with_the_config_map_is_named() {
        for (key, value, why) in [
            ("requestheader-client-ca-file", "", "holds no certificate"),
            ("requestheader-client-ca-file", "-----BEGIN CERTIFICATE-----\n", "not PEM"),
            ("requestheader-allowed-names", "front-proxy-client", "not a JSON list"),
            ("requestheader-username-headers", "[]", "names no header"),
        ] {
            let mut data = data("[]");
            data.insert(key.to_owned(), value.to_owned());
            let error = FrontProxyRules::read(&data).unwrap_err();
            assert!(error.starts_with(key) && error.contains(why), "{error}");
        }
        let error = FrontProxyRules::read(&BTreeMap::new()).unwrap_err();
        assert!(error.contains("no front proxy"), "{error}");
    }
}
