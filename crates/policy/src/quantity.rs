//! What a measured value can be.

use wva_base::text::number;

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

/// No client waits for a token for more seconds than this; a larger number is in milliseconds.
const MAX_SECONDS: f64 = 600.0;

/// No engine takes more seconds than this for one token; a larger number is in milliseconds.
const MAX_SECONDS_PER_TOKEN: f64 = 10.0;

/// No amount, and no rate, is larger.
const MAX_AMOUNT: f64 = 1e15;

impl Quantity {
    pub(crate) fn check(self, value: f64) -> Result<(), String> {
        let shown = number(value);
        if !value.is_finite() {
            return Err(format!(
                "{shown} is no number to act on; leave the signal out if it is not known"
            ));
        }
        if value < 0.0 {
            return Err(format!("{shown} is negative; write at least 0"));
        }
        match self {
            Self::Share if value > 100.0 => {
                Err(format!("{shown} is not a share between 0 and 1; write for example 0.5"))
            }
            Self::Share if value > 1.0 => Err(format!(
                "{shown} is not a share between 0 and 1; write {} for {shown} %",
                (value * 1e7).round() / 1e9
            )),
            Self::Seconds | Self::SecondsPerToken if value <= 0.0 => {
                Err("0 s is no latency; leave the signal out where no token was measured"
                    .to_owned())
            }
            Self::Seconds if value > MAX_SECONDS => Err(format!(
                "{shown} s is longer than anybody waits for a token; write {}",
                seconds(value, MAX_SECONDS)
            )),
            Self::SecondsPerToken if value > MAX_SECONDS_PER_TOKEN => Err(format!(
                "{shown} s is longer than any engine takes for one token; write {}",
                seconds(value, MAX_SECONDS_PER_TOKEN)
            )),
            Self::CacheSize if value < 1.0 || value.fract() != 0.0 => Err(format!(
                "{shown} is no size of a KV cache; write a whole number of tokens, at least 1"
            )),
            _ if value > MAX_AMOUNT => Err(format!(
                "{shown} {} are more than there can be; write at most {MAX_AMOUNT:e}",
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

/// What to write for seconds that are too many: they are milliseconds, where those can be.
fn seconds(value: f64, most: f64) -> String {
    if value / 1000.0 > most {
        format!("at most {most}")
    } else {
        format!("{} for {value} ms", value / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Quantity;

    #[test]
    fn no_value_is_advised_that_is_refused() {
        let advice = |quantity: Quantity, value: f64| {
            let why = quantity.check(value).unwrap_err();
            why.rsplit("; ").next().unwrap_or_default().to_owned()
        };
        assert_eq!(Quantity::Share.check(1.0), Ok(()));
        assert_eq!(advice(Quantity::Share, 100.0), "write 1 for 100 %");
        assert_eq!(advice(Quantity::Share, 1e15), "write for example 0.5");
        assert_eq!(Quantity::Seconds.check(600.0), Ok(()));
        assert_eq!(advice(Quantity::Seconds, 6e5), "write 600 for 600000 ms");
        assert_eq!(advice(Quantity::Seconds, 1e308), "write at most 600");
        assert_eq!(advice(Quantity::SecondsPerToken, 1e5), "write at most 10");
    }

    #[test]
    fn a_value_is_quoted_in_few_digits() {
        let why = Quantity::Requests.check(1e308).unwrap_err();
        let expected = "1e308 requests are more than there can be; write at most 1e15";
        assert_eq!(why, expected);
    }
}
