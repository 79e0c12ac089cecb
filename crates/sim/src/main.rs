//! The simulated cluster as a program: installs the crypto provider, reads arguments and environment, dispatches.

use std::process::ExitCode;

/// Chaos asks what each controller holds.
#[global_allocator]
static ALLOCATOR: allocations::Counting<mimalloc::MiMalloc> =
    allocations::Counting(mimalloc::MiMalloc);

fn main() -> ExitCode {
    // A second installation is refused and means that it is there already.
    drop(rustls::crypto::ring::default_provider().install_default());
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let environment: std::collections::BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    wva_sim::cli::run(&arguments, environment)
}
