//! Numbers and names as texts.

/// Appends a formatted text to a `String`, which cannot fail.
macro_rules! put {
    ($out:ident, $($text:tt)+) => {
        ::std::fmt::Write::write_fmt(&mut $out, ::std::format_args!($($text)+)).unwrap_or_default()
    };
}

pub(super) use put;

pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            control if control.is_control() => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

pub(super) fn cell(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '|' | '\\' | '`' | '*' | '_' | '<' | '[') {
            escaped.push('\\');
        }
        escaped.push(if letter.is_control() { ' ' } else { letter });
    }
    escaped
}

/// A share as a percentage without its sign. A share below 1 never reads 100.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if share >= 1.0 {
        "100".to_owned()
    } else if percent >= 99.95 {
        format!("{:.2}", (percent * 100.0).floor() / 100.0)
    } else {
        format!("{percent:.1}")
    }
}

/// A quantity with about three digits.
pub(super) fn quantity(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        "0".to_owned()
    } else if size < 9.995 {
        format!("{value:.2}")
    } else if size < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

pub(super) fn tick(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A length of time: milliseconds below one second.
pub(super) fn seconds(value: f64) -> String {
    if value < 0.9995 {
        format!("{:.0} ms", value * 1000.0)
    } else {
        format!("{} s", quantity(value))
    }
}

pub(super) fn optional(value: Option<f64>, format: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), format)
}
