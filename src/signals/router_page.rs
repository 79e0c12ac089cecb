//! Reads off the metrics page of a router how many requests it holds for each model, while the page
//! arrives: of a page of any size no more than the queues is kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::exposition::{InvalidPage, labels, line, name};
use super::page_lines::{PageFault, PageLines};
use super::sources::{RouterSource, router_queue};

/// Longest page that is read, in bytes.
pub const PAGE_LIMIT: u64 = 64 * 1024 * 1024;
/// Most models of one page; routers themselves fold further ones together after a thousand.
const MODEL_LIMIT: usize = 10_000;

/// Requests that a router holds, by model. Not judged: a value may be no number.
pub type HeldRequests = BTreeMap<Arc<str>, f64>;

/// Why a page says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// It is no page.
    #[error(transparent)]
    Unreadable(#[from] PageFault),
    /// More models than are kept.
    #[error(
        "the page names more than {MODEL_LIMIT} models, and no more are kept; divide them among several routers"
    )]
    TooMany,
    /// It shows no queue, which is not the same as an empty one.
    #[error(
        "the page has no series {name}, nor an older name of it; switch the router's flow control on, \
         and note that there is none before the first request",
        name = router_queue().first().map_or("", |source| source.name)
    )]
    NoQueue,
}

/// A page while it arrives.
#[derive(Debug)]
pub struct PageReader {
    lines: PageLines,
    queues: Queues,
}

/// By model and place of the series among its names.
#[derive(Debug, Default)]
struct Queues(BTreeMap<Arc<str>, BTreeMap<usize, f64>>);

impl Default for PageReader {
    fn default() -> Self {
        Self { lines: PageLines::new(PAGE_LIMIT), queues: Queues::default() }
    }
}

impl PageReader {
    /// Takes the next part of the page.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<(), PageError> {
        let Self { lines, queues } = self;
        lines.feed(chunk, |line, text| queues.take(line, text))
    }

    /// What the whole page says. Of the names that the series has had, the newest counts for each
    /// model: routers show one value under several.
    pub fn finish(mut self) -> Result<HeldRequests, PageError> {
        let Self { lines, queues } = &mut self;
        lines.end_line(|line, text| queues.take(line, text))?;
        if self.queues.0.is_empty() {
            return Err(PageError::NoQueue);
        }
        let held = self.queues.0.into_iter();
        Ok(held.filter_map(|(model, values)| Some((model, *values.values().next()?))).collect())
    }
}

