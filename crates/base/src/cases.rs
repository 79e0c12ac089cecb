//! Tables of cases, as tests write them.

/// An array of its rows. A formatter leaves the rows as they are: one line each, where an expression would take five.
#[macro_export]
macro_rules! cases {
    ($($row:expr),+ $(,)?) => { [$($row),+] };
}
