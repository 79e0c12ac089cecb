//! Times: of Prometheus, and of certificates.

use jiff::Timestamp;

use super::cluster::webhooks_of;
use super::prometheus::server;
use crate::doctor::facts::{Facts, LiveKind};
use crate::doctor::finding::{Finding, FindingCode};
use crate::doctor::object::{LiveObject, text};
use crate::doctor::probe::PrometheusProbe;
use crate::serve::access::der_element;

/// Difference of clocks that does not matter, in seconds.
pub(super) const TOLERATED_SKEW: f64 = 15.0;
const WEEK: f64 = 7.0 * 24.0 * 3600.0;

checks! {
    Prometheus "the clock of Prometheus agrees" skew: Series(Clock);
    Cluster "certificates last for more than a week" certificates:
        Cluster Kind(APIService) Kind(ValidatingWebhookConfiguration) Kind(MutatingWebhookConfiguration);
}

/// Seconds since the Unix epoch of a time as Kubernetes writes it.
pub(super) fn seconds(text: &str) -> Option<f64> {
    let time: Timestamp = text.parse().ok()?;
    Some(time.as_duration().as_secs_f64())
}

fn skew(facts: &Facts) -> Vec<Finding> {
    let clock = facts.series(PrometheusProbe::Clock).first();
    let found = clock
        .map(|clock| clock.value - facts.now - facts.took)
        .filter(|skew| skew.abs() > TOLERATED_SKEW);
    let found = found.map(|skew| {
        let which = if skew > 0.0 { "ahead of" } else { "behind" };
        let cause = format!("it is {:.0} s {which} this machine's", skew.abs());
        FindingCode::ClockSkew.at(server(facts), cause)
    });
    found.into_iter().collect()
}

fn certificates(facts: &Facts) -> Vec<Finding> {
    let services = facts.all(LiveKind::APIService).iter();
    let services = services.filter(|service| is_ours(service));
    let bundles = services.map(|service| (service, service.text("/spec/caBundle")));
    let webhooks = webhooks_of(facts)
        .map(|(object, webhook)| (object, text(webhook, "/clientConfig/caBundle")));
    let found = bundles.chain(webhooks).filter_map(|(object, bundle)| {
        let end = certificate_end(bundle)?;
        let left = end - facts.now;
        let cause = if left < 0.0 {
            "its caBundle has ended".to_owned()
        } else {
            format!("its caBundle ends in {:.0} hours", left / 3600.0)
        };
        (left < WEEK).then(|| FindingCode::CertificateEnds.at(object.title(), cause))
    });
    found.collect()
}

/// Whether an APIService leads to this controller.
pub(super) fn is_ours(service: &LiveObject) -> bool {
    service.name().ends_with(".metrics.k8s.io")
        && service.text("/spec/service/name").contains("external-metrics")
}

/// When the first certificate of a bundle, PEM in base64, ends.
fn certificate_end(bundle: &str) -> Option<f64> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;

    let pem = base64(bundle)?;
    let certificate = CertificateDer::from_pem_slice(&pem).ok()?;
    not_after(&certificate)
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let bytes: k8s_openapi::ByteString = serde_json::from_value(text.into()).ok()?;
    Some(bytes.0).filter(|bytes| !bytes.is_empty())
}

/// The end of validity of a certificate.
fn not_after(certificate: &[u8]) -> Option<f64> {
    let (_, certificate, _) = der_element(certificate)?;
    let (_, body, _) = der_element(certificate)?;
    let (tag, _, after_first) = der_element(body)?;
    // The version, which may be left out.
    let mut rest = if tag == 0xa0 { after_first } else { body };
    // Serial number, algorithm, issuer.
    for _field in 0..3 {
        (_, _, rest) = der_element(rest)?;
    }
    let (_, validity, _) = der_element(rest)?;
    let (_, _, rest) = der_element(validity)?;
    let (tag, text, _) = der_element(rest)?;
    let text = std::str::from_utf8(text).ok()?;
    let full = match tag {
        // Two digits of the year: 50 and above are of the last century.
        0x17 if text.get(..2)? >= "50" => format!("19{text}"),
        0x17 => format!("20{text}"),
        _ => text.to_owned(),
    };
    let part = |from: usize, to: usize| full.get(from..to);
    seconds(&format!(
        "{}-{}-{}T{}:{}:{}Z",
        part(0, 4)?,
        part(4, 6)?,
        part(6, 8)?,
        part(8, 10)?,
        part(10, 12)?,
        part(12, 14)?
    ))
}
