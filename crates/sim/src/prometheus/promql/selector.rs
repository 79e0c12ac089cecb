//! Selectors between braces.

use super::expr::{Expr, Selector};
use super::parser::Parser;
use super::token::{TokenError, Word};
use crate::prometheus::labels::NAME;
use crate::prometheus::matcher::{Comparison, Matcher};

impl Parser {
    /// A selector: a name, conditions, or both. The name was taken already, if there was one.
    pub(super) fn selector(&mut self, name: Option<String>) -> Result<Expr, TokenError> {
        let place = self.place();
        let mut matchers: Vec<Matcher> =
            name.iter().map(|name| Matcher::equal(NAME, name)).collect();
        if self.take_sign("{") {
            while !self.take_sign("}") {
                let matcher = self.matcher()?;
                if matcher.label == NAME
                    && matchers.iter().any(|known| known.label == NAME)
                    && name.is_some()
                {
                    let known = name.unwrap_or_default();
                    let again = matcher.exact().unwrap_or_default();
                    return Err((
                        place,
                        format!("metric name must not be set twice: {known:?} or {again:?}"),
                    ));
                }
                matchers.push(matcher);
                if !self.take_sign(",") && !matches!(self.word(), Word::Sign("}")) {
                    return Err(self.unexpected(" in label matching, expected \",\" or \"}\""));
                }
            }
        }
        if matchers.iter().all(|matcher| matcher.matches("")) {
            let problem = "vector selector must contain at least one non-empty matcher";
            return Err((place, problem.to_owned()));
        }
        Ok(Expr::Selector(Selector {
            matchers,
            offset: 0,
        }))
    }

    fn matcher(&mut self) -> Result<Matcher, TokenError> {
        let place = self.place();
        let (label, quoted) = match self.take() {
            Word::Name(label) => (label, false),
            Word::Text(label) => (label, true),
            _ => {
                let problem = "unexpected input in label matching, expected identifier or \"}\"";
                return Err((place, problem.to_owned()));
            }
        };
        let comparison = match self.word() {
            Word::Sign("=") => Comparison::Equal,
            Word::Sign("!=") => Comparison::Unequal,
            Word::Sign("=~") => Comparison::Like,
            Word::Sign("!~") => Comparison::Unlike,
            // A string alone is the name of the series.
            Word::Sign("," | "}") if quoted => return Ok(Matcher::equal(NAME, &label)),
            _ => {
                return Err(self.unexpected(" in label matching, expected label matching operator"));
            }
        };
        self.take();
        let place = self.place();
        let Word::Text(value) = self.word().clone() else {
            return Err(self.unexpected(" in label matching, expected string"));
        };
        self.take();
        Matcher::new(&label, comparison, value)
            .map_err(|invalid| (place, format!("error parsing regexp: {invalid}")))
    }
}
