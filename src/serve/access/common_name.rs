//! The common name in the subject of a certificate.

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
/// The attribute type 2.5.4.3.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
/// UTF8String, PrintableString, T61String, IA5String: texts of which ASCII reads the same.
const TEXTS: [u8; 4] = [0x0c, 0x13, 0x14, 0x16];

/// The last common name of the subject, which is the most specific; `None` without one.
pub(super) fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    let mut names = certificate.subject();
    let mut found = None;
    while !names.is_empty() {
        let (set, rest) = element(names, SET)?;
        names = rest;
        let mut attributes = set;
        while !attributes.is_empty() {
            let (attribute, rest) = element(attributes, SEQUENCE)?;
            attributes = rest;
            let (kind, value) = element(attribute, OBJECT_IDENTIFIER)?;
            if kind == COMMON_NAME {
                let text = TEXTS.iter().find_map(|tag| element(value, *tag))?.0;
                found = Some(String::from_utf8(text.to_vec()).ok()?);
            }
        }
    }
    found
}

/// The content of the first element, which must have this tag, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = der_element(der)?;
    (found == tag).then_some((content, rest))
}

/// One element of DER: its tag, its content, and what follows.
pub(crate) fn der_element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match *first {
        // DER has no indefinite lengths.
        0x80 => return None,
        short @ ..0x80 => (usize::from(short), rest),
        long => {
            let (bytes, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            let length = bytes.iter().try_fold(0_usize, |sum, byte| {
                sum.checked_mul(256)?.checked_add(usize::from(*byte))
            })?;
            (length, rest)
        }
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};
    use rustls::pki_types::CertificateDer;

    use super::common_name;

    fn certificate(parts: Vec<(DnType, DnValue)>) -> CertificateDer<'static> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in parts {
            params.distinguished_name.push(kind, value);
        }
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().clone()
    }

    #[test]
    fn the_common_name_is_found_among_other_attributes() {
        let text = |text: &str| DnValue::Utf8String(text.to_owned());
        let printable = DnValue::PrintableString("front-proxy-client".try_into().unwrap());
        let long = "x".repeat(300);
        for (parts, wanted) in [
            (vec![(DnType::CommonName, text("a"))], Some("a")),
            (vec![(DnType::CommonName, printable)], Some("front-proxy-client")),
            (vec![(DnType::CommonName, text(&long))], Some(long.as_str())),
            (
                vec![
                    (DnType::OrganizationName, text("system:masters")),
                    (DnType::CommonName, text("b")),
                    (DnType::OrganizationalUnitName, text("c")),
                ],
                Some("b"),
            ),
            (vec![(DnType::OrganizationName, text("a"))], None),
            (vec![], None),
        ] {
            let found = common_name(&certificate(parts.clone()));
            assert_eq!(found.as_deref(), wanted, "{parts:?}");
        }
        assert_eq!(common_name(&CertificateDer::from(vec![0x30, 0x03])), None);
    }
}
