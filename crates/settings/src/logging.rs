//! What is logged, and in which form.

wva_base::named! {
    shown
    /// The least severe line that is written.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub enum LogLevel {
        /// Failures only.
        Error = "error",
        /// And what needs attention.
        Warn = "warn",
        /// And what happens.
        #[default]
        Info = "info",
        /// And why.
        Debug = "debug",
        /// Everything.
        Trace = "trace",
    }
}

impl LogLevel {
    /// Reads a level by name or, as the flags of other controllers do, by verbosity.
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "error" | "panic" | "fatal" => Some(Self::Error),
            "warn" | "warning" => Some(Self::Warn),
            "info" => Some(Self::Info),
            "debug" => Some(Self::Debug),
            "trace" => Some(Self::Trace),
            number => number.parse().ok().map(Self::from_verbosity),
        }
    }

    /// The level of `-v`: 0 is the usual, from 4 on everything is wanted.
    pub fn from_verbosity(verbosity: u64) -> Self {
        match verbosity {
            0 => Self::Info,
            1..4 => Self::Debug,
            _ => Self::Trace,
        }
    }
}

wva_base::named! {
    shown
    /// The form of a log line.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum LogFormatSetting {
        /// One JSON object per line.
        #[default]
        Json = "json",
        /// For people.
        Text = "text",
    }
}

impl LogFormatSetting {
    /// Reads a format; `console` is what the flags of other controllers call text.
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "json" => Some(Self::Json),
            "text" | "console" | "human" => Some(Self::Text),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_by_name_and_by_verbosity() {
        for (text, level) in [
            ("error", Some(LogLevel::Error)),
            ("WARN", Some(LogLevel::Warn)),
            ("info", Some(LogLevel::Info)),
            ("0", Some(LogLevel::Info)),
            ("1", Some(LogLevel::Debug)),
            ("debug", Some(LogLevel::Debug)),
            ("5", Some(LogLevel::Trace)),
            ("loud", None),
            ("-1", None),
            ("", None),
        ] {
            assert_eq!(LogLevel::parse(text), level, "{text}");
        }
        assert!(LogLevel::Trace > LogLevel::Error);
    }

    #[test]
    fn formats_are_read_by_name() {
        assert_eq!(LogFormatSetting::parse("console"), Some(LogFormatSetting::Text));
        assert_eq!(LogFormatSetting::parse("JSON"), Some(LogFormatSetting::Json));
        assert_eq!(LogFormatSetting::parse("xml"), None);
    }
}
