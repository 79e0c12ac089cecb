//! Text from outside, bounded for a message.

use std::fmt;

/// A text for a terminal: its control characters are escaped, other than line ends.
pub fn printable(text: &str) -> String {
    let mut printed = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() && letter != '\n' {
            printed.extend(letter.escape_default());
        } else {
            printed.push(letter);
        }
    }
    printed
}

/// At most 120 letters of a text.
pub fn shortened(text: &str) -> String {
    bounded(text, 120)
}

/// At most so many letters of a text.
pub fn bounded(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => {
            let start = text.get(..end).unwrap_or_default();
            format!("{start}…")
        }
    }
}

/// A count with its noun, as in `1 pod` and `2 pods`.
pub fn counted<N: fmt::Display + From<u8> + PartialEq + Copy>(count: N, noun: &str) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// How many names a text lists before it counts the rest.
pub const LISTED: usize = 5;

/// The first names of a list, and how many others there are.
pub fn listed<T: fmt::Display>(items: &[T]) -> impl fmt::Display {
    fmt::from_fn(move |f| {
        for (position, item) in items.iter().take(LISTED).enumerate() {
            let separator = if position == 0 { "" } else { ", " };
            write!(f, "{separator}{item}")?;
        }
        match items.len().saturating_sub(LISTED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    })
}

/// The lines of a table, with columns as wide as their widest cell.
pub fn aligned<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> impl Iterator<Item = String> {
    let mut widths = [0; COLUMNS];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    rows.iter().map(move |row| {
        let cells = row.iter().zip(widths);
        let padded = cells.map(|(cell, width)| format!("{cell:width$}  "));
        padded.collect()
    })
}

/// Larger numbers are written in powers of ten: a message with all their digits loses its other words.
const LARGE: f64 = 1e15;

/// A number in as few digits as name it.
pub fn number(value: f64) -> String {
    let is_small = value != 0.0 && value.abs() < LARGE.recip();
    if is_small || value.abs() > LARGE { format!("{value:e}") } else { value.to_string() }
}

/// A number with so many decimals.
pub fn decimal(value: f64, places: usize) -> String {
    if value.abs() > LARGE { format!("{value:e}") } else { format!("{value:.places$}") }
}

#[cfg(test)]
mod tests {
    use super::{bounded, counted, decimal, listed, number};

    #[test]
    fn a_text_is_cut_between_letters() {
        assert_eq!(bounded("größer", 3), "grö…");
        assert_eq!(bounded("größer", 6), "größer");
    }

    #[test]
    fn one_thing_is_no_plural() {
        assert_eq!(counted(0_usize, "pod"), "0 pods");
        assert_eq!(counted(1_usize, "pod"), "1 pod");
        assert_eq!(counted(1_i64, "replica"), "1 replica");
        assert_eq!(counted(21_u32, "pod"), "21 pods");
    }

    #[test]
    fn a_list_names_five_and_counts_the_rest() {
        let list = |count: usize| listed(&[1, 2, 3, 4, 5, 6, 7][..count]).to_string();
        assert_eq!(list(0), "");
        assert_eq!(list(5), "1, 2, 3, 4, 5");
        assert_eq!(list(7), "1, 2, 3, 4, 5 and 2 more");
    }

    #[test]
    fn no_number_is_long() {
        assert_eq!(number(0.5), "0.5");
        assert_eq!(number(-3.0), "-3");
        assert_eq!(number(0.0), "0");
        assert_eq!(number(1e308), "1e308");
        assert_eq!(number(-2.5e-300), "-2.5e-300");
        assert_eq!(number(f64::NAN), "NaN");
        assert_eq!(decimal(1.5, 2), "1.50");
        assert_eq!(decimal(-1e-9, 1), "-0.0");
        assert_eq!(decimal(-1e308, 2), "-1e308");
        assert_eq!(decimal(f64::INFINITY, 1), "inf");
    }
}
