//! Reads the JSON of the Prometheus HTTP API from chunks, in bounded memory.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::error::{QueryError, excerpt};
use super::result::QueryResult;
use super::splitter::{Piece, SplitError, Splitter};

/// Longest text around the samples: status, error, warnings.
const MAX_ENVELOPE: usize = 64 * 1024;

/// Turns the body of one answer into samples while it arrives.
#[derive(Debug)]
pub struct Decoder {
    limit: u64,
    expected: Expected,
    received: u64,
    splitter: Splitter,
    envelope: Vec<u8>,
    result: QueryResult,
    /// The first sample that could not be read. What it means is known once the envelope is.
    unreadable: Option<String>,
}

wva_base::named! {
    /// The value of an expression.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Expected {
        /// One value of each series.
        Vector = "vector",
        /// Values of each series at several moments.
        Matrix = "matrix",
    }
}

impl Decoder {
    /// Accepts one value of each series in a body of at most `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Self::expecting(limit, Expected::Vector)
    }

    /// Accepts values of each series at several moments, each of which becomes a sample.
    pub fn of_history(limit: u64) -> Self {
        Self::expecting(limit, Expected::Matrix)
    }

    fn expecting(limit: u64, expected: Expected) -> Self {
        Self {
            limit,
            expected,
            received: 0,
            splitter: Splitter::new(),
            envelope: Vec::new(),
            result: QueryResult::default(),
            unreadable: None,
        }
    }

    /// Takes the next bytes of the body.
    ///
    /// # Errors
    /// The body exceeds its limit or cannot become an answer any more.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<(), QueryError> {
        self.received =
            self.received.saturating_add(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
        if self.received > self.limit {
            return Err(QueryError::TooLarge(self.limit));
        }
        let Self { splitter, envelope, result, unreadable, expected, .. } = self;
        splitter.feed(chunk, |piece| match piece {
            Piece::Envelope(bytes) => extend_envelope(envelope, bytes),
            Piece::Element(bytes) => {
                if unreadable.is_none()
                    && let Err(problem) = read_sample(bytes, *expected, result)
                {
                    *unreadable = Some(problem);
                }
                Ok(())
            }
        })
    }

    /// The answer, once the body has ended.
    ///
    /// # Errors
    /// The body ended too early, is not an answer of the API, or carries the server's own error.
    pub fn finish(self) -> Result<QueryResult, QueryError> {
        let envelope = Envelope::read(&self.envelope, self.received, &self.splitter)?;
        let data = envelope.data()?;
        let expected = self.expected.as_str();
        if data.result_type != expected {
            let kind = excerpt(&data.result_type);
            let problem = format!("it is a {kind} where a {expected} was expected");
            return Err(malformed(problem));
        }
        if let Some(problem) = self.unreadable {
            return Err(malformed(problem));
        }
        if !data.result.as_deref().unwrap_or_default().is_empty() {
            return Err(malformed("its result holds something other than samples"));
        }
        let mut result = self.result;
        for warning in envelope.warnings.unwrap_or_default() {
            result.warn(excerpt(&warning));
        }
        Ok(result)
    }
}

/// The text of an API error in the body of an answer that is not 200: the server's own words where
/// it is one, else the start of the body. Empty if there is nothing to show.
pub fn error_text(body: &str) -> String {
    serde_json::from_str::<Envelope>(body)
        .map_or_else(|_| excerpt(body), |envelope| envelope.error_text())
}

/// Everything but the samples.
#[derive(Debug, Deserialize)]
struct Envelope {
    status: String,
    #[serde(rename = "errorType")]
    error_type: Option<String>,
    error: Option<String>,
    warnings: Option<Vec<String>>,
    data: Option<Data>,
}

#[derive(Debug, Deserialize)]
struct Data {
    #[serde(rename = "resultType")]
    result_type: String,
    result: Option<Vec<IgnoredAny>>,
}

