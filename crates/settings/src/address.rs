//! Listening addresses in Go's form: `:8443`, `127.0.0.1:8081`, `[::1]:8081`, or `0` for none.

// Types only: `core::net` has no sockets.
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Where a server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BindAddress {
    /// Nowhere: `0` or empty.
    Off,
    /// On one port.
    On {
        /// One address, or every address of the machine.
        host: Option<IpAddr>,
        /// The port; 0 lets the system choose.
        port: u16,
    },
}

impl BindAddress {
    /// Reads an address; `None` if the text is none.
    pub fn parse(text: &str) -> Option<Self> {
        if matches!(text, "" | "0") {
            return Some(Self::Off);
        }
        let (host, port) = text.rsplit_once(':')?;
        if port.is_empty() || !port.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let host = match host {
            "" => None,
            "localhost" => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            _ => Some(parse_host(host)?),
        };
        Some(Self::On { host, port: port.parse().ok()? })
    }

    /// Socket addresses to try in order, the first that can be bound wins: every address means both
    /// families at once, or IPv4 alone where the machine has no IPv6.
    pub fn candidates(self) -> Vec<SocketAddr> {
        match self {
            Self::Off => Vec::new(),
            Self::On { host: Some(host), port } => vec![SocketAddr::new(host, port)],
            Self::On { host: None, port } => vec![
                SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port),
                SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port),
            ],
        }
    }
}

fn parse_host(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(inner) => inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => host.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
    }
}

wva_base::display_of! { BindAddress:
    Self::Off => "0";
    Self::On { host: None, port } => ":{port}";
    Self::On { host: Some(host), port } => "{}", SocketAddr::new(*host, *port);
}

#[cfg(test)]
mod tests {
    use super::BindAddress;

    #[test]
    fn go_forms_are_read_and_written_back() {
        for (text, shown, candidates) in [
            ("0", "0", 0),
            ("", "0", 0),
            (":8443", ":8443", 2),
            (":0", ":0", 2),
            ("127.0.0.1:8081", "127.0.0.1:8081", 1),
            ("localhost:8081", "127.0.0.1:8081", 1),
            ("[::1]:8081", "[::1]:8081", 1),
        ] {
            let address = BindAddress::parse(text).unwrap();
            assert_eq!(address.to_string(), shown, "{text}");
            assert_eq!(address.candidates().len(), candidates, "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["8443", ":", ":x", ":-1", ":+1", ":65536", "host:1", "::1:80", "1.2.3:4"] {
            assert_eq!(BindAddress::parse(text), None, "{text}");
        }
    }
}
