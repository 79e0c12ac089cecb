//! Manifests, without a cluster.

use std::path::Path;

use crate::doctor::look::files;
use crate::doctor::report::Verdict;
use crate::doctor::{FindingCode, examine};

fn samples(folder: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

#[test]
fn the_samples_have_no_finding() {
    let facts = files::read(&samples("config/samples"), None).unwrap();
    assert!(facts.variants().count() >= 5);
    let diagnosis = examine(&facts);
    assert_eq!(
        diagnosis.verdict(),
        Verdict::Fine,
        "{}",
        diagnosis.to_text()
    );
}

#[test]
fn a_broken_manifest_is_found_without_its_surroundings() {
    let folder = std::env::temp_dir().join(format!("wva-doctor-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let hpa = std::fs::read_to_string(samples("config/samples/scalers/hpa.yaml")).unwrap();
    let keda =
        std::fs::read_to_string(samples("config/samples/scalers/scaledobject.yaml")).unwrap();
    let fine = |hpa: &str, keda: &str| {
        std::fs::write(folder.join("hpa.yaml"), hpa).unwrap();
        std::fs::write(folder.join("keda.yaml"), keda).unwrap();
        let facts = files::read(&folder, None).unwrap();
        super::codes(&facts)
    };
    assert_eq!(fine(&hpa, &keda), Vec::new());
    let broken = hpa.replace(
        "stabilizationWindowSeconds: 0",
        "stabilizationWindowSeconds: 240",
    );
    assert_eq!(fine(&broken, &keda), [FindingCode::SlowScaleUp]);
    let broken = keda.replace("max by", "sum by");
    assert_eq!(fine(&hpa, &broken), [FindingCode::QueryAddsUp]);
    assert_eq!(fine("a: [", &keda), [FindingCode::VariantMalformed]);
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(files::read(&folder, None).is_err());
}
