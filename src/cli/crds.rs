//! `wva crds`: the custom resource definitions, ready for `kubectl apply`.

use crate::api::variant_autoscaling;

/// The YAML text of all definitions.
///
/// # Errors
/// Does not fail for the definitions that are compiled in; the error is the serialiser's.
pub fn text() -> Result<String, serde_yaml::Error> {
    serde_yaml::to_string(&variant_autoscaling::definition())
}

#[cfg(test)]
mod tests {
    #[test]
    fn show() {
        std::fs::write("/tmp/cl/crd.yaml", super::text().unwrap()).unwrap();
    }
}
