//! The version of this build.

/// The version of the package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit, where the build is given one in `WVA_COMMIT`; otherwise empty.
pub const COMMIT: &str = match option_env!("WVA_COMMIT") {
    Some(commit) => commit,
    None => "",
};

/// The version, and the commit where the build states one: `0.1.0 (9e394d1)`.
pub fn shown() -> String {
    if COMMIT.is_empty() { VERSION.to_owned() } else { format!("{VERSION} ({COMMIT})") }
}
