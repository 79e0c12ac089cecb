//! Loopback ports for servers that take a number and cannot be handed an open socket.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

use super::fault::{Fault, Result};

/// Below the range from which the kernel draws the ports of outgoing connections (32768 and up by
/// default): a port from there could be taken by any client between our look and the server's bind.
const LOWEST: u16 = 20_000;
const DEFAULT_HIGHEST: u16 = 32_767;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// A port of 127.0.0.1 without a listener, and that this process has not handed out before.
pub(crate) fn free() -> Result<u16> {
    let span = highest() - LOWEST;
    let start = u16::try_from(std::process::id() % u32::from(span))?;
    for _ in 0..span {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let offset = (u32::from(start) * 37 + u32::from(step)) % u32::from(span);
        let port = LOWEST + u16::try_from(offset)?;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(Fault::new(format!("no free port between {LOWEST} and {}", LOWEST + span)))
}

fn highest() -> u16 {
    fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|range| range.split_whitespace().next()?.parse::<u16>().ok())
        .map(|lowest_of_clients| lowest_of_clients.saturating_sub(1))
        .filter(|highest| *highest > LOWEST + 1_000)
        .unwrap_or(DEFAULT_HIGHEST)
}
