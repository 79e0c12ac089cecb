//! The events of a watch.

use std::time::Duration;

use kube::core::Status;

use super::guarded::Malformed;
use crate::cluster::client::RequestError;
use crate::cluster::mirror::ObjectKey;

/// What happened. A list is `Restarted`, then `Listed` or `Malformed` for each object, then
/// `ListDone`; what is not in it does not exist. A list that fails half-way is not finished: the
/// next `Restarted` begins again.
#[derive(Debug)]
pub enum WatchEvent<K> {
    Restarted,
    Listed(K),
    ListDone,
    /// An object was created or changed.
    Applied(K),
    Deleted(ObjectKey),
    /// An object was listed, created or changed, and cannot be read.
    Malformed(Malformed),
    /// The server answered, and nothing changed.
    Alive,
    /// The server does not serve the kind. It is asked again, and listed once it does.
    Absent {
        /// When it is asked again.
        retry_in: Duration,
    },
    /// Something went wrong; the next event comes after a delay.
    Failed {
        error: WatchError,
        retry_in: Duration,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error("list: {0}")]
    List(#[source] RequestError),
    #[error("list: the API server named no resourceVersion")]
    NoVersion,
    /// The watch could not be opened.
    #[error("watch: {0}")]
    Open(#[source] RequestError),
    #[error("watch: the API server ended it with {}: {}", .0.code, .0.message)]
    Ended(Box<Status>),
    /// The connection broke.
    #[error("watch: {0}")]
    Broken(#[source] RequestError),
    /// The stream ended long before the agreed time, as when a server or a proxy restarts.
    #[error("watch: ended by the other side after {}s", .0.as_secs())]
    Early(Duration),
    #[error("watch: silent beyond its end, the connection is taken for dead")]
    Silent,
}

impl WatchError {
    /// Whether a right is missing; the text names which.
    pub fn is_forbidden(&self) -> bool {
        match self {
            Self::List(error) | Self::Open(error) => error.code() == Some(403),
            Self::Ended(status) => status.code == 403,
            Self::NoVersion | Self::Broken(_) | Self::Early(_) | Self::Silent => false,
        }
    }
}
