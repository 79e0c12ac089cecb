//! From words to an expression.

use super::check::check;
use super::duration;
use super::expr::{
    Aggregation, Binary, Cardinality, Expr, Function, Grouping, Matching, MatchingLabels, Operator,
    Subquery,
};
use super::token::{Token, TokenError, Word, split};
use crate::prometheus::refusal::QueryRefusal;

/// Longest expression.
const LENGTH: usize = 64 * 1024;
/// Deepest nesting.
const DEPTH: usize = 64;
/// The step of a subquery that names none: the evaluation interval that Prometheus starts with.
const DEFAULT_STEP: i64 = 60_000;

/// Reads and checks an expression.
///
/// # Errors
/// The first thing that is wrong with it, and where.
pub(in crate::prometheus) fn parse(text: &str) -> Result<Expr, QueryRefusal> {
    let read = || -> Result<Expr, TokenError> {
        if text.len() > LENGTH {
            return Err((LENGTH, "the expression is too long".to_owned()));
        }
        let mut parser = Parser {
            tokens: split(text)?,
            next: 0,
            depth: 0,
        };
        if *parser.word() == Word::End {
            return Err((0, "no expression found in input".to_owned()));
        }
        let expression = parser.expression(0)?;
        match parser.word() {
            Word::End => Ok(expression),
            _ => Err(parser.unexpected("")),
        }
    };
    let refused = |(place, problem): TokenError| {
        let before = text.get(..place).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().len() + 1;
        QueryRefusal::parameter("query", &format!("{line}:{column}: parse error: {problem}"))
    };
    let expression = read().map_err(refused)?;
    check(&expression)
        .map_err(|problem| QueryRefusal::parameter("query", &format!("parse error: {problem}")))?;
    Ok(expression)
}

pub(super) struct Parser {
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
}

impl Parser {
    pub(super) fn word(&self) -> &Word {
        self.tokens
            .get(self.next)
            .map_or(&Word::End, |token| &token.word)
    }

    pub(super) fn place(&self) -> usize {
        self.tokens.get(self.next).map_or(0, |token| token.place)
    }

    pub(super) fn fault(&self, problem: impl Into<String>) -> TokenError {
        (self.place(), problem.into())
    }

    pub(super) fn unexpected(&self, context: &str) -> TokenError {
        self.fault(format!("unexpected {}{context}", self.word().shown()))
    }

    pub(super) fn take(&mut self) -> Word {
        let word = self.word().clone();
        self.next += 1;
        word
    }

