//! Which endpoints of metric services may be read: hosts that a setting permits, and never an address that only this
//! machine or its cloud answers on.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::pod_client::PageReadError;
use crate::settings::endpoint_hosts::EndpointHosts;

/// Metadata services of clouds that are not link-local: Alibaba, Azure.
const METADATA_V4: [Ipv4Addr; 2] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16)];
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254);

/// The IPv4 address that a NAT64 gateway reaches for an address of the well-known prefix 64:ff9b::/96 (RFC 6052).
fn translated(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [0x0064, 0xff9b, 0, 0, 0, 0, high, low] = address.segments() else {
        return None;
    };
    Some(Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low)))
}

/// Whether an address is never read, whatever the setting permits.
fn is_never_read(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [first, ..] = address.octets();
            first == 0
                || address.is_loopback()
                || address.is_link_local()
                || address.is_multicast()
                || address.is_broadcast()
                || METADATA_V4.contains(&address)
        }
        IpAddr::V6(address) => {
            translated(address).is_some_and(|reached| is_never_read(reached.into()))
                || address.is_loopback()
                || address.is_unspecified()
                || address.is_multicast()
                || address.is_unicast_link_local()
                || address == METADATA_V6
        }
    }
}

/// The URL of an endpoint, with `.svc` behind the short form of a Service's name, `name.namespace`, where that is
/// permitted: no other host can be meant then.
pub(super) fn in_full(mut url: Url, hosts: &EndpointHosts) -> Url {
    let host = url.domain().unwrap_or_default();
    let full = format!("{host}.svc");
    let is_short = host.matches('.').count() == 1 && !hosts.permit(host) && hosts.permit(&full);
    if is_short {
        // A host with a label more is one still.
        url.set_host(Some(&full)).unwrap_or_default();
    }
    url
}

pub(super) fn check_endpoint(url: &Url, hosts: &EndpointHosts) -> Result<(), PageReadError> {
    let host = url.host_str().unwrap_or_default();
    let literal: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    let why = if literal.is_some_and(is_never_read) {
        format!(
            "endpoint host {host:?} is a loopback, link-local or metadata address, which is never read; name a Service, like \
             name.namespace.svc"
        )
    } else if hosts.permit(host) {
        return Ok(());
    } else {
        format!(
            "endpoint host {host:?} is not permitted; name a Service, like name.namespace.svc, or add the host to \
             POD_AUTOSCALER_ENDPOINT_HOSTS ({hosts})"
        )
    };
    Err(PageReadError::NotPermitted(why))
}

/// Resolves names as the system does, without addresses that are never read: a permitted name may lead anywhere.
#[derive(Debug)]
pub(super) struct GuardedNames;

impl Resolve for GuardedNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let host = name.as_str();
            // Port 0 is replaced by the port of the URL.
            let found = tokio::net::lookup_host((host, 0)).await?;
            let (never, rest): (Vec<_>, Vec<_>) =
                found.partition(|address| is_never_read(address.ip()));
            if let ([first, ..], []) = (&*never, &*rest) {
                let why = format!(
                    "{host} leads to {}, which is never read; name a Service with pods behind it",
                    first.ip()
                );
                return Err(why.into());
            }
            let addresses: Addrs = Box::new(rest.into_iter());
            Ok(addresses)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_name_of_a_service_is_completed() {
        for (permitted, given, read) in [
            ("*.svc", "http://optimizer.ns:8080/m", "http://optimizer.ns.svc:8080/m"),
            ("*.svc", "http://optimizer.ns.svc:8080/m", "http://optimizer.ns.svc:8080/m"),
            ("*.svc", "http://optimizer:8080/m", "http://optimizer:8080/m"),
            ("*.svc", "http://a.b.c:8080/m", "http://a.b.c:8080/m"),
            ("*.svc", "http://10.0.0.9:8080/m", "http://10.0.0.9:8080/m"),
            ("*.svc,metrics.example", "http://metrics.example/m", "http://metrics.example/m"),
            ("metrics.example", "http://optimizer.ns/m", "http://optimizer.ns/m"),
        ] {
            let hosts = EndpointHosts::parse(permitted).unwrap();
            let url = in_full(Url::parse(given).unwrap(), &hosts);
            assert_eq!(url.as_str(), read, "{permitted}");
        }
    }

    #[test]
    fn addresses_of_this_machine_and_its_cloud_are_never_read() {
        for (address, never) in [
            ("10.0.0.9", false),
            ("192.168.1.1", false),
            ("fd00::9", false),
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("0.0.0.0", true),
            ("169.254.169.254", true),
            ("169.254.0.1", true),
            ("100.100.100.200", true),
            ("168.63.129.16", true),
            ("224.0.0.1", true),
            ("255.255.255.255", true),
            ("::1", true),
            ("::", true),
            ("fe80::1", true),
            ("fd00:ec2::254", true),
            ("::ffff:169.254.169.254", true),
            ("::ffff:10.0.0.9", false),
            ("64:ff9b::10.0.0.9", false),
            ("64:ff9b::169.254.169.254", true),
            ("64:ff9b::127.0.0.1", true),
            ("64:ff9b:1::169.254.169.254", false),
        ] {
            assert_eq!(is_never_read(address.parse().unwrap()), never, "{address}");
        }
    }

    #[test]
    fn a_permitted_host_is_read_and_another_one_names_the_setting() {
        let check = |url: &str, hosts: &str| {
            let hosts = EndpointHosts::parse(hosts).unwrap();
            check_endpoint(&Url::parse(url).unwrap(), &hosts).map_err(|error| error.to_string())
        };
        let services = "*.svc,*.svc.cluster.local";
        assert_eq!(check("http://optimizer.ns.svc:8080/", services), Ok(()));
        assert_eq!(check("http://10.0.0.9:8080/", "10.0.0.9"), Ok(()));
        assert_eq!(
            check("http://evil.example/", services).unwrap_err(),
            "endpoint host \"evil.example\" is not permitted; name a Service, like name.namespace.svc, or add the \
             host to POD_AUTOSCALER_ENDPOINT_HOSTS (*.svc,*.svc.cluster.local)"
        );
        for url in [
            "http://169.254.169.254/latest",
            "http://[::1]:1/",
            "http://127.1/",
            "http://0x7f000001/",
            "http://2130706433/",
        ] {
            let refused = check(url, "*").unwrap_err();
            assert!(refused.contains("never read"), "{url}: {refused}");
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_to_this_machine_has_no_address() {
        let name: Name = "localhost".parse().unwrap();
        let Err(refused) = GuardedNames.resolve(name).await else { panic!("localhost is read") };
        assert!(refused.to_string().contains("never read"), "{refused}");
    }
}
