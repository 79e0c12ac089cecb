//! What a label value must look like before it may name something in a cluster.

/// Longest DNS-1123 label, and so the longest namespace name.
const MAX_LABEL: usize = 63;
/// Longest DNS-1123 subdomain, and so the longest pod name.
const MAX_SUBDOMAIN: usize = 253;
/// Longest model name that is believed. Repository names stay below 200 bytes; paths to local
/// weights are longer.
const MAX_MODEL: usize = 1024;

/// Whether `text` is a DNS-1123 label: a namespace name.
pub(super) fn is_dns_label(text: &str) -> bool {
    text.len() <= MAX_LABEL && is_dns_part(text)
}

/// Whether `text` is a DNS-1123 subdomain: a pod name. Its parts have no length limit of their own.
pub(crate) fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= MAX_SUBDOMAIN && text.split('.').all(is_dns_part)
}

/// Lower-case letters, digits and hyphens, with no hyphen at either end.
fn is_dns_part(text: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().next().is_some_and(alphanumeric)
        && text.bytes().next_back().is_some_and(alphanumeric)
        && text.bytes().all(|byte| alphanumeric(byte) || byte == b'-')
}

/// Whether `text` can be the name of a model: not empty, not absurdly long, printable.
pub(super) fn is_model_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_MODEL && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_dns_labels() {
        for good in ["a", "0", "ns-1", "a--b", &"a".repeat(63)] {
            assert!(is_dns_label(good), "{good:?}");
        }
        for bad in [
            "",
            "-a",
            "a-",
            "A",
            "a.b",
            "a_b",
            "a b",
            "a\n",
            "a\"",
            "\u{e4}",
            &"a".repeat(64),
        ] {
            assert!(!is_dns_label(bad), "{bad:?}");
        }
    }

    #[test]
    fn pods_are_dns_subdomains() {
        for good in ["llama-7d9f8c6b5-abcde", "a.b", &"a".repeat(253)] {
            assert!(is_dns_subdomain(good), "{good:?}");
        }
        for bad in [
            "",
            ".",
            "a.",
            ".a",
            "a..b",
            "a.-b",
            "A",
            "a/b",
            &"a".repeat(254),
        ] {
            assert!(!is_dns_subdomain(bad), "{bad:?}");
        }
    }

    #[test]
    fn models_are_printable_and_not_absurd() {
        for good in [
            "meta/llama0-70b",
            "/mnt/models",
            "a\"b{}",
            &"m".repeat(1024),
        ] {
            assert!(is_model_name(good), "{good:?}");
        }
        for bad in ["", "a\nb", "\u{0}", &"m".repeat(1025)] {
            assert!(!is_model_name(bad), "{bad:?}");
        }
    }
}
