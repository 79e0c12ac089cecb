//! The form of a PromQL query: operators, calls, and selectors as texts. What is no PromQL, Prometheus says.

/// The label that has the name of a series.
pub(crate) const NAME: &str = "__name__";
/// Most operands of a query that is read.
const MOST_OPERANDS: usize = 128;
/// The longest range or offset, in seconds, that does not matter.
const SHORT_RANGE: f64 = 120.0;
/// Signs between two operands, those that bind weakest first. One that begins with another one stands before it.
const SIGNS: &[&[&str]] = &[
    &["or"],
    &["and", "unless"],
    &["==", "!=", "<=", ">=", "<", ">"],
    &["+", "-"],
    &["*", "/", "%", "atan2"],
    &["^"],
];
/// What makes other numbers of those that it is given. A fixed time is the last one.
const CHANGING: &str = "acos acosh asin asinh atan atanh changes cos cosh day_of_month day_of_week day_of_year \
    days_in_month deg delta deriv double_exponential_smoothing exp group holt_winters hour idelta increase irate ln \
    log10 log2 mad_over_time minute month predict_linear present_over_time rad rate resets sgn sin sinh sqrt stddev \
    stddev_over_time stdvar stdvar_over_time tan tanh timestamp year @";
/// Units of durations, in seconds. One that begins with another one stands before it.
const UNITS: &[(&str, f64)] = &[
    ("ms", 0.001),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3_600.0),
    ("d", 86_400.0),
    ("w", 604_800.0),
    ("y", 31_536_000.0),
];

/// A part of a query.
#[derive(Debug, PartialEq)]
pub(crate) enum QueryNode<'a> {
    Number(f64),
    Quoted,
    /// A selector.
    Series(&'a str),
    /// What is in front of brackets, and the brackets.
    Range(Box<Self>, &'a str),
    /// What is in front of an offset that matters.
    Late(Box<Self>),
    /// A function or an aggregation.
    Call {
        /// In small letters.
        name: String,
        /// The labels that an aggregation keeps; `None` where it names those that it drops.
        kept: Option<Vec<&'a str>>,
        inner: Vec<Self>,
    },
    Binary {
        sign: &'static str,
        is_bool: bool,
        sides: Box<[Self; 2]>,
    },
}

impl<'a> QueryNode<'a> {
    /// Every selector in it.
    pub(crate) fn selectors(&self) -> Vec<&'a str> {
        match self {
            Self::Number(_) | Self::Quoted => Vec::new(),
            Self::Series(selector) => vec![*selector],
            Self::Range(of, _) | Self::Late(of) => of.selectors(),
            Self::Call { inner, .. } => inner.iter().flat_map(Self::selectors).collect(),
            Self::Binary { sides, .. } => sides.iter().flat_map(Self::selectors).collect(),
        }
    }

    /// The number that it is, without a series.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Call { name, inner, .. } if matches!(name.as_str(), "vector" | "scalar") => {
                inner.first()?.number()
            }
            Self::Binary { sign, sides, .. } => {
                let [left, right] = &**sides;
                let (left, right) = (left.number()?, right.number()?);
                Some(match *sign {
                    "+" => left + right,
                    "-" => left - right,
                    "*" => left * right,
                    "/" => left / right,
                    _ => f64::NAN,
                })
            }
            _ => None,
        }
    }

    /// Whether its value comes from no series.
    pub(crate) fn is_made_up(&self) -> bool {
        match self {
            Self::Number(_) | Self::Quoted => true,
            Self::Series(_) => false,
            Self::Range(of, _) | Self::Late(of) => of.is_made_up(),
            Self::Call { name, inner, .. } => {
                name.starts_with("absent") || inner.iter().all(Self::is_made_up)
            }
            Self::Binary { sign, is_bool, sides } => {
                let [left, right] = &**sides;
                let is_zero =
                    |side: &Self| side.number().is_some_and(|number| number.abs() < f64::EPSILON);
                match *sign {
                    "and" | "unless" => left.is_made_up(),
                    "or" => left.is_made_up() || right.is_made_up(),
                    "*" if is_zero(left) || is_zero(right) => true,
                    _ => *is_bool || (left.is_made_up() && right.is_made_up()),
                }
            }
        }
    }
}

