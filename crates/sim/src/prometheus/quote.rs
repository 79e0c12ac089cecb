//! Strings in double quotes, as PromQL and the errors of Prometheus write them.

use std::fmt::{self, Display, Formatter, Write};

/// A string between double quotes.
#[derive(Debug)]
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, text: &mut Formatter<'_>) -> fmt::Result {
        text.write_char('"')?;
        for letter in self.0.chars() {
            match letter {
                '"' => text.write_str("\\\"")?,
                '\\' => text.write_str("\\\\")?,
                '\n' => text.write_str("\\n")?,
                '\r' => text.write_str("\\r")?,
                '\t' => text.write_str("\\t")?,
                control if control.is_control() => write!(text, "\\x{:02x}", u32::from(control))?,
                other => text.write_char(other)?,
            }
        }
        text.write_char('"')
    }
}
