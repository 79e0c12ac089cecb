//! Names as Kubernetes accepts them. A namespace is checked here before it enters a query or a path.

use super::text::shortened;

/// Longest DNS-1123 label, and so the longest namespace name.
const MAX_LABEL: usize = 63;
/// Longest DNS-1123 subdomain, and so the longest pod name.
const MAX_SUBDOMAIN: usize = 253;

/// A text that is no name of the wanted form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum InvalidName {
    /// Not a namespace.
    #[error(
        "{0:?} is not a namespace: at most 63 lower-case letters, digits and '-', with a letter or digit at both ends"
    )]
    Namespace(String),
    /// Not an object name.
    #[error(
        "{0:?} is not an object name: at most 253 lower-case letters, digits, '-' and '.', with a letter or digit at both ends of each part"
    )]
    Object(String),
    /// Not a label value.
    #[error(
        "{0:?} is not a label value: at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"
    )]
    LabelValue(String),
}

/// Checks a namespace (DNS-1123 label).
pub fn check_namespace(text: &str) -> Result<(), InvalidName> {
    if is_dns_label(text) { Ok(()) } else { Err(InvalidName::Namespace(shortened(text))) }
}

/// Checks the name of a ConfigMap or Lease (DNS-1123 subdomain).
pub fn check_object_name(text: &str) -> Result<(), InvalidName> {
    if is_dns_subdomain(text) { Ok(()) } else { Err(InvalidName::Object(shortened(text))) }
}

/// Checks the value of a label; empty is one.
pub fn check_label_value(text: &str) -> Result<(), InvalidName> {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if text.is_empty()
        || (text.len() <= MAX_LABEL
            && text.bytes().all(inner)
            && has_ends(text, |byte| byte.is_ascii_alphanumeric()))
    {
        Ok(())
    } else {
        Err(InvalidName::LabelValue(shortened(text)))
    }
}

/// Whether `text` is a DNS-1123 label: a namespace name.
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= MAX_LABEL && is_dns_part(text)
}

/// Whether `text` is a DNS-1123 subdomain: a pod name. Its parts have no length limit of their own.
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= MAX_SUBDOMAIN && text.split('.').all(is_dns_part)
}

/// Whether `text` is a part of a DNS-1123 subdomain, of any length.
pub fn is_dns_part(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().all(|byte| plain(byte) || byte == b'-') && has_ends(text, plain)
}

fn has_ends(text: &str, accept: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|byte| accept(*byte))
        && bytes.last().is_some_and(|byte| accept(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_follow_dns_1123() {
        let longest = "a".repeat(63);
        for text in ["a", "team-a", "0", "a1", "a--b", longest.as_str()] {
            assert_eq!(check_namespace(text), Ok(()), "{text}");
        }
        let too_long = "a".repeat(64);
        for text in [
            "",
            "-a",
            "a-",
            "A",
            "a.b",
            "a_b",
            "a b",
            "ä",
            "a\"} or vector(1) #",
            "a\n",
            too_long.as_str(),
        ] {
            assert!(check_namespace(text).is_err(), "{text}");
        }
    }

    #[test]
    fn object_names_and_label_values_have_their_own_rules() {
        for text in ["a", "72dd1cf1.llm-d.ai", "a.b-c.d"] {
            assert_eq!(check_object_name(text), Ok(()), "{text}");
        }
        for text in ["", ".", "a..b", "a.", "A", "a/b", "a.-b"] {
            assert!(check_object_name(text).is_err(), "{text}");
        }
        for text in ["", "a", "Shard_1.x", "0"] {
            assert_eq!(check_label_value(text), Ok(()), "{text}");
        }
        for text in ["-a", "a.", "a b", "a/b"] {
            assert!(check_label_value(text).is_err(), "{text}");
        }
    }

    #[test]
    fn pods_are_dns_subdomains() {
        for good in ["llama-7d9f8c6b5-abcde", "a.b", &"a".repeat(253)] {
            assert!(is_dns_subdomain(good), "{good:?}");
        }
        for bad in ["", ".", "a.", ".a", "a..b", "a.-b", "A", "a/b", &"a".repeat(254)] {
            assert!(!is_dns_subdomain(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_long_text_is_shortened_in_its_message() {
        let error = check_namespace(&"x".repeat(100_000)).unwrap_err();
        assert!(error.to_string().len() < 400, "{}", error.to_string().len());
    }
}
