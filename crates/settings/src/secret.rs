//! Texts that must not reach a log, an event or a screen.

use std::fmt;

/// What is shown instead.
pub const MASK: &str = "****";

/// A text that prints as a mask.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

wva_base::display_of! { Secret: Self(text) => "{}", if text.is_empty() { "" } else { MASK }; }

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn a_secret_is_visible_only_where_it_is_asked_for() {
        let token = Secret::new("s3cret");
        assert_eq!(token.expose(), "s3cret");
        assert_eq!(format!("{token} {token:?}"), "**** \"****\"");
        assert_eq!(Secret::default().to_string(), "");
    }
}
