//! Work that goes on meanwhile.

use tokio::task::JoinHandle;

/// Goes on until it is dropped.
pub(crate) struct Background(JoinHandle<()>);

impl Background {
    pub(crate) fn start(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(work))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.0.abort();
    }
}
