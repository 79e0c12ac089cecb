//! Expressions.

use crate::prometheus::matcher::Matcher;

/// An expression. Parentheses are gone: the tree says what they said.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::prometheus) enum Expr {
    Number(f64),
    Text(String),
    Selector(Selector),
    /// A selector with a range in milliseconds.
    Range(Selector, i64),
    Subquery(Box<Subquery>),
    Call(Function, Vec<Expr>),
    Aggregate(Aggregation, Grouping, Box<Expr>),
    Binary(Box<Binary>),
    Negation(Box<Expr>),
}

/// Which series, and how long ago.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::prometheus) struct Selector {
    pub(in crate::prometheus) matchers: Vec<Matcher>,
    /// In milliseconds.
    pub(in crate::prometheus) offset: i64,
}

/// An expression evaluated at regular steps; times in milliseconds.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::prometheus) struct Subquery {
    pub(in crate::prometheus) of: Expr,
    pub(in crate::prometheus) range: i64,
    pub(in crate::prometheus) step: i64,
    pub(in crate::prometheus) offset: i64,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::prometheus) enum Kind {
    Scalar,
    Vector,
    Matrix,
    Text,
}

impl Kind {
    /// The name in errors.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Vector => "instant vector",
            Self::Matrix => "range vector",
            Self::Text => "string",
        }
    }
}

/// Functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::prometheus) enum Function {
    AvgOverTime,
    CountOverTime,
    LastOverTime,
    MaxOverTime,
    MinOverTime,
    SumOverTime,
    Delta,
    Increase,
    Rate,
    HistogramQuantile,
    LabelReplace,
    Time,
    Timestamp,
    Vector,
}

impl Function {
    /// Name, function, types of its arguments.
    const TABLE: &'static [(&'static str, Self, &'static [Kind])] = &[
        ("avg_over_time", Self::AvgOverTime, &[Kind::Matrix]),
        ("count_over_time", Self::CountOverTime, &[Kind::Matrix]),
        ("last_over_time", Self::LastOverTime, &[Kind::Matrix]),
        ("max_over_time", Self::MaxOverTime, &[Kind::Matrix]),
        ("min_over_time", Self::MinOverTime, &[Kind::Matrix]),
        ("sum_over_time", Self::SumOverTime, &[Kind::Matrix]),
        ("delta", Self::Delta, &[Kind::Matrix]),
        ("increase", Self::Increase, &[Kind::Matrix]),
        ("rate", Self::Rate, &[Kind::Matrix]),
        (
            "histogram_quantile",
            Self::HistogramQuantile,
            &[Kind::Scalar, Kind::Vector],
        ),
        (
            "label_replace",
            Self::LabelReplace,
            &[Kind::Vector, Kind::Text, Kind::Text, Kind::Text, Kind::Text],
        ),
        ("time", Self::Time, &[]),
        ("timestamp", Self::Timestamp, &[Kind::Vector]),
        ("vector", Self::Vector, &[Kind::Scalar]),
    ];

    /// The function of a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let mut table = Self::TABLE.iter();
        table.find_map(|(known, function, _)| (*known == name).then_some(*function))
    }

    /// Its name and the types of its arguments.
    pub(super) fn signature(self) -> (&'static str, &'static [Kind]) {
        let mut table = Self::TABLE.iter();
        let found = table.find(|(_, function, _)| *function == self);
        found.map_or(("", &[]), |(name, _, arguments)| (name, arguments))
    }

    fn result(self) -> Kind {
        match self {
            Self::Time => Kind::Scalar,
            _ => Kind::Vector,
        }
    }
}

/// How several series become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::prometheus) enum Aggregation {
    Avg,
    Count,
    Group,
    Max,
    Min,
    Sum,
}

impl Aggregation {
    /// The aggregation of a word, in either case.
    pub(super) fn named(word: &str) -> Option<Self> {
        Some(match &*word.to_ascii_lowercase() {
            "avg" => Self::Avg,
            "count" => Self::Count,
            "group" => Self::Group,
            "max" => Self::Max,
            "min" => Self::Min,
            "sum" => Self::Sum,
            _ => return None,
        })
    }
}

/// Which labels stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::prometheus) enum Grouping {
    By(Vec<String>),
    Without(Vec<String>),
}

/// Two operands.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::prometheus) struct Binary {
    pub(in crate::prometheus) operator: Operator,
    pub(in crate::prometheus) left: Expr,
    pub(in crate::prometheus) right: Expr,
    pub(in crate::prometheus) matching: Matching,
    /// Whether a comparison says 0 or 1 instead of filtering.
    pub(in crate::prometheus) says: bool,
}

/// Operators between two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::prometheus) enum Operator {
    Or,
    And,
    Unless,
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
}

impl Operator {
    /// How tightly it binds.
    pub(super) fn strength(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::And | Self::Unless => 2,
            Self::Equal
            | Self::Unequal
            | Self::Less
            | Self::AtMost
            | Self::Greater
            | Self::AtLeast => 3,
            Self::Add | Self::Subtract => 4,
            Self::Multiply | Self::Divide | Self::Modulo => 5,
            Self::Power => 6,
        }
    }

    /// Whether it compares.
    pub(in crate::prometheus) fn compares(self) -> bool {
        self.strength() == 3
    }

    /// Whether it works on sets of series.
    pub(in crate::prometheus) fn combines_sets(self) -> bool {
        self.strength() < 3
    }
}

/// Which series of two sides belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::prometheus) struct Matching {
    pub(in crate::prometheus) labels: MatchingLabels,
    pub(in crate::prometheus) cardinality: Cardinality,
    /// Labels that the many take from the one.
    pub(in crate::prometheus) include: Vec<String>,
    /// Whether anything of this was written.
    pub(in crate::prometheus) written: bool,
}

/// The labels that have to be equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::prometheus) enum MatchingLabels {
    On(Vec<String>),
    Ignoring(Vec<String>),
}

/// How many series of a side may belong to one of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::prometheus) enum Cardinality {
    OneToOne,
    ManyToOne,
    OneToMany,
}

impl Default for Matching {
    fn default() -> Self {
        Self {
            labels: MatchingLabels::Ignoring(Vec::new()),
            cardinality: Cardinality::OneToOne,
            include: Vec::new(),
            written: false,
        }
    }
}

impl Expr {
    /// The type of its value.
    pub(in crate::prometheus) fn kind(&self) -> Kind {
        match self {
            Self::Number(_) => Kind::Scalar,
            Self::Text(_) => Kind::Text,
            Self::Selector(_) | Self::Aggregate(..) => Kind::Vector,
            Self::Range(..) | Self::Subquery(_) => Kind::Matrix,
            Self::Call(function, _) => function.result(),
            Self::Negation(inner) => inner.kind(),
            Self::Binary(binary) => match (binary.left.kind(), binary.right.kind()) {
                (Kind::Scalar, Kind::Scalar) => Kind::Scalar,
                _ => Kind::Vector,
            },
        }
    }
}