impl Envelope {
    /// Reads what was left around the samples of a body that has ended.
    fn read(text: &[u8], received: u64, splitter: &Splitter) -> Result<Self, QueryError> {
        let text = text.trim_ascii_start();
        let problem = match text.first() {
            None => return Err(malformed("it is empty")),
            Some(b'{') if splitter.is_complete() => match serde_json::from_slice(text) {
                Ok(envelope) => return Ok(envelope),
                Err(error) => excerpt(&error.to_string()),
            },
            Some(b'{') => format!("it breaks off after {received} bytes"),
            Some(_) => "it is not JSON".to_owned(),
        };
        let start = excerpt(&String::from_utf8_lossy(text));
        Err(malformed(format!("{problem}; it starts with {start:?}")))
    }

    fn data(&self) -> Result<&Data, QueryError> {
        if self.status != "success" {
            return Err(QueryError::BadRequest {
                status: 200,
                message: format!(": {}", self.error_text()),
            });
        }
        self.data.as_ref().ok_or_else(|| malformed("it reports success and has no data"))
    }

    fn error_text(&self) -> String {
        let kind = self.error_type.as_deref().unwrap_or("unknown");
        let text = self.error.as_deref().unwrap_or("no error text");
        excerpt(&format!("{kind}: {text}"))
    }
}

fn malformed(problem: impl Into<String>) -> QueryError {
    QueryError::Malformed(problem.into())
}

fn extend_envelope(envelope: &mut Vec<u8>, bytes: &[u8]) -> Result<(), QueryError> {
    let room = MAX_ENVELOPE.saturating_sub(envelope.len());
    envelope.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    if bytes.len() > room {
        let start = excerpt(&String::from_utf8_lossy(envelope));
        return Err(malformed(format!(
            "it has more than {MAX_ENVELOPE} bytes besides its samples; it starts with {start:?}"
        )));
    }
    Ok(())
}

impl From<SplitError> for QueryError {
    fn from(error: SplitError) -> Self {
        malformed(match error {
            SplitError::Separator => "its samples are not separated by commas",
            SplitError::LongElement => "one of its samples is absurdly long",
        })
    }
}

fn read_sample(bytes: &[u8], expected: Expected, result: &mut QueryResult) -> Result<(), String> {
    let shown = || excerpt(&String::from_utf8_lossy(bytes));
    let element: Element<'_> = serde_json::from_slice(bytes).map_err(|error| {
        // The parser may quote a text of any length.
        format!("{} in sample {}", excerpt(&error.to_string()), shown())
    })?;
    let values = match expected {
        Expected::Vector => element.value.map(|value| vec![value]),
        Expected::Matrix => element.values,
    };
    let Some(values) = values else {
        return Err(format!("no value in sample {}", shown()));
    };
    for (time, value) in values {
        // Prometheus writes NaN, +Inf and -Inf like this, which the standard library reads.
        let value: f64 = value
            .0
            .parse()
            .map_err(|error| format!("{error} {:?} in sample {}", excerpt(&value.0), shown()))?;
        let labels = element.metric.0.iter();
        result.push(labels.map(|(name, text)| (&*name.0, &*text.0)), time, value);
    }
    Ok(())
}

#[derive(Deserialize)]
struct Element<'a> {
    #[serde(borrow)]
    metric: Labels<'a>,
    #[serde(borrow)]
    value: Option<(f64, Text<'a>)>,
    #[serde(borrow)]
    values: Option<Vec<(f64, Text<'a>)>>,
}

/// A string that is copied only where it contains escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The labels of one sample, in the order of the answer.
struct Labels<'a>(Vec<(Text<'a>, Text<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Labels<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LabelsVisitor;
        impl<'de> Visitor<'de> for LabelsVisitor {
            type Value = Labels<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object of labels")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut labels = Vec::with_capacity(4);
                while let Some(label) = map.next_entry()? {
                    labels.push(label);
                }
                Ok(Labels(labels))
            }
        }
        deserializer.deserialize_map(LabelsVisitor)
    }
}
