//! The table of sources, worked out for one collection: where in which answer each series stands.

use super::ages::AgeSource;
use super::query::QueryName;
use super::reading::SampleReading;
use super::sources::{EngineSignal, Formula, Ranks};

#[derive(Debug)]
pub(super) struct SignalRow {
    pub(super) ranks: Ranks,
    /// Its sources, the preferred one first.
    pub(super) formulas: Vec<SignalFormula>,
    operands: Vec<(QueryName, &'static str)>,
}

#[derive(Debug)]
pub(super) struct SignalFormula {
    /// The name of its first series.
    pub(super) name: &'static str,
    pub(super) age: AgeSource,
    formula: Steps,
}

#[derive(Debug)]
enum Steps {
    Value(usize),
    Share { part: usize, whole: usize },
    Total(Vec<usize>),
}

impl SignalRow {
    pub(super) fn of(signal: &EngineSignal) -> Self {
        let mut row = Self { ranks: signal.ranks, formulas: Vec::new(), operands: Vec::new() };
        for source in signal.sources {
            let series = source.formula.operands();
            let spellings = series.iter().map(|series| series.0.len()).min();
            for spelling in 0..spellings.unwrap_or(0) {
                let names: Vec<&'static str> =
                    series.iter().filter_map(|series| series.0.get(spelling).copied()).collect();
                row.add(source.query, source.formula, &names);
            }
        }
        row
    }

    fn add(&mut self, query: QueryName, formula: Formula, names: &[&'static str]) {
        let places: Vec<usize> = names.iter().map(|name| self.operand(query, name)).collect();
        let steps = match (formula, places.as_slice()) {
            (Formula::Value(_) | Formula::Blocks(_), [place]) => Steps::Value(*place),
            (Formula::Share { .. }, [part, whole]) => Steps::Share { part: *part, whole: *whole },
            _ => Steps::Total(places),
        };
        if let Some(name) = names.first()
            && let Some(age) = AgeSource::of(name)
        {
            self.formulas.push(SignalFormula { name, age, formula: steps });
        }
    }

    fn operand(&mut self, query: QueryName, name: &'static str) -> usize {
        let operand = (query, name);
        let known = self.operands.iter().position(|known| *known == operand);
        known.unwrap_or_else(|| {
            self.operands.push(operand);
            self.operands.len() - 1
        })
    }

    pub(super) fn queries(&self) -> impl Iterator<Item = QueryName> + '_ {
        self.operands.iter().map(|(query, _)| *query)
    }

    /// The queries for times that it takes, where its series have their own.
    pub(super) fn own_ages(&self) -> impl Iterator<Item = QueryName> + '_ {
        self.formulas.iter().filter_map(|signal_formula| match signal_formula.age {
            AgeSource::Own(query, _) => Some(query),
            AgeSource::Page(_) => None,
        })
    }

    /// For each arm of a query, its place among the operands of this row.
    pub(super) fn places(&self, query: QueryName) -> Vec<Option<usize>> {
        let terms = query.terms().into_iter();
        terms
            .map(|term| {
                let operand = (query, term.name);
                self.operands.iter().position(|known| *known == operand)
            })
            .collect()
    }
}

impl SignalFormula {
    pub(super) fn value(&self, ranks: Ranks, operands: &[SampleReading]) -> Option<f64> {
        let sum = |place: &usize| Some(together(operands, *place)?.0);
        match &self.formula {
            Steps::Value(place) => {
                let (sum, count) = together(operands, *place)?;
                Some(match ranks {
                    Ranks::Sum => sum,
                    Ranks::Mean => sum / f64::from(count),
                })
            }
            Steps::Share { part, whole } => {
                let whole = sum(whole)?;
                Some(sum(part)? / whole).filter(|_| whole > 0.0)
            }
            Steps::Total(terms) => terms.iter().map(sum).sum(),
        }
    }
}

/// The sum of the ranks at one place, and how many they are.
fn together(operands: &[SampleReading], place: usize) -> Option<(f64, u32)> {
    let mut total = None;
    for operand in operands {
        if operand.key.source == place {
            let (sum, count) = total.unwrap_or((0.0, 0));
            total = Some((sum + operand.number, count + 1));
        }
    }
    total
}
