//! How far each threshold is away.

use crate::policy::combine::{Balance, VoterFigures, analyzer_band};
use crate::policy::params::DynamicSettings;
use crate::policy::plan::{Decision, Plan, SaturationFigures};

/// One line for each threshold of the model of a decision. Without settings only what the figures show.
pub(super) fn thresholds(
    plan: &Plan,
    decision: &Decision,
    settings: Option<&DynamicSettings>,
) -> Vec<String> {
    let Some(figures) = plan.models.get(&decision.model) else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    let by_role = figures.percentage_by_role.get(&decision.role);
    let percentage = by_role.or(figures.percentage.as_ref());
    if let Some(percentage) = percentage {
        lines.extend(percentages(percentage, decision, settings));
    }
    let voters = figures.consensus.iter().flat_map(|consensus| &consensus.voters);
    for voter in voters {
        if let Some(balance) = voter.roles.get(&decision.role) {
            lines.push(vote(voter, balance, decision, settings));
        }
    }
    lines
}

fn percentages(
    figures: &SaturationFigures,
    decision: &Decision,
    settings: Option<&DynamicSettings>,
) -> Vec<String> {
    let release = match (figures.scale_down_safe, figures.scale_up) {
        (true, _) => "release: the load of one replica fits on the others",
        (false, true) => "release: no, the model is to grow",
        (false, false) => "release: no, the load of one replica does not fit on the others",
    };
    let (kv, queue) = (figures.spare_kv, figures.spare_queue);
    let mut lines = match settings {
        None => vec![format!("KV spare {kv:.3}"), format!("queue spare {queue:.3}")],
        Some(settings) => {
            let thresholds = settings.saturation.policy(&decision.model).thresholds;
            vec![
                spare("KV spare", kv, thresholds.kv_spare_trigger),
                spare("queue spare", queue, thresholds.queue_spare_trigger),
            ]
        }
    };
    lines.push(release.to_owned());
    lines
}

fn spare(name: &str, spare: f64, trigger: f64) -> String {
    let distance = spare - trigger;
    if distance < 0.0 {
        format!("{name} {spare:.3}: below {trigger:.3}, where growth begins, by {:.3}", -distance)
    } else {
        format!("{name} {spare:.3}: growth begins below {trigger:.3}, {distance:.3} away")
    }
}

fn vote(
    voter: &VoterFigures,
    balance: &Balance,
    decision: &Decision,
    settings: Option<&DynamicSettings>,
) -> String {
    let analyzer = voter.analyzer;
    let name = analyzer.as_str();
    let Balance { demand, supply, anticipated, required, spare, releasable } = *balance;
    let stand = format!(
        "{name}: demand {demand:.1} of {supply:.1}, {anticipated:.1} with pending replicas"
    );
    let band = settings
        .map(|settings| analyzer_band(&settings.saturation.policy(&decision.model), analyzer));
    let Some(band) = band else {
        return if required > 0.0 {
            format!("{stand}; growth is short of {required:.1}")
        } else if spare > 0.0 {
            format!("{stand}; {releasable:.1} may be released")
        } else {
            format!("{stand}; within the band")
        };
    };
    let (grows, shrinks) = (anticipated * band.scale_up, supply * band.scale_down);
    if required > 0.0 {
        format!("{stand}; above {grows:.1}, where growth begins, by {:.1}", demand - grows)
    } else if spare > 0.0 {
        format!("{stand}; below {shrinks:.1}, where release begins, by {:.1}", shrinks - demand)
    } else {
        format!(
            "{stand}; growth begins above {grows:.1}, {:.1} away, and release below {shrinks:.1}, {:.1} away",
            grows - demand,
            demand - shrinks
        )
    }
}
