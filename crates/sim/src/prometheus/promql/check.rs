//! Whether the parts of an expression fit together.

use super::expr::{Binary, Cardinality, Expr, Kind, MatchingLabels};

/// Checks an expression and all its parts.
///
/// # Errors
/// The first part that does not fit, in the words of Prometheus.
pub(super) fn check(expression: &Expr) -> Result<(), String> {
    match expression {
        Expr::Number(_) | Expr::Text(_) | Expr::Selector(_) | Expr::Range(..) => Ok(()),
        Expr::Subquery(subquery) => {
            check(&subquery.of)?;
            match subquery.of.kind() {
                Kind::Vector | Kind::Scalar => Ok(()),
                other => Err(format!(
                    "subquery is only allowed on instant vector, got {} instead",
                    other.as_str()
                )),
            }
        }
        Expr::Negation(inner) => {
            check(inner)?;
            match inner.kind() {
                Kind::Vector | Kind::Scalar => Ok(()),
                other => Err(format!(
                    "unary expression only allowed on expressions of type scalar or instant vector, got {:?}",
                    other.as_str()
                )),
            }
        }
        Expr::Aggregate(_, _, inner) => {
            check(inner)?;
            expect(Kind::Vector, inner.kind(), "aggregation expression")
        }
        Expr::Call(function, arguments) => {
            let (name, kinds) = function.signature();
            if arguments.len() != kinds.len() {
                return Err(format!(
                    "expected {} argument(s) in call to {name:?}, got {}",
                    kinds.len(),
                    arguments.len()
                ));
            }
            for (argument, kind) in arguments.iter().zip(kinds) {
                check(argument)?;
                expect(
                    *kind,
                    argument.kind(),
                    &format!("call to function {name:?}"),
                )?;
            }
            Ok(())
        }
        Expr::Binary(binary) => check_binary(binary),
    }
}

fn expect(wanted: Kind, found: Kind, context: &str) -> Result<(), String> {
    if wanted == found {
        return Ok(());
    }
    Err(format!(
        "expected type {} in {context}, got {}",
        wanted.as_str(),
        found.as_str()
    ))
}

fn check_binary(binary: &Binary) -> Result<(), String> {
    check(&binary.left)?;
    check(&binary.right)?;
    let kinds = (binary.left.kind(), binary.right.kind());
    let vectors = kinds == (Kind::Vector, Kind::Vector);
    let operand = |kind| matches!(kind, Kind::Vector | Kind::Scalar);
    let operator = binary.operator;
    let matching = &binary.matching;
    let problem = if !operand(kinds.0) || !operand(kinds.1) {
        "binary expression must contain only scalar and instant vector types"
    } else if binary.says && !operator.compares() {
        "bool modifier can only be used on comparison operators"
    } else if operator.compares() && !binary.says && kinds == (Kind::Scalar, Kind::Scalar) {
        "comparisons between scalars must use BOOL modifier"
    } else if operator.combines_sets() && !vectors {
        "set operator not allowed in binary scalar expression"
    } else if operator.combines_sets() && matching.cardinality != Cardinality::OneToOne {
        "no grouping allowed for set operations"
    } else if matching.written && !vectors {
        "vector matching only allowed between instant vectors"
    } else {
        if let MatchingLabels::On(labels) = &matching.labels
            && let Some(twice) = labels.iter().find(|label| matching.include.contains(label))
        {
            return Err(format!(
                "label {twice:?} must not occur in ON and GROUP clause at once"
            ));
        }
        return Ok(());
    };
    Err(problem.to_owned())
}
