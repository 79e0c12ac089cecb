//! Which variants Prometheus has counts of, from any publisher.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{PromApi, QueryError, QueryResult};
use crate::policy::key::VariantKey;

wva_base::named! {
    listed
    /// By the namespace that the series carries: the scraped one's own where the scrape keeps it, else the one that
    /// Prometheus puts aside.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Question {
        /// Variants with a count at all.
        Any = "count by (namespace, exported_namespace, variant_name) (wva_desired_replicas)",
        /// Variants with more than one.
        Several = "count by (namespace, exported_namespace, variant_name) (wva_desired_replicas) > 1",
    }
}

/// The variants that the answer names.
pub(crate) async fn published(
    api: &dyn PromApi,
    question: Question,
    deadline: Duration,
) -> Result<BTreeSet<VariantKey>, QueryError> {
    let answer = api.query(question.as_str(), deadline).await?;
    Ok(variants(&answer))
}

fn variants(answer: &QueryResult) -> BTreeSet<VariantKey> {
    let samples = answer.samples().filter_map(|sample| {
        let label = |name: &str| sample.label(name).filter(|text| !text.is_empty());
        let namespace = label("exported_namespace").or_else(|| label("namespace"))?;
        Some(VariantKey::new(&**namespace, &**label("variant_name")?))
    });
    samples.collect()
}

#[cfg(test)]
mod tests {
    use super::{VariantKey, variants};
    use crate::signals::QueryResult;

    #[test]
    fn the_namespace_of_the_variant_differs_from_that_of_the_controller() {
        let mut answer = QueryResult::default();
        answer.push([("namespace", "ns"), ("variant_name", "kept")], 0.0, 2.0);
        answer.push(
            [("namespace", "system"), ("exported_namespace", "ns"), ("variant_name", "aside")],
            0.0,
            2.0,
        );
        answer.push([("namespace", "ns")], 0.0, 2.0);
        answer.push([("variant_name", "nowhere")], 0.0, 2.0);
        let expected = ["aside", "kept"].map(|name| VariantKey::new("ns", name));
        assert_eq!(variants(&answer), expected.into());
    }
}