/// Whether a function makes other numbers of counts that it is given, from the lowest to the highest one that matters.
pub(crate) fn is_changing(
    name: &str,
    inner: &[QueryNode<'_>],
    (lowest, highest): (f64, f64),
) -> bool {
    let bound = |place: usize| inner.get(place).and_then(QueryNode::number);
    let (low, high) = match name {
        "clamp" => (bound(1), bound(2)),
        "clamp_min" => (bound(1), None),
        "clamp_max" => (None, bound(1)),
        "round" => {
            let steps = bound(1).map_or(1.0, |step| 1.0 / step);
            return (steps - steps.round()).abs() > 1e-6;
        }
        _ => {
            let is_other = name.starts_with("histogram_") || name.starts_with("ts_of_");
            return is_other || CHANGING.split(' ').any(|one| one == name);
        }
    };
    low.is_some_and(|low| low > lowest) || high.is_some_and(|high| high < highest)
}

/// Whether a function shows growth late: it has a range that matters, and takes no newest or highest count of it.
pub(crate) fn is_late(name: &str, inner: &[QueryNode<'_>]) -> bool {
    let share = inner.first().and_then(QueryNode::number);
    let is_low = match name {
        "min_over_time" | "avg_over_time" | "first_over_time" => true,
        "quantile_over_time" => share.is_some_and(|share| share <= 0.5),
        _ => false,
    };
    is_low && inner.iter().any(is_long)
}

/// Whether a part of a query has a range that matters.
fn is_long(node: &QueryNode<'_>) -> bool {
    let QueryNode::Range(_, range) = node else {
        return false;
    };
    let length = range.trim_matches(['[', ']']).split(':').next();
    let length = length.and_then(|length| literal(length.trim()));
    length.is_some_and(|length| length > SHORT_RANGE)
}

/// The aggregation that is written as a sum by its count.
pub(crate) fn mean(sign: &str, sum: &QueryNode<'_>, count: &QueryNode<'_>) -> Option<&'static str> {
    let QueryNode::Call { name, kept, inner } = sum else {
        return None;
    };
    let mean = match name.as_str() {
        "sum" => "avg",
        "sum_over_time" => "avg_over_time",
        _ => return None,
    };
    let QueryNode::Call { name: other, kept: others, inner: of } = count else {
        return None;
    };
    let is_same = *other == name.replace("sum", "count") && kept == others && inner == of;
    (sign == "/" && is_same).then_some(mean)
}

/// The tree of a query.
///
/// # Errors
/// Why it cannot be read.
pub(crate) fn parse(query: &str) -> Result<QueryNode<'_>, String> {
    let mut parser = QueryParser { rest: query, room: MOST_OPERANDS + 1 };
    let node = parser.level(0);
    parser.skip_space();
    match node {
        Some(node) if parser.rest.is_empty() => Ok(node),
        _ if parser.room == 0 => Err(format!("it has more than {MOST_OPERANDS} operands")),
        _ => Err("its syntax is not known".to_owned()),
    }
}

/// The labels of a selector, each with a sign and a value, as far as they can be read.
pub(crate) fn matchers(selector: &str) -> Option<Vec<(&str, &str, &str)>> {
    let mut parser = QueryParser { rest: selector, room: 0 };
    let name = parser.word();
    let named = (!name.is_empty()).then_some((NAME, "=", name));
    let mut found: Vec<(&str, &str, &str)> = named.into_iter().collect();
    if !parser.take("{") {
        return Some(found);
    }
    while !parser.take("}") {
        let quoted = parser.quoted();
        let label = quoted.unwrap_or_else(|| parser.word());
        let mut signs = ["=~", "!~", "!=", "="].into_iter();
        match signs.find(|sign| parser.take(sign)) {
            Some(sign) => found.push((label, sign, parser.quoted()?)),
            // A quoted name alone is that of the series.
            None => found.push((NAME, "=", quoted?)),
        }
        parser.take(",");
    }
    Some(found)
}