    pub(super) fn take_sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.word(), Word::Sign(found) if *found == sign);
        self.next += usize::from(found);
        found
    }

    pub(super) fn expect_sign(&mut self, sign: &str, context: &str) -> Result<(), TokenError> {
        if self.take_sign(sign) {
            Ok(())
        } else {
            let wanted = format!(" {context}, expected {sign:?}");
            Err(self.unexpected(&wanted))
        }
    }

    /// Takes a keyword, which may be written in either case.
    fn take_keyword(&mut self, keyword: &str) -> bool {
        let found = matches!(self.word(), Word::Name(name) if name.eq_ignore_ascii_case(keyword));
        self.next += usize::from(found);
        found
    }

    /// An expression whose operators bind at least this tightly.
    fn expression(&mut self, least: u8) -> Result<Expr, TokenError> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(self.fault("the expression nests too deeply"));
        }
        let mut left = self.operand()?;
        while let Some(operator) = self.operator().filter(|found| found.strength() >= least) {
            self.next += 1;
            let says = self.take_keyword("bool");
            let matching = self.matching()?;
            // Only the power groups to the right.
            let tighter = u8::from(operator != Operator::Power);
            let right = self.expression(operator.strength() + tighter)?;
            left = Expr::Binary(Box::new(Binary {
                operator,
                left,
                right,
                matching,
                says,
            }));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn operator(&self) -> Option<Operator> {
        Some(match self.word() {
            Word::Name(name) => match &*name.to_ascii_lowercase() {
                "or" => Operator::Or,
                "and" => Operator::And,
                "unless" => Operator::Unless,
                _ => return None,
            },
            Word::Sign(sign) => match *sign {
                "==" => Operator::Equal,
                "!=" => Operator::Unequal,
                "<" => Operator::Less,
                "<=" => Operator::AtMost,
                ">" => Operator::Greater,
                ">=" => Operator::AtLeast,
                "+" => Operator::Add,
                "-" => Operator::Subtract,
                "*" => Operator::Multiply,
                "/" => Operator::Divide,
                "%" => Operator::Modulo,
                "^" => Operator::Power,
                _ => return None,
            },
            _ => return None,
        })
    }

    fn matching(&mut self) -> Result<Matching, TokenError> {
        let mut matching = Matching::default();
        if self.take_keyword("on") {
            matching.labels = MatchingLabels::On(self.labels()?);
        } else if self.take_keyword("ignoring") {
            matching.labels = MatchingLabels::Ignoring(self.labels()?);
        } else {
            return Ok(matching);
        }
        matching.written = true;
        matching.cardinality = if self.take_keyword("group_left") {
            Cardinality::ManyToOne
        } else if self.take_keyword("group_right") {
            Cardinality::OneToMany
        } else {
            return Ok(matching);
        };
        if matches!(self.word(), Word::Sign("(")) {
            matching.include = self.labels()?;
        }
        Ok(matching)
    }

    /// Label names between parentheses.
    fn labels(&mut self) -> Result<Vec<String>, TokenError> {
        let context = "in grouping opts";
        self.expect_sign("(", context)?;
        let mut labels = Vec::new();
        while !self.take_sign(")") {
            match self.word() {
                Word::Name(name) | Word::Text(name) => labels.push(name.clone()),
                _ => return Err(self.unexpected(" in grouping opts, expected label")),
            }
            self.next += 1;
            if !self.take_sign(",") && !matches!(self.word(), Word::Sign(")")) {
                return Err(self.unexpected(" in grouping opts, expected \",\" or \")\""));
            }
        }
        Ok(labels)
    }

    /// A sign before a power is that of the power.
    fn operand(&mut self) -> Result<Expr, TokenError> {
        if self.take_sign("-") {
            let inner = self.expression(Operator::Power.strength())?;
            return Ok(match inner {
                Expr::Number(number) => Expr::Number(-number),
                other => Expr::Negation(Box::new(other)),
            });
        }
        if self.take_sign("+") {
            return self.expression(Operator::Power.strength());
        }
        let primary = self.primary()?;
        self.modified(primary)
    }

    fn primary(&mut self) -> Result<Expr, TokenError> {
        match self.word().clone() {
            Word::Sign("(") => {
                self.next += 1;
                let inner = self.expression(0)?;
                self.expect_sign(")", "in paren expression")?;
                Ok(inner)
            }
            Word::Sign("{") => self.selector(None),
            Word::Text(text) => {
                self.next += 1;
                Ok(Expr::Text(text))
            }
            Word::Number(text) => {
                let number = number(&text);
                let number = number.ok_or_else(|| {
                    self.fault(format!("bad number or duration syntax: {text:?}"))
                })?;
                self.next += 1;
                Ok(Expr::Number(number))
            }
            Word::Name(name) => self.named(name),
            _ => Err(self.unexpected("")),
        }
    }

    fn named(&mut self, name: String) -> Result<Expr, TokenError> {
        let ahead = self.tokens.get(self.next + 1).map(|token| &token.word);
        let called = matches!(ahead, Some(Word::Sign("(")));
        let grouped = matches!(ahead, Some(Word::Name(word))
            if ["by", "without"].iter().any(|keyword| word.eq_ignore_ascii_case(keyword)));
        if let Some(how) = Aggregation::named(&name).filter(|_| called || grouped) {
            self.next += 1;
            return self.aggregation(how);
        }
        if called {
            let Some(function) = Function::named(&name) else {
                return Err(self.fault(format!("unknown function with name {name:?}")));
            };
            self.next += 1;
            return Ok(Expr::Call(function, self.arguments()?));
        }
        self.next += 1;
        match &*name.to_ascii_lowercase() {
            "inf" => Ok(Expr::Number(f64::INFINITY)),
            "nan" => Ok(Expr::Number(f64::NAN)),
            _ => self.selector(Some(name)),
        }
    }

    fn aggregation(&mut self, how: Aggregation) -> Result<Expr, TokenError> {
        let before = self.grouping()?;
        let place = self.place();
        let mut arguments = self.arguments()?;
        let after = if before.is_none() {
            self.grouping()?
        } else {
            None
        };
        match (arguments.pop(), arguments.len()) {
            (Some(inner), 0) => {
                let grouping = before.or(after).unwrap_or(Grouping::By(Vec::new()));
                Ok(Expr::Aggregate(how, grouping, Box::new(inner)))
            }
            (None, _) => Err((
                place,
                "no arguments for aggregate expression provided".to_owned(),
            )),
            (Some(_), more) => {
                let problem = "wrong number of arguments for aggregate expression provided";
                Err((place, format!("{problem}, expected 1, got {}", more + 1)))
            }
        }
    }

    fn grouping(&mut self) -> Result<Option<Grouping>, TokenError> {
        Ok(if self.take_keyword("by") {
            Some(Grouping::By(self.labels()?))
        } else if self.take_keyword("without") {
            Some(Grouping::Without(self.labels()?))
        } else {
            None
        })
    }

    fn arguments(&mut self) -> Result<Vec<Expr>, TokenError> {
        self.expect_sign("(", "in argument list")?;
        let mut arguments = Vec::new();
        if self.take_sign(")") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expression(0)?);
            if self.take_sign(")") {
                return Ok(arguments);
            }
            self.expect_sign(",", "in argument list")?;
        }
    }

    /// What follows an operand: a range, a subquery, an offset.
    fn modified(&mut self, mut expression: Expr) -> Result<Expr, TokenError> {
        loop {
            if self.take_sign("[") {
                expression = self.ranged(expression)?;
            } else if self.take_keyword("offset") {
                let sign = if self.take_sign("-") { -1 } else { 1 };
                let offset = sign * self.duration()?;
                match &mut expression {
                    Expr::Selector(selector) | Expr::Range(selector, _) => selector.offset = offset,
                    Expr::Subquery(subquery) => subquery.offset = offset,
                    _ => {
                        return Err(self.fault(
                            "offset modifier must be preceded by an instant vector selector or range vector selector or a subquery",
                        ));
                    }
                }
            } else {
                return Ok(expression);
            }
        }
    }

    fn ranged(&mut self, of: Expr) -> Result<Expr, TokenError> {
        let range = self.duration()?;
        if self.take_sign("]") {
            return match of {
                Expr::Selector(selector) => Ok(Expr::Range(selector, range)),
                _ => Err(self.fault("ranges only allowed for vector selectors")),
            };
        }
        self.expect_sign(":", "in subquery or range selector")?;
        let step = match self.word() {
            Word::Sign("]") => DEFAULT_STEP,
            _ => self.duration()?,
        };
        self.expect_sign("]", "in subquery selector")?;
        Ok(Expr::Subquery(Box::new(Subquery {
            of,
            range,
            step,
            offset: 0,
        })))
    }

    /// A length of time: with units, or a number of seconds.
    fn duration(&mut self) -> Result<i64, TokenError> {
        let Word::Number(text) = self.word() else {
            return Err(self.unexpected(", expected number, duration, or step()"));
        };
        let length = duration::parse(text).or_else(|| duration::of_seconds(number(text)?));
        let length = length.filter(|length| *length > 0);
        let length = length.ok_or_else(|| self.fault("duration must be greater than 0"))?;
        self.next += 1;
        Ok(length)
    }
}

/// A number: decimal, hexadecimal, or a length of time in seconds.
fn number(text: &str) -> Option<f64> {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let whole = u64::from_str_radix(digits, 16).ok()?;
        return Some(crate::number::real(whole));
    }
    let plain = text.parse().ok();
    plain.or_else(|| duration::parse(text).map(crate::prometheus::number::seconds))
}
