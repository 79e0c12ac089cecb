//! Keys and certificates of a world, made fresh for each.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde_json::json;

use super::fault::Result;

/// A folder of PEM files: `<name>.crt` and `<name>.key`.
pub(crate) struct Pki {
    dir: PathBuf,
}

/// An authority and the PEM file of its certificate.
pub(crate) struct Authority(Issuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn make(dir: &Path, name: &str) -> Result<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate()?;
        fs::write(dir.join(format!("{name}.crt")), params.self_signed(&key)?.pem())?;
        Ok(Self(Issuer::new(params, key)))
    }

    /// Writes a certificate and its key.
    pub(crate) fn issue(&self, dir: &Path, name: &str, subject: &Subject<'_>) -> Result {
        let names: Vec<String> = subject.hosts.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, subject.common_name);
        if let Some(organization) = subject.organization {
            params.distinguished_name.push(DnType::OrganizationName, organization);
        }
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        fs::write(dir.join(format!("{name}.crt")), params.signed_by(&key, &self.0)?.pem())?;
        fs::write(dir.join(format!("{name}.key")), key.serialize_pem())?;
        Ok(())
    }
}

/// Who a certificate is for.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) common_name: &'a str,
    pub(crate) organization: Option<&'a str>,
    pub(crate) hosts: &'a [&'a str],
}

impl<'a> Subject<'a> {
    pub(crate) fn user(common_name: &'a str) -> Self {
        Self { common_name, organization: None, hosts: &[] }
    }
}

impl Pki {
    pub(crate) fn make(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir)?;
        let cluster = Authority::make(dir, "ca")?;
        let serving = Subject {
            hosts: &["127.0.0.1", "localhost", "kubernetes.default.svc"],
            ..Subject::user("kube-apiserver")
        };
        cluster.issue(dir, "apiserver", &serving)?;
        let admin = Subject { organization: Some("system:masters"), ..Subject::user("admin") };
        cluster.issue(dir, "admin", &admin)?;
        cluster.issue(dir, "kcm", &Subject::user("system:kube-controller-manager"))?;
        cluster.issue(dir, "scheduler", &Subject::user("system:kube-scheduler"))?;
        let front = Authority::make(dir, "front-proxy-ca")?;
        front.issue(dir, "front-proxy", &Subject::user("front-proxy-client"))?;
        let accounts = KeyPair::generate()?;
        fs::write(dir.join("sa.key"), accounts.serialize_pem())?;
        fs::write(dir.join("sa.pub"), accounts.public_key_pem())?;
        keda_certificates(&dir.join("keda"))?;
        Ok(Self { dir: dir.to_owned() })
    }

    /// The path of a file of this folder.
    pub(crate) fn path(&self, file: &str) -> String {
        self.dir.join(file).display().to_string()
    }

    /// A kubeconfig for a user that proves itself with one of the certificates made here.
    pub(crate) fn kubeconfig_for(&self, server: &str, user: &str) -> serde_json::Value {
        let certificate = self.path(&format!("{user}.crt"));
        let key = self.path(&format!("{user}.key"));
        self.kubeconfig(server, &json!({ "client-certificate": certificate, "client-key": key }))
    }

    /// A kubeconfig for a user that proves itself with a service account token.
    pub(crate) fn kubeconfig_with_token(&self, server: &str, token: &str) -> serde_json::Value {
        self.kubeconfig(server, &json!({ "token": token }))
    }

    fn kubeconfig(&self, server: &str, user: &serde_json::Value) -> serde_json::Value {
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "world", "cluster": {
                "server": server, "certificate-authority": self.path("ca.crt"),
            }}],
            "users": [{ "name": "user", "user": user }],
            "contexts": [{ "name": "world", "context": { "cluster": "world", "user": "user" } }],
            "current-context": "world",
        })
    }
}

/// KEDA's operator and adapter speak mutual TLS with the same files, under the names they expect.
fn keda_certificates(dir: &Path) -> Result {
    fs::create_dir_all(dir)?;
    let authority = Authority::make(dir, "ca")?;
    let subject = Subject { hosts: &["localhost", "127.0.0.1"], ..Subject::user("keda-operator") };
    authority.issue(dir, "tls", &subject)
}