/// A number as a query writes it: decimal or hexadecimal, `_` between digits, `Inf`, `NaN`, or a duration in seconds.
fn literal(word: &str) -> Option<f64> {
    let word = word.replace('_', "").to_ascii_lowercase();
    if let Some(digits) = word.strip_prefix("0x") {
        let mut digits = digits.chars();
        return digits
            .try_fold(0.0_f64, |sum, digit| Some(sum * 16.0 + f64::from(digit.to_digit(16)?)));
    }
    word.parse().ok().or_else(|| seconds(&word))
}

/// A duration like `1h30m`.
fn seconds(text: &str) -> Option<f64> {
    let (mut rest, mut sum) = (text, 0.0_f64);
    while !rest.is_empty() {
        let (count, behind) = rest.split_at(rest.find(|letter: char| !letter.is_ascii_digit())?);
        let (unit, length) = UNITS.iter().find(|(unit, _)| behind.starts_with(*unit))?;
        sum += count.parse::<f64>().ok()? * length;
        rest = behind.strip_prefix(*unit)?;
    }
    Some(sum)
}

fn is_letter(letter: char) -> bool {
    letter.is_alphanumeric() || "_:.".contains(letter)
}

fn is_amount(word: &str) -> bool {
    let is_named = ["inf", "nan"].into_iter().any(|name| word.eq_ignore_ascii_case(name));
    is_named || word.starts_with(|letter: char| letter.is_ascii_digit() || letter == '.')
}

/// The place behind the quoted text, or the brackets, that a text begins with.
fn closed(text: &str) -> Option<usize> {
    let (mut depth, mut is_escaped) = (0_usize, false);
    let mut quote: Option<char> = None;
    for (at, letter) in text.char_indices() {
        if let Some(end) = quote {
            quote = quote.filter(|_| letter != end || is_escaped);
            is_escaped = letter == '\\' && end != '`' && !is_escaped;
        } else {
            match letter {
                '"' | '\'' | '`' => quote = Some(letter),
                '{' | '[' => depth += 1,
                '}' | ']' => depth = depth.checked_sub(1)?,
                _ => {}
            }
        }
        if quote.is_none() && depth == 0 {
            return Some(at + letter.len_utf8());
        }
    }
    None
}

#[derive(Debug)]
struct QueryParser<'a> {
    rest: &'a str,
    /// One more than the operands, ranges and offsets that may follow; 0 after too many. They bound the depth of the tree.
    room: usize,
}

