//! `wva crds`: the custom resource definitions, ready for `kubectl apply`.

use clap::Parser;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::api::{pod_autoscaler, variant_autoscaling};

/// Prints the custom resource definitions
#[derive(Debug, Parser)]
#[command(name = "crds")]
pub(super) struct CrdsFlags;

/// The YAML text of all definitions, one document each.
///
/// # Errors
/// Does not fail for the definitions that are compiled in; the error is the serialiser's.
pub(crate) fn text() -> Result<String, serde_yaml::Error> {
    let documents =
        definitions().iter().map(serde_yaml::to_string).collect::<Result<Vec<String>, _>>()?;
    Ok(documents.join("---\n"))
}

fn definitions() -> [CustomResourceDefinition; 2] {
    [variant_autoscaling::definition(), pod_autoscaler::definition()]
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use serde::Deserialize as _;

    use super::{definitions, text};

    /// Every folder that ships the definitions, a file each. `UPDATE=1` writes them.
    const FOLDERS: [&str; 2] = ["charts/workload-variant-autoscaler/crds", "config/crd/bases"];

    #[test]
    fn shipped_copies_are_what_the_command_prints() {
        let update = std::env::var_os("UPDATE").is_some();
        for definition in definitions() {
            let text = serde_yaml::to_string(&definition).unwrap();
            let spec = definition.spec;
            assert!(!spec.group.is_empty(), "a file of config/crd/bases is no definition");
            for folder in FOLDERS {
                let copy = format!("{folder}/{}_{}.yaml", spec.group, spec.names.plural);
                let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(&copy);
                if update {
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(&path, &text).unwrap();
                }
                let shipped = fs::read_to_string(&path).unwrap_or_default();
                assert!(shipped == text, "{copy} is out of date; run this test with UPDATE=1");
            }
        }
    }

    #[test]
    fn the_command_prints_one_document_for_each_definition() {
        let text = text().unwrap();
        let documents = serde_yaml::Deserializer::from_str(&text);
        let read: Vec<CustomResourceDefinition> = documents
            .map(|document| CustomResourceDefinition::deserialize(document).unwrap())
            .collect();
        assert_eq!(read, definitions());
    }
}
