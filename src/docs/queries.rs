//! How many queries a collection takes, wherever a document states it.

use std::fs;
use std::path::Path;

use crate::policy::params::RequiredSignals;
use crate::signals::published::Question;
use crate::signals::query::{HISTORY_QUERIES, MAX_QUERIES, QueryName};

#[test]
fn every_document_states_the_same_number_of_queries() {
    let most = MAX_QUERIES;
    let ownership_conflicts = Question::ALL.len();
    let by_percentages = QueryName::wanted(RequiredSignals::Saturation).count();
    assert_eq!(HISTORY_QUERIES, 1);
    let stated = [
        (
            "docs/integrations/prometheus.md",
            format!("A collection takes at most {most} queries, whatever the number of models"),
        ),
        (
            "docs/development/differences.md",
            format!("at most {most} for all models, {by_percentages} of them by percentages"),
        ),
        ("tests/vectors/corrections.yaml", format!("QRY-19: \"At most {most} queries for all")),
        (
            "docs/development/benchmarks.md",
            // Without the question that is sent only where two publish.
            format!("| at most {most} queries | {},", by_percentages + ownership_conflicts - 1),
        ),
        (
            "actors.md",
            format!(
                "| queries per collection | {most}, of these {ownership_conflicts} for who else publishes; \
                 once in a life one more"
            ),
        ),
    ];
    for (file, sentence) in stated {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let text = fs::read_to_string(path).unwrap();
        assert!(text.contains(&sentence), "{file} does not say {sentence:?}");
    }
}
