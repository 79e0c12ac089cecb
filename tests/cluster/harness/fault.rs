//! Why a step failed, and where in the tests.

use std::error::Error;
use std::fmt;
use std::panic::Location;

/// The outcome of a step of the harness or of a case.
pub(crate) type Result<T = ()> = std::result::Result<T, Fault>;

/// A failed step: what was seen, and the line that asked for it. `?` turns every error into one.
///
/// It does not implement `Error`, which is what lets it be made from anything that does.
pub(crate) struct Fault {
    text: String,
    at: &'static Location<'static>,
    is_fatal: bool,
}

impl Fault {
    /// A fault in the harness's own words.
    #[track_caller]
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), at: Location::caller(), is_fatal: false }
    }

    /// A fault that waiting cannot mend.
    #[track_caller]
    pub(crate) fn fatal(text: impl Into<String>) -> Self {
        Self { is_fatal: true, ..Self::new(text) }
    }

    /// The same fault as seen from an outer line, with a text of that line's own.
    pub(crate) fn at(text: String, at: &'static Location<'static>) -> Self {
        Self { text, at, is_fatal: false }
    }

    /// Whether waiting cannot mend it.
    pub(crate) fn is_fatal(&self) -> bool {
        self.is_fatal
    }

    /// What was seen, without the place.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl<E: Error> From<E> for Fault {
    #[track_caller]
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            if !text.contains(&cause_text) {
                text = format!("{text}: {cause_text}");
            }
            source = cause.source();
        }
        Self::new(text)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}:{})", self.text, self.at.file(), self.at.line())
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
