//! Talking to servers on loopback.

use super::fault::Result;

/// A client that no proxy variable of the caller's environment can lead astray.
pub(crate) fn client() -> Result<reqwest::Client> {
    Ok(reqwest::Client::builder().no_proxy().build()?)
}
