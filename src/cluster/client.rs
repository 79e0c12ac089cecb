//! The way to the API server: one client, and a deadline on every request.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::Status;
use kube::{Client, Config};

/// Longest wait for a connection. Requests have shorter deadlines of their own.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest Retry-After that is honoured: without watches decisions rest on old objects, and without writes they
/// have no effect.
const LONGEST_ASKED: Duration = Duration::from_secs(30);

/// Where the address and the credentials of the API server come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KubeconfigSource {
    /// The environment's kubeconfig if there is one, else the pod's service account.
    Infer,
    /// A kubeconfig file.
    File {
        /// The file.
        path: PathBuf,
        /// The context to use instead of the file's own.
        context: Option<String>,
    },
}

/// Makes a client.
///
/// It never repeats a request by itself: callers know what may be repeated and how long it may
/// take, while the library's retries could hold one request for minutes. That makes it fit for
/// leases too.
pub async fn connect(source: &KubeconfigSource) -> Result<Client, ConnectError> {
    let mut config = configuration(source).await?;
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    Client::try_from(config).map_err(|error| ConnectError::Client(Box::new(error)))
}

async fn configuration(source: &KubeconfigSource) -> Result<Config, ConnectError> {
    match source {
        KubeconfigSource::Infer => {
            Config::infer().await.map_err(|error| ConnectError::Infer(error.to_string()))
        }
        KubeconfigSource::File { path, context } => {
            let refuse = |error: kube::config::KubeconfigError| ConnectError::File {
                path: path.clone(),
                why: error.to_string(),
            };
            let file = Kubeconfig::read_from(path).map_err(refuse)?;
            let options =
                KubeConfigOptions { context: context.clone(), ..KubeConfigOptions::default() };
            Config::from_custom_kubeconfig(file, &options).await.map_err(refuse)
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(
        "no way to the API server: {0}; set KUBECONFIG, or run in a pod with a service account"
    )]
    Infer(String),
    #[error("kubeconfig {path:?} cannot be used: {why}")]
    File { path: PathBuf, why: String },
    #[error("the client for the API server cannot be built: {0}")]
    Client(#[source] Box<kube::Error>),
}

/// Sends one request and waits for its answer, no longer than `deadline`.
pub(crate) async fn within<T>(
    deadline: Duration,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, RequestError> {
    match tokio::time::timeout(deadline, request).await {
        Ok(answer) => answer.map_err(RequestError::from),
        Err(_) => Err(RequestError::TimedOut { deadline }),
    }
}

/// Why a request brought no answer that can be used.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The API server answered, and declined.
    #[error("the API server answered {}: {}", .0.code, .0.message)]
    Refused(Box<Status>),
    /// No answer in time. What was asked may have been done all the same.
    #[error("the API server did not answer within {}", humantime::format_duration(*deadline))]
    TimedOut { deadline: Duration },
    /// No connection, or an answer that cannot be read. What was asked may have been done all the
    /// same.
    #[error("the API server cannot be reached: {}", causes(_0))]
    Transport(#[source] Box<kube::Error>),
}

impl From<kube::Error> for RequestError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused(status),
            error => Self::Transport(Box::new(error)),
        }
    }
}

/// An error and what caused it, down to the operating system's words, which alone
/// distinguish a refused connection from an expired certificate.
pub(crate) fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        next = cause.source();
    }
    text
}

impl RequestError {
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Refused(status) => Some(status.code),
            Self::TimedOut { .. } | Self::Transport(_) => None,
        }
    }

    /// Whether a right is missing; the text names which. Admission refuses with 403 as well: in a
    /// namespace that is going away, nothing can be created by anybody.
    pub fn is_denied(&self) -> bool {
        let Self::Refused(status) = self else {
            return false;
        };
        let details = status.details.iter();
        let mut causes = details.flat_map(|details| &details.causes);
        status.code == 403 && !causes.any(|cause| cause.reason == "NamespaceTerminating")
    }

    /// How long the request is not to be repeated, at the least: as long as the server asked for, within limits. What
    /// the server has too much of is requests of ours, so a role that can wait sends it none for so long.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(status) => status
                .details
                .as_ref()
                .map(|details| details.retry_after_seconds)
                .filter(|seconds| *seconds > 0)
                .map(|seconds| Duration::from_secs(seconds.into()).min(LONGEST_ASKED)),
            Self::TimedOut { .. } | Self::Transport(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use kube::core::Status;
    use tokio::time::Instant;

    use super::{KubeconfigSource, RequestError, connect, within};

    #[tokio::test]
    async fn a_kubeconfig_that_does_not_serve_is_named() {
        let source =
            KubeconfigSource::File { path: PathBuf::from("/nowhere/config"), context: None };
        let error = connect(&source).await.err().unwrap().to_string();
        assert!(error.starts_with("kubeconfig \"/nowhere/config\" cannot be used"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_ends_by_its_deadline() {
        let started = Instant::now();
        let answer =
            within(Duration::from_secs(5), std::future::pending::<kube::Result<()>>()).await;
        assert_eq!(started.elapsed(), Duration::from_secs(5));
        let error = answer.unwrap_err();
        assert!(matches!(error, RequestError::TimedOut { .. }), "{error:?}");
        assert_eq!(error.to_string(), "the API server did not answer within 5s");
        assert_eq!((error.code(), error.retry_after()), (None, None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_broken_connection_is_named_down_to_its_cause() {
        let broken = std::io::Error::other("certificate has expired");
        let failed = async { Err::<(), _>(kube::Error::ReadEvents(broken)) };
        let error = within(Duration::from_secs(5), failed).await.unwrap_err().to_string();
        assert!(error.starts_with("the API server cannot be reached: "), "{error}");
        assert_eq!(error.matches("certificate has expired").count(), 1, "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_keeps_its_code_and_words() {
        let status = Status::failure("unknown object", "NotFound").with_code(404);
        let refusal = async { Err::<(), _>(kube::Error::Api(Box::new(status))) };
        let error = within(Duration::from_secs(5), refusal).await.unwrap_err();
        assert_eq!(error.code(), Some(404));
        assert_eq!(error.to_string(), "the API server answered 404: unknown object");
    }
}
