//! Why a query brought no answer, with the remedy for an operator.

use std::time::Duration;

/// Longest excerpt of foreign text in an error.
const EXCERPT: usize = 200;

/// A query that failed. No variant ever holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// No connection, or it broke before an answer began; with what the connection said.
    #[error(
        "Prometheus cannot be reached ({0}); check PROMETHEUS_BASE_URL, the Service behind it and network policies"
    )]
    Unreachable(String),
    /// No complete answer in this time.
    #[error(
        "Prometheus did not answer within {0:?}; it is overloaded or cut off, or GLOBAL_OPT_INTERVAL, which the deadline follows from, is too short"
    )]
    Timeout(Duration),
    /// The TLS handshake failed; with what it said.
    #[error(
        "no TLS connection to Prometheus ({0}); check PROMETHEUS_CA_CERT_PATH, PROMETHEUS_SERVER_NAME and, if the server requires one, the client certificate"
    )]
    Tls(String),
    /// What answered does not speak TLS; with what the handshake said.
    #[error(
        "Prometheus does not answer with TLS ({0}); if it serves plain HTTP, write http:// in PROMETHEUS_BASE_URL and set PROMETHEUS_ALLOW_HTTP to true"
    )]
    NotTls(String),
    /// A token, key or certificate file cannot be used: which file, which setting, what is wrong. It is read again for
    /// the next query.
    #[error("{0}")]
    Credentials(String),
    /// HTTP 401, with what the server said after a separator, or nothing.
    #[error(
        "Prometheus does not accept the credentials of the controller (HTTP 401{0}); set PROMETHEUS_BEARER_TOKEN or PROMETHEUS_TOKEN_PATH to a valid token"
    )]
    Unauthorized(String),
    /// HTTP 403, likewise.
    #[error(
        "Prometheus accepts the credentials of the controller and refuses the query (HTTP 403{0}); grant the service account the right to read metrics"
    )]
    Forbidden(String),
    /// The server understood the request and rejected the query.
    #[error("Prometheus rejected the query (HTTP {status}{message})")]
    BadRequest {
        /// HTTP status.
        status: u16,
        /// Type and text of the error, with a leading separator, or nothing.
        message: String,
    },
    /// A status that the Prometheus API does not use: redirects, 404 and the like.
    #[error(
        "HTTP {status} is not an answer of the Prometheus API{detail}; check that PROMETHEUS_BASE_URL names the server itself, with the path prefix it is served under and without /api/v1"
    )]
    UnexpectedStatus {
        /// HTTP status.
        status: u16,
        /// What the server said, with a leading separator, or nothing.
        detail: String,
    },
    /// The answer exceeds this limit, in bytes.
    #[error(
        "the answer of Prometheus exceeds {0} bytes; limit the controller to one namespace with WATCH_NAMESPACE or divide the fleet among several controllers"
    )]
    TooLarge(u64),
    /// More samples than may be held, `PROMETHEUS_METRICS_CACHE_MAX_SIZE`; the signals that come later in the table do
    /// not fit.
    #[error(
        "with this query more than {0} samples would be held; raise PROMETHEUS_METRICS_CACHE_MAX_SIZE, or limit the controller to one namespace with WATCH_NAMESPACE"
    )]
    TooMany(u64),
    /// The answer is not what the API promises; with what is wrong with it.
    #[error(
        "the answer is not one of the Prometheus API ({0}); check what PROMETHEUS_BASE_URL points at"
    )]
    Malformed(String),
    /// HTTP 5xx, or 429.
    #[error(
        "Prometheus failed or is overloaded (HTTP {status}{message}); see its own log and load"
    )]
    ServerError {
        /// HTTP status.
        status: u16,
        /// What the server said, with a leading separator, or nothing.
        message: String,
    },
}

impl QueryError {
    /// A bounded word for metric labels.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "unreachable",
            Self::Timeout { .. } => "timeout",
            Self::Tls { .. } | Self::NotTls { .. } => "tls",
            Self::Credentials { .. } => "credentials",
            Self::Unauthorized { .. } => "unauthorized",
            Self::Forbidden { .. } => "forbidden",
            Self::BadRequest { .. } => "bad_request",
            Self::UnexpectedStatus { .. } => "unexpected_status",
            Self::TooLarge { .. } => "too_large",
            Self::TooMany { .. } => "too_many_samples",
            Self::Malformed { .. } => "malformed",
            Self::ServerError { .. } => "server_error",
        }
    }

    /// The error of a status other than 200, with what the server said about it.
    pub(super) fn of_status(status: u16, said: &str) -> Self {
        let said = if said.is_empty() { String::new() } else { format!(": {said}") };
        match status {
            401 => Self::Unauthorized(said),
            403 => Self::Forbidden(said),
            400 | 422 => Self::BadRequest { status, message: said },
            429 | 500..=599 => Self::ServerError { status, message: said },
            _ => Self::UnexpectedStatus { status, detail: said },
        }
    }
}

/// A short printable piece of text from outside: one line, bounded.
pub(super) fn excerpt(text: &str) -> String {
    let words = text
        .split(|character: char| character.is_whitespace() || character.is_control())
        .filter(|word| !word.is_empty());
    let mut excerpt = String::new();
    for word in words {
        if !excerpt.is_empty() {
            excerpt.push(' ');
        }
        excerpt.extend(word.chars().take(EXCERPT + 1));
        if excerpt.len() > EXCERPT {
            let end = excerpt.floor_char_boundary(EXCERPT);
            excerpt.truncate(end);
            excerpt.push('\u{2026}');
            break;
        }
    }
    excerpt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_one_bounded_line() {
        assert_eq!(excerpt("  a\n\tb\u{0}c  "), "a b c");
        assert_eq!(excerpt(""), "");
        let long = excerpt(&"x".repeat(10_000));
        assert_eq!(long.chars().count(), 201);
        assert!(long.ends_with('\u{2026}'));
        let wide = excerpt(&"\u{1f600}".repeat(10_000));
        assert!(wide.len() <= 200 + '\u{2026}'.len_utf8());
    }

    #[test]
    fn a_refusal_names_the_credentials_and_the_remedy() {
        let whose = "the credentials of the controller";
        for (status, remedy) in [
            (401, "; set PROMETHEUS_BEARER_TOKEN or PROMETHEUS_TOKEN_PATH"),
            (403, "; grant the service account the right to read metrics"),
        ] {
            let text = QueryError::of_status(status, "").to_string();
            assert!(text.contains(whose) && text.contains(remedy), "{text}");
        }
        let failed = QueryError::of_status(500, "").to_string();
        assert!(!failed.contains(whose), "{failed}");
    }

    #[test]
    fn every_status_has_its_error() {
        for (status, reason) in [
            (301, "unexpected_status"),
            (400, "bad_request"),
            (401, "unauthorized"),
            (403, "forbidden"),
            (404, "unexpected_status"),
            (422, "bad_request"),
            (429, "server_error"),
            (500, "server_error"),
            (503, "server_error"),
        ] {
            let error = QueryError::of_status(status, "why");
            assert_eq!(error.reason(), reason, "{status}");
            let text = error.to_string();
            assert!(text.contains(&format!("HTTP {status}")), "{text}");
            assert!(text.contains(": why"), "{text}");
            assert!(!QueryError::of_status(status, "").to_string().contains(": "));
        }
    }
}