impl Queues {
    fn take(&mut self, number: usize, text: &str) -> Result<(), PageError> {
        let Some(sample) = line(number, text).map_err(PageFault::from)? else {
            return Ok(());
        };
        let name = name(sample.series);
        let is_it = |source: &RouterSource| source.name == name;
        let Some(place) = router_queue().iter().position(is_it) else {
            return Ok(());
        };
        let named = labels(sample.series)
            .map_err(|problem| PageFault::from(InvalidPage::at(number, text, problem)))?;
        let label = |name: &str| {
            let mut labels = named.labels.iter();
            let found = labels.find(|(label, value)| *label == name && !value.is_empty());
            found.map(|(_, value)| &**value)
        };
        // Under the requested name without a redirection.
        let Some(model) = label("target_model_name").or_else(|| label("model_name")) else {
            return Ok(());
        };
        if !self.0.contains_key(model) && self.0.len() == MODEL_LIMIT {
            return Err(PageError::TooMany);
        }
        let values = self.0.entry(Arc::from(model)).or_default();
        *values.entry(place).or_default() += sample.value;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::page_lines::LINE_LIMIT;
    use super::*;

    fn read(page: &str) -> Result<HeldRequests, PageError> {
        let mut reader = PageReader::default();
        reader.feed(page.as_bytes())?;
        reader.finish()
    }

    fn held(pairs: &[(&str, f64)]) -> HeldRequests {
        let owned = pairs.iter();
        owned.map(|(model, held)| (Arc::from(*model), *held)).collect()
    }

    const QUEUE: &str = "llm_d_epp_flow_control_queue_size";

    #[test]
    fn every_generation_says_how_many_requests_wait_for_a_model() {
        for source in router_queue() {
            let name = source.name;
            let page = format!(
                "# TYPE {name} gauge\n\
                 {name}{{fairness_id=\"a\",priority=\"0\",inference_pool=\"p\",model_name=\"m\",target_model_name=\"m\"}} 2\n\
                 {name}{{fairness_id=\"b\",priority=\"1\",inference_pool=\"p\",model_name=\"alias\",target_model_name=\"m\"}} 3 1789999990000\n\
                 {name}{{model_name=\"other\",target_model_name=\"\"}} 0\n\
                 {name}{{fairness_id=\"none\"}} 9\n\
                 go_goroutines 12\n"
            );
            assert_eq!(read(&page), Ok(held(&[("m", 5.0), ("other", 0.0)])), "{name}");
        }
    }

    #[test]
    fn a_value_shown_under_two_names_counts_once() {
        let page = format!(
            "inference_extension_flow_control_queue_size{{target_model_name=\"m\"}} 7\n\
             {QUEUE}{{target_model_name=\"m\"}} 4"
        );
        assert_eq!(read(&page), Ok(held(&[("m", 4.0)])));
    }

    #[test]
    fn no_queue_is_not_an_empty_one() {
        let empty = read(&format!("{QUEUE}{{model_name=\"m\"}} 0\n"));
        assert_eq!(empty, Ok(held(&[("m", 0.0)])));
        let without = read("inference_pool_ready_pods{name=\"p\"} 0\n").unwrap_err();
        assert_eq!(without, PageError::NoQueue);
        assert!(without.to_string().contains(QUEUE), "{without}");
        assert_eq!(read(""), Err(PageError::NoQueue));
    }

    #[test]
    fn a_page_that_breaks_anywhere_says_nothing() {
        let good = format!("{QUEUE}{{model_name=\"m\"}} 3\n");
        for (bad, part) in [
            ("<html>\n", "line 2"),
            ("x{a=\"1\"} many\n", "its value is no number"),
            ("x{a=\"1\n", "its labels do not end"),
        ] {
            let error = read(&format!("{good}{bad}")).unwrap_err().to_string();
            assert!(error.contains(part), "{bad}: {error}");
        }
        let mut reader = PageReader::default();
        reader.feed(good.as_bytes()).unwrap();
        reader.feed(b"# \xff").unwrap();
        let fault = PageFault::NotText { line: 2 };
        assert_eq!(reader.finish(), Err(PageError::Unreadable(fault)));
    }

    #[test]
    fn parts_of_any_size_are_the_whole() {
        let page =
            format!("# é\n{QUEUE}{{model_name=\"é\\n\"}} 3\r\n\n{QUEUE}{{model_name=\"n\"}} NaN");
        for size in 1..page.len() {
            let mut reader = PageReader::default();
            for chunk in page.as_bytes().chunks(size) {
                reader.feed(chunk).unwrap();
            }
            let found = reader.finish().unwrap();
            assert!((found["é\n"] - 3.0).abs() < f64::EPSILON, "{size}");
            assert!(found["n"].is_nan(), "{size}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let long = vec![b'#'; LINE_LIMIT + 1];
        let error = PageReader::default().feed(&long).unwrap_err();
        let fault = PageFault::LongLine { line: 1 };
        assert_eq!(error, PageError::Unreadable(fault));

        let mut reader = PageReader::default();
        let line = [b"#".repeat(LINE_LIMIT - 1), b"\n".to_vec()].concat();
        let mut fits = 0_u64;
        let error = loop {
            match reader.feed(&line) {
                Ok(()) => fits += 1,
                Err(error) => break error,
            }
        };
        let fault = PageFault::TooLarge { limit: PAGE_LIMIT };
        assert_eq!((error, fits), (PageError::Unreadable(fault), 1024));

        let models = |count: usize| -> String {
            let lines = (0..count).map(|model| format!("{QUEUE}{{model_name=\"{model}\"}} 1\n"));
            lines.collect()
        };
        assert_eq!(read(&models(MODEL_LIMIT)).unwrap().len(), MODEL_LIMIT);
        assert_eq!(read(&models(MODEL_LIMIT + 1)), Err(PageError::TooMany));
    }
}
