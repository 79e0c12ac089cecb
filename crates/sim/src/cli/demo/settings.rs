//! ConfigMaps of a file, in place of those of the demo.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::world::ConfigMap;
use wva::doctor::look::files;
use wva::doctor::{FindingCode, examine};
use wva::settings::Sources;
use wva::settings::config_maps::ConfigMapNames;
use wva::settings::layers::resolve;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SettingsFile(pub(super) Vec<ConfigMap>);

#[derive(Debug, Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Document {
    kind: String,
    metadata: Metadata,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

pub(super) fn read(path: &str) -> Result<SettingsFile, String> {
    let wanted = |why: String| format!("a manifest of ConfigMaps: {why}");
    let text = std::fs::read_to_string(path).map_err(|error| wanted(error.to_string()))?;
    let maps = parsed(&text).map_err(wanted)?;
    // An entry that the controller refuses would leave the demo to its defaults.
    let facts = files::read(Path::new(path), None).map_err(wanted)?;
    let diagnosis = examine(&facts);
    let mut ignored = diagnosis.findings().filter(|one| one.code == FindingCode::SettingIgnored);
    match ignored.next() {
        Some(finding) => Err(wanted(finding.cause.clone())),
        None => Ok(maps),
    }
}

fn parsed(text: &str) -> Result<SettingsFile, String> {
    let names = ConfigMapNames::of(&resolve(&Sources::default(), None).values);
    let mut maps = Vec::new();
    for document in serde_yaml::Deserializer::from_str(text) {
        let read: Option<Document> =
            Option::deserialize(document).map_err(|error| error.to_string())?;
        let Some(Document { kind, metadata: Metadata { name }, data }) = read else {
            continue;
        };
        if kind != "ConfigMap" {
            return Err(format!("{kind} {name} is none"));
        }
        if names.purpose(&name).is_none() {
            return Err(format!("the controller of the demo reads no ConfigMap {name:?}"));
        }
        // Names and keys live as long as the process: the file is read once.
        let data = data.into_iter().map(|(key, value)| (&*key.leak(), value));
        maps.push(ConfigMap { name: name.leak(), data: data.collect() });
    }
    if maps.is_empty() {
        return Err("it has none".to_owned());
    }
    Ok(SettingsFile(maps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_the_controller_refuses_is_named() {
        let path = std::env::temp_dir().join(format!("wva-demo-{}.yaml", std::process::id()));
        let place = path.display().to_string();
        let read_entry = |entry: &str| {
            let text = format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: wva-saturation-scaling-config}}\ndata: {{default: '{entry}'}}\n"
            );
            std::fs::write(&path, text).unwrap();
            read(&place)
        };
        assert!(read_entry("{analyzerName: slo, scaleUpThreshold: 0.6}").is_ok());
        let error = read_entry("{analyzerName: saturation, scaleUpThreshold: 0.6}").unwrap_err();
        let why = "scaleUpThreshold (0.60) must be > scaleDownBoundary (0.70)";
        assert!(error.contains(why), "{error}");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn config_maps_are_read_and_others_refused() {
        let thresholds = "kind: ConfigMap\nmetadata: {name: wva-saturation-scaling-config}\ndata: {default: 'analyzerName: slo'}\n";
        let SettingsFile(maps) = parsed(&format!("---\n{thresholds}---\n")).unwrap();
        let data = vec![("default", "analyzerName: slo".to_owned())];
        let name = "wva-saturation-scaling-config";
        assert_eq!(maps, [ConfigMap { name, data }]);
        for (text, why) in [
            ("", "it has none"),
            ("kind: Secret\nmetadata: {name: a}\n", "Secret a is none"),
            (
                "kind: ConfigMap\nmetadata: {name: a}\n",
                "the controller of the demo reads no ConfigMap \"a\"",
            ),
        ] {
            assert_eq!(parsed(text), Err(why.to_owned()));
        }
    }
}
