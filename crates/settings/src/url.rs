//! The address of Prometheus: checked, and shown without the credentials that it may carry.

use std::fmt;

use super::secret::MASK;

/// An `http` or `https` URL with a host, without query, fragment and trailing slash.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl {
    text: String,
    has_tls: bool,
}

impl BaseUrl {
    /// # Errors
    /// Says what is missing or too much, without repeating the text.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let trimmed = text.trim_end_matches('/');
        let uri: http::Uri = trimmed.parse().map_err(|_invalid| "it is not a URL")?;
        let has_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err("it does not start with https:// or http://"),
        };
        if uri.host().is_none_or(str::is_empty) {
            return Err("it names no host");
        }
        if uri.query().is_some() || trimmed.contains('#') {
            return Err("a base URL has neither a query nor a fragment");
        }
        Ok(Self { text: trimmed.to_owned(), has_tls })
    }

    /// The URL itself, credentials included.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// Whether the server is spoken to over TLS, by `https`.
    pub fn has_tls(&self) -> bool {
        self.has_tls
    }

    /// Whether a user name or a password is part of it.
    pub fn has_credentials(&self) -> bool {
        self.text.contains('@')
    }
}

wva_base::display_of! { BaseUrl: Self { text, .. } => "{}", mask_url(text); }

impl fmt::Debug for BaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", mask_url(&self.text))
    }
}

/// Hides what may be a credential in a text that was meant to be a URL: everything up to the last
/// `@`, and everything after a `?`. It also works on texts that no URL parser accepts.
pub fn mask_url(text: &str) -> String {
    let (address, query) = match text.split_once('?') {
        Some((address, _)) => (address, "?****"),
        None => (text, ""),
    };
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), address),
    };
    match text.rsplit_once('@') {
        // A question mark inside a password: the host is what follows the last `@`.
        Some((_, host)) => {
            let host = host.split_once('?').map_or(host, |(host, _)| host);
            format!("{scheme}{MASK}@{host}{query}")
        }
        None => format!("{scheme}{rest}{query}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_checked_and_trimmed() {
        let url = BaseUrl::parse("https://user:pw@prom.example:9090/api/").unwrap();
        assert_eq!(url.expose(), "https://user:pw@prom.example:9090/api");
        assert_eq!(
            format!("{url} {url:?}"),
            "https://****@prom.example:9090/api \"https://****@prom.example:9090/api\""
        );
        assert!(url.has_credentials());
        assert!(url.has_tls());
        let plain = BaseUrl::parse("http://127.0.0.1:9090").unwrap();
        assert!(!plain.has_tls() && !plain.has_credentials());
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "prom:9090",
            "ftp://prom",
            "https://",
            "https:// prom",
            "https://prom?x=1",
            "https://prom#x",
            "/api",
        ] {
            assert!(BaseUrl::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn credentials_are_hidden_in_any_text() {
        for (text, shown) in [
            ("https://prom:9090", "https://prom:9090"),
            ("https://u:p@prom/x", "https://****@prom/x"),
            ("https://u:p/q@prom", "https://****@prom"),
            ("https://u:p?q@prom", "https://****@prom?****"),
            ("https://prom?token=x", "https://prom?****"),
            ("u:p@prom", "****@prom"),
            ("htp:/u:p@prom", "****@prom"),
        ] {
            assert_eq!(mask_url(text), shown, "{text}");
        }
    }
}
