//! Every setting, as the program prints it for a fixed environment.

use std::process::Command;

use super::is_golden;

/// Keys of each kind: an address, a name, a secret, a length of time, a switch and numbers.
const ENVIRONMENT: [(&str, &str); 8] = [
    ("CONTROLLER_INSTANCE", "blue"),
    ("GLOBAL_OPT_INTERVAL", "30s"),
    ("POD_NAME", "wva-0"),
    ("POD_NAMESPACE", "wva-system"),
    ("PROMETHEUS_BASE_URL", "https://prometheus.monitoring:9090"),
    ("PROMETHEUS_BEARER_TOKEN", "hidden"),
    ("WVA_LIMITED_MODE", "true"),
    ("WVA_SCALE_TO_ZERO", "true"),
];

#[test]
fn printed_settings() {
    let output = Command::new(env!("CARGO_BIN_EXE_wva-sim"))
        .args(["controller", "--print-config", "--watch-namespace=serving", "-v=2"])
        .env_clear()
        .envs(ENVIRONMENT)
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    assert_eq!(errors, "");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("hidden"), "{text}");
    is_golden("settings.txt", &text);
}
