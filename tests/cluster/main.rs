//! Tests against real servers: etcd, the Kubernetes API server and controllers, the scheduler, fake
//! kubelets, Prometheus and KEDA, all on loopback. `tests/run` builds the servers and runs this.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::cognitive_complexity,
    reason = "a test binary: a case is a story in order; what is unexpected ends the case, and its report goes to the terminal"
)]

mod cases;
mod harness;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Both HTTP clients are built without a cryptography of their own.
    rustls::crypto::ring::default_provider()
        .install_default()
        .expect("no other code installs a provider");
    harness::suite::run(cases::all())
}
