//! The page of the chart, made from its values.

use std::fmt::Write as _;

use serde_json::Value;

use super::values::values;
use super::{CHART, is_current, text};

/// `README.md` of the chart: each value with the comment before it.
#[test]
fn the_readme_of_the_chart_is_made_from_its_values() {
    let mut page = "\
# workload-variant-autoscaler

<!-- Made from values.yaml. Do not edit: run the tests with UPDATE=1. -->

```sh
helm install workload-variant-autoscaler charts/workload-variant-autoscaler \\
  --namespace workload-variant-autoscaler-system --create-namespace \\
  --values charts/workload-variant-autoscaler/values.yaml --dry-run
```

`values-dev.yaml`, `values-original.yaml` and `values-openshift.yaml` are layered on `values.yaml` with `--values`. A key that is
not in this table is refused. Uninstalling leaves the CustomResourceDefinitions and your own objects.
Helm installs a definition of the folder `crds` where the cluster has none of that name, and never changes one: the chart is
safe where AIBrix has installed its own `podautoscalers.autoscaling.aibrix.ai`. To get the newest fields:
`kubectl apply --server-side --force-conflicts -f charts/workload-variant-autoscaler/crds`.

| Value | Default | Meaning |
|---|---|---|
"
    .to_owned();
    let source = text(&format!("{CHART}/values.yaml"));
    let values = values();
    let mut parents: Vec<(usize, String)> = Vec::new();
    let mut comment: Vec<String> = Vec::new();
    for line in source.lines() {
        let bare = line.trim_start();
        let indent = line.len() - bare.len();
        if let Some(words) = bare.strip_prefix("# ") {
            comment.push(words.to_owned());
            continue;
        }
        let key = bare.split_once(':').map(|(key, _)| key);
        let Some(key) = key.filter(|key| !key.starts_with(['-', '#'])) else {
            comment.clear();
            continue;
        };
        parents.retain(|(depth, _)| *depth < indent);
        parents.push((indent, key.to_owned()));
        let keys: Vec<&str> = parents.iter().map(|(_, key)| &**key).collect();
        let value = values.pointer(&format!("/{}", keys.join("/")));
        let is_parent = value.and_then(Value::as_object).is_some_and(|object| !object.is_empty());
        let words = std::mem::take(&mut comment).join(" ").replace('|', "\\|");
        assert!(is_parent || !words.is_empty(), "{} has no meaning", keys.join("."));
        if let Some(value) = value.filter(|_| !is_parent || !words.is_empty()) {
            let default =
                if is_parent || value.is_null() { String::new() } else { format!("`{value}`") };
            writeln!(page, "| `{}` | {default} | {words} |", keys.join(".")).unwrap();
        }
    }
    is_current(&format!("{CHART}/README.md"), &page);
}
