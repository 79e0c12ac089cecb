//! The one binary: installs the crypto provider, reads arguments and environment, dispatches.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Both TLS clients (Kubernetes and Prometheus) share one provider; a second installation is
    // refused and means that it is there already.
    drop(rustls::crypto::ring::default_provider().install_default());
    let arguments = wva::cli::command_line(std::env::args());
    let environment: std::collections::BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    wva::cli::run(&arguments, environment)
}
