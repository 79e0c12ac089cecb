//! From words to an expression.

use regex::Regex;

use super::expr::{
    Aggregation, Expr, Grouping, LabelCondition, Query, RangeFunction, Ranged, SeriesSelector,
    Subquery,
};
use super::token::{Token, TokenError, Word, split};
use crate::prometheus::refusal::QueryRefusal;

const LENGTH: usize = 64 * 1024;
const DEPTH: usize = 64;
/// Units of lengths of time, in milliseconds.
const UNITS: [(&str, i64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Reads a query.
pub(in crate::prometheus) fn parse(text: &str) -> Result<Query, QueryRefusal> {
    let read = || -> Result<Query, TokenError> {
        if text.len() > LENGTH {
            return Err((LENGTH, "the expression is too long".to_owned()));
        }
        let mut parser = Parser { tokens: split(text)?, next: 0, depth: 0 };
        let of = parser.expression()?;
        let query = match parser.word() {
            Word::Sign('[') => match parser.ranged(of)? {
                Ranged::Subquery(subquery) => Query::Past(*subquery),
                Ranged::Samples(..) => {
                    return Err(parser.fault("a range of samples is not answered"));
                }
            },
            _ => Query::Instant(of),
        };
        match parser.word() {
            Word::End => Ok(query),
            _ => Err(parser.unexpected("end of input")),
        }
    };
    read().map_err(|(place, problem)| {
        QueryRefusal::parameter("query", &format!("parse error at {place}: {problem}"))
    })
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
}

impl Parser {
    fn word(&self) -> &Word {
        self.tokens.get(self.next).map_or(&Word::End, |(word, _)| word)
    }

    fn fault(&self, problem: impl Into<String>) -> TokenError {
        let place = self.tokens.get(self.next).map_or(0, |(_, place)| *place);
        (place, problem.into())
    }

    fn unexpected(&self, wanted: &str) -> TokenError {
        let found = self.word().shown();
        self.fault(format!("unexpected {found}, expected {wanted}"))
    }

    fn take_sign(&mut self, sign: char) -> bool {
        let found = *self.word() == Word::Sign(sign);
        self.next += usize::from(found);
        found
    }

    fn expect_sign(&mut self, sign: char) -> Result<(), TokenError> {
        if self.take_sign(sign) {
            return Ok(());
        }
        Err(self.unexpected(&format!("{sign:?}")))
    }

    fn take_keyword(&mut self, keyword: &str) -> bool {
        let found = matches!(self.word(), Word::Name(name) if name == keyword);
        self.next += usize::from(found);
        found
    }

    fn name(&mut self) -> Result<String, TokenError> {
        let Word::Name(name) = self.word().clone() else {
            return Err(self.unexpected("a name"));
        };
        self.next += 1;
        Ok(name)
    }

    fn text(&mut self) -> Result<String, TokenError> {
        let Word::Text(text) = self.word().clone() else {
            return Err(self.unexpected("a string"));
        };
        self.next += 1;
        Ok(text)
    }

    /// Operands with `or` between them, which is the weakest operator.
    fn expression(&mut self) -> Result<Expr, TokenError> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(self.fault("the expression nests too deeply"));
        }
        let mut left = self.compared()?;
        while self.take_keyword("or") {
            let on = if self.take_keyword("on") { Some(self.labels()?) } else { None };
            left = Expr::Or { left: Box::new(left), right: Box::new(self.compared()?), on };
        }
        self.depth -= 1;
        Ok(left)
    }

    fn compared(&mut self) -> Result<Expr, TokenError> {
        let operand = self.operand()?;
        if !self.take_sign('>') {
            return Ok(operand);
        }
        let number = match self.word() {
            Word::Number(text) => text.parse().ok(),
            _ => None,
        };
        let number = number.ok_or_else(|| self.unexpected("a number"))?;
        self.next += 1;
        Ok(Expr::Above(Box::new(operand), number))
    }

    fn operand(&mut self) -> Result<Expr, TokenError> {
        match self.word() {
            Word::Sign('(') => return self.inner(),
            Word::Sign('{') => return Ok(Expr::Selector(self.selector(String::new())?)),
            _ => {}
        }
        let name = self.name()?;
        let ahead = self.word();
        let is_called = *ahead == Word::Sign('(');
        let is_grouped = matches!(ahead, Word::Name(word) if word == "by" || word == "without");
        if let Some(how) = Aggregation::named(&name).filter(|_| is_called || is_grouped) {
            let grouping = if self.take_keyword("by") {
                Grouping::By(self.labels()?)
            } else if self.take_keyword("without") {
                Grouping::Without(self.labels()?)
            } else {
                Grouping::By(Vec::new())
            };
            return Ok(Expr::Aggregate(how, grouping, Box::new(self.inner()?)));
        }
        if !is_called {
            return Ok(Expr::Selector(self.selector(name)?));
        }
        self.call(&name)
    }

    fn inner(&mut self) -> Result<Expr, TokenError> {
        self.expect_sign('(')?;
        let inner = self.expression()?;
        self.expect_sign(')')?;
        Ok(inner)
    }

    fn call(&mut self, function: &str) -> Result<Expr, TokenError> {
        self.expect_sign('(')?;
        if function == "time" {
            self.expect_sign(')')?;
            self.expect_sign('-')?;
            return Ok(Expr::Ago(Box::new(self.operand()?)));
        }
        let called = if let Some(function) = RangeFunction::named(function) {
            let of = self.expression()?;
            Expr::OverTime(function, self.ranged(of)?)
        } else if function == "timestamp" {
            let name = match self.word() {
                Word::Sign('{') => String::new(),
                _ => self.name()?,
            };
            Expr::Timestamp(self.selector(name)?)
        } else if function == "vector" && self.take_keyword("time") {
            self.expect_sign('(')?;
            self.expect_sign(')')?;
            Expr::Now
        } else if function == "label_replace" {
            self.labelled()?
        } else {
            return Err(self.fault(format!("unknown function with name {function:?}")));
        };
        self.expect_sign(')')?;
        Ok(called)
    }

    /// `label_replace` that sets a label, whatever the others are.
    fn labelled(&mut self) -> Result<Expr, TokenError> {
        let of = Box::new(self.expression()?);
        let mut texts = Vec::new();
        while self.take_sign(',') {
            texts.push(self.text()?);
        }
        match <[String; 4]>::try_from(texts) {
            Ok([label, value, source, pattern])
                if source.is_empty() && pattern.is_empty() && !value.contains('$') =>
            {
                Ok(Expr::Labelled { of, label, value })
            }
            _ => {
                Err(self
                    .fault("label_replace reads no labels here: \"name\", \"value\", \"\", \"\""))
            }
        }
    }

    fn selector(&mut self, name: String) -> Result<SeriesSelector, TokenError> {
        let mut labels = Vec::new();
        if self.take_sign('{') {
            while !self.take_sign('}') {
                let label = self.name()?;
                labels.push((label, self.condition()?));
                if !self.take_sign(',') && *self.word() != Word::Sign('}') {
                    return Err(self.unexpected("',' or '}'"));
                }
            }
        }
        Ok(SeriesSelector { name, labels })
    }

    fn condition(&mut self) -> Result<LabelCondition, TokenError> {
        if self.take_sign('!') {
            self.expect_sign('=')?;
            return Ok(LabelCondition::IsNot(self.text()?));
        }
        self.expect_sign('=')?;
        if !self.take_sign('~') {
            return Ok(LabelCondition::Is(self.text()?));
        }
        // As Prometheus anchors it: of the whole value.
        let pattern = Regex::new(&format!("^(?s:{})$", self.text()?));
        pattern.map(LabelCondition::IsLike).map_err(|error| self.fault(error.to_string()))
    }

    fn labels(&mut self) -> Result<Vec<String>, TokenError> {
        self.expect_sign('(')?;
        let mut labels = Vec::new();
        while !self.take_sign(')') {
            labels.push(self.name()?);
            if !self.take_sign(',') && *self.word() != Word::Sign(')') {
                return Err(self.unexpected("',' or ')'"));
            }
        }
        Ok(labels)
    }

    fn ranged(&mut self, of: Expr) -> Result<Ranged, TokenError> {
        self.expect_sign('[')?;
        let range = self.duration()?;
        if self.take_sign(']') {
            return match of {
                Expr::Selector(selector) => Ok(Ranged::Samples(selector, range)),
                _ => Err(self.fault("ranges only allowed for vector selectors")),
            };
        }
        self.expect_sign(':')?;
        let step = self.duration()?;
        self.expect_sign(']')?;
        Ok(Ranged::Subquery(Box::new(Subquery { of, range, step })))
    }

    fn duration(&mut self) -> Result<i64, TokenError> {
        let length = match self.word() {
            Word::Number(text) => milliseconds(text).filter(|length| *length > 0),
            _ => None,
        };
        let length = length.ok_or_else(|| self.unexpected("a duration above zero"))?;
        self.next += 1;
        Ok(length)
    }
}

/// Milliseconds of a text like `30s`.
fn milliseconds(text: &str) -> Option<i64> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(digits)?;
    let (_, length) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<i64>().ok()?.checked_mul(*length)
}