impl<'a> QueryParser<'a> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
        while let Some(comment) = self.rest.strip_prefix('#') {
            let line_end = comment.split_once('\n');
            self.rest = line_end.map_or("", |(_, rest)| rest.trim_start());
        }
    }

    /// Takes a sign or a whole word, where it is next.
    fn take(&mut self, sign: &str) -> bool {
        self.skip_space();
        let Some((start, rest)) = self.rest.split_at_checked(sign.len()) else {
            return false;
        };
        let is_longer = sign.ends_with(is_letter) && rest.starts_with(is_letter);
        let is_next = !is_longer && start.eq_ignore_ascii_case(sign);
        if is_next {
            self.rest = rest;
        }
        is_next
    }

    fn word(&mut self) -> &'a str {
        self.skip_space();
        let behind = self.rest.trim_start_matches(is_letter);
        self.until(behind)
    }

    /// Takes a word, or a number with its exponent.
    fn amount(&mut self) -> &'a str {
        self.skip_space();
        let start = self.rest;
        let word = self.word();
        let is_hexadecimal = word.starts_with("0x") || word.starts_with("0X");
        let has_exponent = is_amount(word) && !is_hexadecimal && word.ends_with(['e', 'E']);
        if has_exponent && (self.take("+") || self.take("-")) {
            self.word();
        }
        let (amount, _) = start.split_at(start.len() - self.rest.len());
        amount
    }

    /// Takes the quoted text, or the brackets, that are next.
    fn bracketed(&mut self) -> Option<&'a str> {
        let (_, behind) = self.rest.split_at(closed(self.rest)?);
        Some(self.until(behind))
    }

    /// Takes the quoted text that is next, and leaves its quotes out.
    fn quoted(&mut self) -> Option<&'a str> {
        self.skip_space();
        if !self.rest.starts_with(['"', '\'', '`']) {
            return None;
        }
        let text = self.bracketed()?;
        text.get(1..text.len() - 1)
    }

    /// Takes what stands before the end of the query that is given.
    fn until(&mut self, behind: &'a str) -> &'a str {
        let (text, _) = self.rest.split_at(self.rest.len() - behind.len());
        self.rest = behind;
        text
    }

    fn labels(&mut self) -> Option<Vec<&'a str>> {
        if !self.take("(") {
            return Some(Vec::new());
        }
        let (labels, rest) = self.rest.split_once(')')?;
        self.rest = rest;
        let labels = labels.split(',');
        let labels = labels.map(|label| label.trim().trim_matches(['"', '\'', '`']));
        Some(labels.filter(|label| !label.is_empty()).collect())
    }

    /// Takes the labels by which an aggregation groups, where they are next.
    fn grouping(&mut self, kept: &mut Option<Vec<&'a str>>) -> Option<()> {
        if self.take("by") {
            *kept = Some(self.labels()?);
        } else if self.take("without") {
            self.labels()?;
            *kept = None;
        }
        Some(())
    }

    /// Takes operands with the signs of a level, and of those that bind stronger.
    fn level(&mut self, level: usize) -> Option<QueryNode<'a>> {
        let Some(signs) = SIGNS.get(level) else {
            return self.operand();
        };
        let mut left = self.level(level + 1)?;
        while let Some(sign) = signs.iter().copied().find(|sign| self.take(sign)) {
            let is_bool = self.take("bool");
            for matching in ["on", "ignoring", "group_left", "group_right"] {
                if self.take(matching) {
                    self.labels()?;
                }
            }
            let right = self.level(level + 1)?;
            let sides = Box::new([left, right]);
            left = QueryNode::Binary { sign, is_bool, sides };
        }
        Some(left)
    }

    fn spend(&mut self) -> Option<()> {
        self.room = self.room.saturating_sub(1);
        (self.room > 0).then_some(())
    }

    /// Takes an operand, with what stands behind it.
    fn operand(&mut self) -> Option<QueryNode<'a>> {
        self.spend()?;
        let mut node = self.atom()?;
        loop {
            self.skip_space();
            if self.rest.starts_with('[') {
                self.spend()?;
                node = QueryNode::Range(Box::new(node), self.bracketed()?);
                continue;
            }
            let is_offset = self.take("offset");
            if !is_offset && !self.take("@") {
                return Some(node);
            }
            self.spend()?;
            let is_negative = self.take("-");
            if !is_negative {
                self.take("+");
            }
            let amount = literal(self.amount());
            if self.take("(") && !self.take(")") {
                return None;
            }
            if is_offset && !is_negative && amount.is_some_and(|length| length > SHORT_RANGE) {
                node = QueryNode::Late(Box::new(node));
            }
            if !is_offset && amount.is_some() {
                node = QueryNode::Call { name: "@".to_owned(), kept: None, inner: vec![node] };
            }
        }
    }

    fn atom(&mut self) -> Option<QueryNode<'a>> {
        if self.take("(") {
            let inner = self.level(0)?;
            return self.take(")").then_some(inner);
        }
        if self.take("+") {
            return self.operand();
        }
        if self.take("-") {
            let sides = Box::new([QueryNode::Number(0.0), self.operand()?]);
            return Some(QueryNode::Binary { sign: "-", is_bool: false, sides });
        }
        if self.rest.starts_with(['"', '\'', '`']) {
            return self.bracketed().map(|_| QueryNode::Quoted);
        }
        let start = self.rest;
        let name = self.amount();
        if is_amount(name) {
            return literal(name).map(QueryNode::Number);
        }
        let mut kept = Some(Vec::new());
        self.grouping(&mut kept)?;
        if self.take("(") {
            let mut inner = Vec::new();
            while !self.take(")") {
                inner.push(self.level(0)?);
                self.take(",");
            }
            self.grouping(&mut kept)?;
            let name = name.to_lowercase();
            return Some(QueryNode::Call { name, kept, inner });
        }
        if self.rest.starts_with('{') {
            self.bracketed()?;
        }
        let (selector, _) = start.split_at(start.len() - self.rest.len());
        let selector = selector.trim_end();
        (!selector.is_empty()).then_some(QueryNode::Series(selector))
    }
}
