//! What a measured value can be.

/// Reads a signal, given its path in a set of signals, its value and its quantity.
pub(crate) type ReadSignal<'a, T, U> = &'a mut dyn FnMut(&str, T, Quantity) -> Option<U>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// 0 to 1.
    Share,
    Requests,
    Tokens,
    CacheSize,
    /// Seconds of waiting for the first token.
    Seconds,
    SecondsPerToken,
    /// Something per second.
    PerSecond,
    Bytes,
}

/// Nobody waits for a token for more seconds than this; a larger number is in milliseconds.
const MAX_SECONDS: f64 = 600.0;

/// No engine takes more seconds than this for one token; a larger number is in milliseconds.
const MAX_SECONDS_PER_TOKEN: f64 = 10.0;

/// No amount, and no rate, is larger.
const MAX_AMOUNT: f64 = 1e15;

impl Quantity {
    /// # Errors
    /// Why a value cannot be this, with the remedy.
    pub(crate) fn check(self, value: f64) -> Result<(), String> {
        if !value.is_finite() {
            return Err(format!(
                "{value} is no number to act on; leave the signal out if it is not known"
            ));
        }
        if value < 0.0 {
            return Err(format!("{value} is negative; write at least 0"));
        }
        match self {
            Self::Share if value > 1.0 => Err(format!(
                "{value} is not a share between 0 and 1; write {} for {value} %",
                (value * 1e7).round() / 1e9
            )),
            Self::Seconds | Self::SecondsPerToken if value <= 0.0 => Err(
                "0 s is no latency; leave the signal out where no token was measured".to_owned(),
            ),
            Self::Seconds if value > MAX_SECONDS => Err(format!(
                "{value} s is longer than anybody waits for a token; write {} for {value} ms",
                value / 1000.0
            )),
            Self::SecondsPerToken if value > MAX_SECONDS_PER_TOKEN => Err(format!(
                "{value} s is longer than any engine takes for one token; write {} for {value} ms",
                value / 1000.0
            )),
            Self::CacheSize if value < 1.0 || value.fract() != 0.0 => Err(format!(
                "{value} is no size of a KV cache; write a whole number of tokens, at least 1"
            )),
            _ if value > MAX_AMOUNT => Err(format!(
                "{value} {} are more than there can be; write at most {MAX_AMOUNT:e}",
                self.unit()
            )),
            _ => Ok(()),
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Share => "of 1",
            Self::Requests => "requests",
            Self::Tokens | Self::CacheSize => "tokens",
            Self::Seconds | Self::SecondsPerToken => "seconds",
            Self::PerSecond => "per second",
            Self::Bytes => "bytes",
        }
    }
}
