//! Hosts that metric sources of PodAutoscalers may name as `endpoint`.

use std::net::Ipv6Addr;
use std::sync::Arc;

use super::problem::InvalidValue;

/// Patterns of hosts: `*` for any, `*.suffix` for every name below a suffix, or one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointHosts(Vec<Arc<str>>);

impl Default for EndpointHosts {
    /// Every Service.
    fn default() -> Self {
        Self(vec!["*.svc".into(), "*.svc.cluster.local".into()])
    }
}

impl EndpointHosts {
    /// Reads patterns joined by commas.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        let patterns = text.split(',').map(str::trim);
        let patterns = patterns.map(|pattern| {
            let pattern = plain(pattern);
            if pattern.contains(':') && pattern.parse::<Ipv6Addr>().is_err() {
                return Err(InvalidValue::new(
                    format!("{pattern:?} is no host and no IPv6 address"),
                    "write the host without a port, like *.svc,*.svc.cluster.local",
                ));
            }
            if is_pattern(&pattern) {
                return Ok(Arc::from(pattern));
            }
            Err(InvalidValue::new(
                format!("{pattern:?} is no pattern of hosts"),
                "write hosts or *.suffix joined by commas, like *.svc,*.svc.cluster.local",
            ))
        });
        patterns.collect::<Result<_, _>>().map(Self)
    }

    /// Whether a source may name this host.
    pub fn permit(&self, host: &str) -> bool {
        let host = plain(host);
        self.0.iter().any(|pattern| match pattern.strip_prefix('*') {
            Some(suffix) => {
                let below = host.strip_suffix(suffix);
                below.is_some_and(|name| !name.is_empty())
            }
            None => **pattern == *host,
        })
    }
}

/// A host as patterns are compared with it: lower-case, without the brackets of a URL and the dot of the root.
fn plain(host: &str) -> String {
    // Not "*.", which would become a pattern for any host.
    let rooted = host.strip_suffix('.').filter(|rest| *rest != "*");
    let host = rooted.unwrap_or(host);
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    bare.unwrap_or(host).to_ascii_lowercase()
}

fn is_pattern(pattern: &str) -> bool {
    let host = pattern.strip_prefix("*.").unwrap_or(pattern);
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-_.:".contains(letter);
    pattern == "*" || (!host.is_empty() && host.chars().all(is_part))
}

wva_base::display_of! { EndpointHosts: Self(hosts) => "{}", hosts.join(","); }

#[cfg(test)]
mod tests {
    use super::EndpointHosts;

    #[test]
    fn a_pattern_permits_what_it_names_and_nothing_else() {
        for (patterns, host, permitted) in [
            ("*.svc,*.svc.cluster.local", "optimizer.ns.svc", true),
            ("*.svc, *.svc.cluster.local", "a.b.svc.cluster.local", true),
            ("*.svc", "A.B.SVC.", true),
            ("*.svc", "svc", false),
            ("*.svc", ".svc", false),
            ("*.svc", "a.b.svc.evil.example", false),
            ("*.svc", "asvc", false),
            ("*.svc", "10.0.0.9", false),
            ("metrics.example", "metrics.example", true),
            ("metrics.example", "a.metrics.example", false),
            ("10.0.0.9", "10.0.0.9", true),
            ("*", "anything.example", true),
            ("*", "[fd00::9]", true),
            ("fd00::9", "[fd00::8]", false),
            ("fd00::9", "[fd00::9]", true),
            ("[FD00::9]", "[fd00::9]", true),
            ("Metrics.Example.", "metrics.example", true),
            ("*.svc.", "a.b.svc", true),
        ] {
            let hosts = EndpointHosts::parse(patterns).unwrap();
            assert_eq!(hosts.permit(host), permitted, "{patterns} {host}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_an_example() {
        for text in ["", "*.", "a,,b", "http://a", "*svc", "a/b", "*.*"] {
            let refused = EndpointHosts::parse(text).unwrap_err();
            assert!(refused.remedy.contains("*.svc"), "{text}: {refused:?}");
        }
        for text in ["a.svc:8080", "10.0.0.9:80", "[fd00::9]:80", "*.svc:80"] {
            let refused = EndpointHosts::parse(text).unwrap_err();
            assert!(refused.remedy.contains("without a port"), "{text}");
            assert!(refused.why.contains(text), "{refused:?}");
        }
        let read = EndpointHosts::parse(" a.svc , *.B").unwrap();
        assert_eq!(read.to_string(), "a.svc,*.b");
    }
}
