//! Small files that are renewed from outside, like tokens and certificates.

use std::io;
use std::path::Path;

/// Reads a file of at most so many bytes.
pub(crate) async fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let about = tokio::fs::metadata(path).await?;
    if !about.is_file() || about.len() > most {
        let problem = format!("it is not a file of at most {most} bytes");
        return Err(io::Error::other(problem));
    }
    tokio::fs::read(path).await
}
