//! The page of findings is made from the table of codes.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::said;
use crate::doctor::finding::{FindingCode, FindingGroup};

const INTRODUCTION: &str = "\
# Findings

<!-- Made from src/doctor/finding.rs by src/doctor/tests/page.rs. Do not edit: run the tests with UPDATE=1. -->

`wva doctor` names what keeps the controller from working, from a kubeconfig or in a pod:

```text
wva doctor
wva doctor --namespace llm-d --variant llama-8b --output json
wva doctor --pre --prometheus http://localhost:9090
wva doctor --files config/samples
wva doctor --wait 2m
```

| exit code | meaning |
|---|---|
| 0 | everything is fine |
| 1 | findings, of any severity |
| 2 | no finding, and something could not be looked at; the API server does not answer, a folder holds no manifest, or the command line is wrong |

`√` is fine, `×` an error, `‼` a warning, `?` something that could not be looked at. Codes keep their meaning. In a remedy
`{namespace}`, `{name}` and `{kind}` are those of the object, `{value}` is that of the finding; `{target}`, `{target_kind}` and
`{target_version}` are those of `scaleTargetRef`. A code without a command has the remedy

```text
kubectl edit {kind} {name} --namespace {namespace}
```

`wva doctor` changes nothing. It reads objects, runs the queries of scalers, and reviews rights of the controller and scalers.
Outside of the cluster it reaches Prometheus through the API server (`get services/proxy`), or at `--prometheus`. A refusal of
Prometheus is a finding in a pod of the controller alone.

With `--pre`, before an installation, old definitions are findings, missing ones are not: the chart brings them.

With `--files`:

- What is missing from manifests is no finding. The remedy is an edit of the named file.
- A modelID is compared with the arguments of its target; thresholds are judged without the controller too.
- Files may hold alternatives. Costs, where targets are read, and scalers of one target are compared within one file; two claims
  of one target, and a scaler with its variant, across files.
- A patch that a `kustomization.yaml` names may lack required fields.
- Templates, and files that are no manifests, are listed as *not read* (in JSON `notRead`).
- Of a key that stands twice the last value counts, and its schema is judged once it stands once.

*Without a controller* (in JSON `outages`) has the replicas of each target that KEDA scales by one count alone, once no controller
answers: those of the fallback within the bounds of the HPA, or those that exist.

*Notes on settings* (in JSON `notes`) have what is accepted and does not act, like a threshold that nothing reads. They are
no findings.
";

/// The remedy of a code whose section has no command.
const EDIT: &str = "kubectl edit {kind} {name} --namespace {namespace}";

fn page() -> String {
    let said = said::by_code();
    let mut page = INTRODUCTION.to_owned() + &said::section();
    for group in FindingGroup::ALL {
        write!(page, "\n## {}\n", group.as_str()).unwrap();
        let all = FindingCode::ALL.into_iter();
        for code in all.filter(|code| code.spec().group == group) {
            let spec = code.spec();
            let (id, severity) = (code.id(), spec.severity.as_str());
            let said: String = said
                .get(&code)
                .into_iter()
                .flatten()
                .fold(String::new(), |said, one| said + ", " + one);
            let (title, meaning) = (spec.title, spec.meaning);
            writeln!(page, "\n### {id}\n\n{severity}{said}: **{title}**. {meaning}").unwrap();
            if spec.remedy != EDIT {
                write!(page, "\n```text\n{}\n```\n", spec.remedy).unwrap();
            }
        }
    }
    page
}

#[test]
fn the_page_in_the_repository_has_every_code() {
    assert!(INTRODUCTION.contains(EDIT));
    crate::docs::check("docs/user-guide/findings.md", &page());
}

#[test]
fn codes_are_unique_and_in_the_order_of_their_groups() {
    let numbers: Vec<u16> = FindingCode::ALL.map(|code| code.spec().number).to_vec();
    assert!(numbers.is_sorted());
    let unique: BTreeSet<u16> = numbers.iter().copied().collect();
    assert_eq!(unique.len(), numbers.len());
    let groups = FindingCode::ALL.map(|code| code.spec().group);
    assert!(groups.is_sorted());
    assert_eq!(FindingCode::VariantKindMissing.id(), "WVA001");
}
