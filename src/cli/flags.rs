//! Flags of the commands that play the embedded world.

/// Arguments, one after the other. A value follows its flag after `=`, or as the next argument.
pub(super) struct Flags<I> {
    command: &'static str,
    rest: I,
    last: String,
    inline: Option<String>,
}

/// An argument that is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unusable {
    #[error("unknown argument {flag:?}; wva {command} --help lists them")]
    Unknown { command: &'static str, flag: String },
    #[error("{flag} needs a value, such as {flag} {example}")]
    Missing {
        flag: &'static str,
        example: &'static str,
    },
    #[error("{flag} takes no value, and has {value:?}; leave the value out")]
    Surplus { flag: String, value: String },
    #[error("{flag} is {value:?}; give {wanted}")]
    Value {
        flag: &'static str,
        value: String,
        wanted: String,
    },
    #[error("{flag} {does}; name it with {needs}")]
    Alone {
        flag: &'static str,
        does: &'static str,
        needs: &'static str,
    },
    #[error("{one} does not go together with {other}")]
    Apart {
        one: &'static str,
        other: &'static str,
    },
}

impl<I: Iterator<Item = String>> Flags<I> {
    pub(super) fn new(command: &'static str, rest: I) -> Self {
        Self {
            command,
            rest,
            last: String::new(),
            inline: None,
        }
    }

    /// The next flag, without a value that is written with it; an error where the one before has a value and
    /// takes none.
    pub(super) fn next(&mut self) -> Result<Option<String>, Unusable> {
        if let Some(value) = self.inline.take() {
            let flag = std::mem::take(&mut self.last);
            return Err(Unusable::Surplus { flag, value });
        }
        let Some(argument) = self.rest.next() else {
            return Ok(None);
        };
        let (flag, value) = match argument.split_once('=') {
            Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
            None => (argument, None),
        };
        self.inline = value;
        self.last.clone_from(&flag);
        Ok(Some(flag))
    }

    /// The value of the flag that came last.
    pub(super) fn value(
        &mut self,
        flag: &'static str,
        example: &'static str,
    ) -> Result<String, Unusable> {
        let value = self.inline.take().or_else(|| self.rest.next());
        value.ok_or(Unusable::Missing { flag, example })
    }

    pub(super) fn unknown(&self, flag: String) -> Unusable {
        let command = self.command;
        Unusable::Unknown { command, flag }
    }
}
