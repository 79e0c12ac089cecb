//! The page of findings is made from the table of codes.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::said;
use crate::doctor::finding::{FindingCode, FindingGroup};

const INTRODUCTION: &str = "\
# Findings

<!-- Made from src/doctor/finding.rs by src/doctor/tests/page.rs. Do not edit: run the tests with UPDATE=1. -->

`wva doctor` looks at a cluster, from a kubeconfig or in a pod, and names what keeps the controller from working:

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

`√` is fine, `×` an error, `‼` a warning, `?` something that could not be looked at. Each finding has a code that keeps
its meaning. In the remedies, `{namespace}`, `{name}` and `{kind}` are those of the object, `{value}` comes from the
finding. `{target}`, `{target_kind}` and `{target_version}` are what the variant names in `scaleTargetRef`.

It reads objects, runs the queries of scalers, and reviews the rights of the accounts of the controller and of scalers. It
changes nothing. Outside of the cluster it reaches Prometheus through the API server's proxy of Services
(`get services/proxy`), or at `--prometheus`. In a pod of the controller it asks as the controller does; only there a refusal
of Prometheus is a finding, elsewhere it is something that could not be looked at.

Of manifests (`--files`) only what stands in them is judged, not what is missing: VariantAutoscalings by their definition,
PodAutoscalers by the rules of their webhook, thresholds also without the controller, a modelID by the arguments of its target.
Files may hold alternatives, so costs of variants and scalers of one target are compared within one file; that two variants or
PodAutoscalers claim one target is found across files. A file that a `kustomization.yaml` names as a patch may leave out
required fields. Templates, and files that are no manifests, are listed as *not read* (in JSON `notRead`), which is no finding.
The remedy is an edit of the file that a finding names. Of a key that stands twice the last value counts, and its schema is
judged once it stands once.

The controller finds by itself, once a cycle, what its watches and its last collection show. `wva_findings` has these
codes with namespace and name, and the alert `WVAFinding` reads it. [Where each is said](#where-each-is-said) has a table.

*Without a controller* (in JSON `outages`) has the replicas of each target that KEDA scales by one count alone, once no controller
answers: those of the fallback within the bounds of the HPA, or those that exist.

*Notes on settings* (in JSON `notes`) has what is accepted and does not act, like a threshold that nothing reads. A note is no
finding.
";

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for group in FindingGroup::ALL {
        write!(page, "\n## {}\n", group.as_str()).unwrap();
        let all = FindingCode::ALL.into_iter();
        for code in all.filter(|code| code.spec().group == group) {
            let spec = code.spec();
            write!(
                page,
                "\n### {}\n\n{}: **{}**. {}\n\n```text\n{}\n```\n",
                code.id(),
                spec.severity.as_str(),
                spec.title,
                spec.meaning,
                spec.remedy
            )
            .unwrap();
        }
    }
    page + &said::section()
}

#[test]
fn the_page_in_the_repository_has_every_code() {
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
