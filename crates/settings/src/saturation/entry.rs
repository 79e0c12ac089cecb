//! A checked saturation entry: what it states, and nothing about what it leaves out.

use super::document::{AnalyzerDocument, FIELDS, SaturationDocument};
use super::limiter::{contradictions, judge_limiters, respelt};
use crate::entries::{DocumentVerdict, Entry, EntryKind};
use crate::purpose::Purpose;
use wva_base::nearest::with_suggestion;
use wva_base::text::decimal;
use wva_base::yaml::DocumentField;
use wva_policy::capacity::AnalyzerName;
use wva_policy::combine::lacks_saturation_vote;
use wva_policy::params::{
    ActuationMode, AnalyzerSettings, BurstReserve, SATURATION, SLO, SaturationEntry,
    SaturationMethod, StatedBand, kv_fault, queue_fault,
};

/// Priorities and scores lie between this and its reciprocal, so that weighted claims stay numbers.
const MAX_WEIGHT: f64 = 1e6;

impl Entry for SaturationEntry {
    type Document = SaturationDocument;
    const PURPOSE: Purpose = Purpose::Saturation;
    const FIELDS: &'static [DocumentField] = FIELDS;
    const TIERS: bool = true;

    fn identity(document: &SaturationDocument) -> (Option<&str>, Option<&str>) {
        (document.model_id.as_deref(), document.namespace.as_deref())
    }

    fn strange(document: &SaturationDocument, kind: EntryKind, scope: Option<&str>) -> Vec<String> {
        let selector = document.analyzer_name.iter();
        let selector = selector
            .filter(|name| !SELECTORS.contains(&name.as_str()))
            .map(|name| format!("analyzerName: {}", strange_name(name, SELECTORS)));
        let listed = document.analyzers.iter().flatten().enumerate();
        let listed = listed.filter_map(|(index, analyzer)| {
            let kind = analyzer.kind.as_ref().or(analyzer.name.as_ref())?;
            (!kind.is_empty() && !KINDS.contains(&kind.as_str()))
                .then(|| format!("analyzers[{index}].type: {}", strange_name(kind, KINDS)))
        });
        let unread = out_of_scope(document, kind, scope);
        // An entry that selects one is refused for it.
        let unusable = own_band(document).unusable();
        let unusable = unusable.filter(|_| !selects_tokens(document));
        let strange = selector.chain(listed).chain(unread);
        strange.chain(unusable).collect()
    }

    fn lints(&self) -> Vec<String> {
        let limiters = self.limiters.iter().flatten().enumerate();
        let lints = limiters.flat_map(|(index, limiter)| {
            let lints = contradictions(limiter).chain(respelt(limiter));
            lints.map(move |text| format!("limiters[{index}]: {text}"))
        });
        let listed = self.analyzers.as_deref().unwrap_or_default();
        let is_slo = self.analyzer_name.as_deref() == Some(AnalyzerName::Slo.as_str());
        let off = listed.iter().position(|entry| entry.kind == SLO && !entry.enabled);
        let off = off.filter(|_| is_slo).map(|index| {
            format!(
                "analyzers[{index}].enabled: analyzerName: slo selects slo all the same; write another \
                 analyzerName, or remove the item"
            )
        });
        let by_list = self.analyzer_name.as_deref() == Some(PERCENTAGE) && !listed.is_empty();
        let by_list = by_list.then(|| {
            "analyzerName: the list in analyzers decides, and percentages do not; remove one of both".to_owned()
        });
        lints
            .chain(repeated(listed))
            .chain(by_list)
            .chain(unseated(listed).filter(|_| !is_slo))
            .chain(off)
            .collect()
    }

    fn judge(document: SaturationDocument, kind: EntryKind) -> DocumentVerdict<Self> {
        let mut faults = Vec::new();
        judge_thresholds(&document, &mut faults);
        judge_band(&document, kind, &mut faults);
        let reserves = BurstReserve::ALL.map(|one| (one.as_str(), one));
        let wanted = "burstReserve must be none, economical or strict";
        let usual = "write economical for the usual one";
        let written = document.burst_reserve.as_deref();
        let burst_reserve = named(written, &reserves, (wanted, usual), &mut faults);
        let modes = ActuationMode::ALL.map(|one| (one.as_str(), one));
        let wanted = "actuation must be scaler or direct";
        let usual = "write scaler where an HPA or KEDA follows";
        let written = document.actuation.as_deref();
        let actuation = named(written, &modes, (wanted, usual), &mut faults);
        let inherited = own_band(&document);
        let analyzers = document.analyzers.map(|analyzers| {
            analyzers
                .into_iter()
                .map(|analyzer| judge_analyzer(analyzer, inherited, kind, &mut faults))
                .collect()
        });
        let limiters = document.limiters.map(|limiters| judge_limiters(limiters, &mut faults));
        if !faults.is_empty() {
            return DocumentVerdict::Refused(faults);
        }
        DocumentVerdict::Whole(Self {
            kv_cache_threshold: document.kv_cache_threshold,
            queue_length_threshold: document.queue_length_threshold,
            kv_spare_trigger: document.kv_spare_trigger,
            queue_spare_trigger: document.queue_spare_trigger,
            enable_limiter: document.enable_limiter,
            enable_rescale: document.enable_rescale,
            analyzer_name: document.analyzer_name,
            scale_up_threshold: document.scale_up_threshold,
            scale_down_boundary: document.scale_down_boundary,
            burst_reserve,
            actuation,
            without: None,
            priority: document.priority,
            analyzers,
            limiters,
            scale_to_zero: document.scale_to_zero.and_then(|zero| zero.enabled),
        })
    }
}

fn named<T: Copy>(
    written: Option<&str>,
    known: &[(&str, T)],
    (wanted, usual): (&str, &str),
    faults: &mut Vec<String>,
) -> Option<T> {
    let written = written?;
    let found = known.iter().find(|(name, _)| *name == written);
    if found.is_none() {
        faults.push(format!("{wanted}, got {written:?}: {usual}"));
    }
    found.map(|(_, one)| *one)
}

fn judge_analyzer(
    document: AnalyzerDocument,
    inherited: StatedBand,
    kind_of_entry: EntryKind,
    faults: &mut Vec<String>,
) -> AnalyzerSettings {
    let parameters = document.parameters.unwrap_or_default();
    let name = document.name.unwrap_or_default();
    let kind = document.kind.unwrap_or_else(|| name.clone());
    let label = if name.is_empty() { &kind } else { &name };
    if label.is_empty() {
        faults.push("analyzers: a name is required: write name: saturation".to_owned());
    }
    let settings = AnalyzerSettings {
        enabled: document.enabled.or(parameters.enabled).unwrap_or(true),
        score: document.score.or(parameters.score).unwrap_or(1.0),
        scale_up_threshold: document.scale_up_threshold.or(parameters.scale_up_threshold),
        scale_down_boundary: document.scale_down_boundary.or(parameters.scale_down_boundary),
        kind: kind.clone(),
    };
    if let Some(fault) = weight_fault("score", settings.score) {
        faults.push(format!("analyzer {label:?}: {fault}"));
    }
    let stated = StatedBand::from(&settings).over(inherited);
    let fault = match kind_of_entry {
        EntryKind::Default => stated.completed(settings.analysis()).fault(),
        EntryKind::Model | EntryKind::Tier => stated.fault(),
    };
    faults.extend(fault.map(|fault| format!("analyzer {label:?}: {fault}")));
    settings
}

/// Analyzers that are listed again. The documented rule is that the first enabled one counts.
fn repeated(analyzers: &[AnalyzerSettings]) -> impl Iterator<Item = String> {
    let listed = analyzers.iter().enumerate();
    listed.filter_map(|(index, analyzer)| {
        let alike = || (analyzers.iter().enumerate()).filter(|(_, one)| one.kind == analyzer.kind);
        let counting = alike().find(|(_, one)| one.enabled).or_else(|| alike().next());
        (counting.is_some_and(|(counts, _)| counts != index)).then(|| {
            format!(
                "analyzers[{index}]: {:?} stands more than once; the first enabled one counts, remove \
                 the others",
                analyzer.kind
            )
        })
    })
}

/// What a list does that gives saturation no vote.
fn unseated(analyzers: &[AnalyzerSettings]) -> Option<String> {
    if !lacks_saturation_vote(analyzers) {
        return None;
    }
    let is_enabled = analyzers.iter().any(|analyzer| analyzer.enabled);
    let said = if is_enabled {
        "saturation is not enabled among them, so that nothing vetoes a scale-down on the pressure in \
         KV caches; list it with them unless that is meant"
    } else {
        "none of them is enabled, so that none of them sizes a model: unless the queueing model is \
         selected by its own ConfigMap, every count stays as it is; enable one, or remove the list, \
         which leaves it to saturation"
    };
    Some(format!("analyzers: {said}"))
}

/// Switches of whole budgets that stand where they are not read.
fn out_of_scope(
    document: &SaturationDocument,
    kind: EntryKind,
    scope: Option<&str>,
) -> Vec<String> {
    let is_of_cluster = scope.is_none() && kind == EntryKind::Default;
    let of_cluster = [
        ("enableLimiter", document.enable_limiter.is_some()),
        ("limiters", document.limiters.is_some()),
    ];
    let of_cluster =
        of_cluster.into_iter().filter(|(_, is_set)| *is_set && !is_of_cluster).map(|(field, _)| {
            format!("{field}: only the global entry `default` is asked; write it there")
        });
    let of_budget = document.enable_rescale.is_some() && kind != EntryKind::Default;
    let of_budget = of_budget.then(|| {
        let asked = "only an entry `default` is asked, of the cluster or of a namespace";
        format!("enableRescale: {asked}; write it there")
    });
    of_cluster.chain(of_budget).collect()
}

/// What `analyzerName` selects; anything else is the percentage-based analysis, too.
const SELECTORS: [&str; 4] = [SATURATION, SLO, PERCENTAGE, ""];

const PERCENTAGE: &str = "percentage";

const KINDS: [&str; 4] = [
    AnalyzerName::Saturation.as_str(),
    AnalyzerName::Throughput.as_str(),
    AnalyzerName::QueueingModel.as_str(),
    AnalyzerName::Slo.as_str(),
];

fn strange_name<const N: usize>(name: &str, known: [&'static str; N]) -> String {
    let known: Vec<&str> = known.into_iter().filter(|name| !name.is_empty()).collect();
    format!(
        "{} is no analyzer and is ignored; write one of {}",
        with_suggestion(name, known.iter().copied()),
        known.join(", ")
    )
}

/// Rules of the percentage-based analysis, on the fields that are written.
fn judge_thresholds(document: &SaturationDocument, faults: &mut Vec<String>) {
    for (name, share, usual) in [
        ("kvCacheThreshold", document.kv_cache_threshold, "0.80"),
        ("kvSpareTrigger", document.kv_spare_trigger, "0.10"),
    ] {
        if let Some(share) = share.filter(|share| !(0.0..=1.0).contains(share)) {
            faults.push(format!(
                "{name} must be between 0 and 1, got {}: write a share like {usual}",
                decimal(share, 2)
            ));
        }
    }
    for (name, length) in [
        ("queueLengthThreshold", document.queue_length_threshold),
        ("queueSpareTrigger", document.queue_spare_trigger),
    ] {
        if let Some(length) = length.filter(|length| !length.is_finite() || *length < 0.0) {
            faults.push(format!(
                "{name} must be >= 0, got {}: write a number of requests like 5",
                decimal(length, 1)
            ));
        }
    }
    if let (Some(threshold), Some(spare)) = (document.kv_cache_threshold, document.kv_spare_trigger)
        && let Some(fault) = kv_fault(threshold, spare)
    {
        faults.push(fault);
    }
    if let (Some(threshold), Some(spare)) =
        (document.queue_length_threshold, document.queue_spare_trigger)
        && !selects_tokens(document)
        && let Some(fault) = queue_fault(threshold, spare)
    {
        faults.push(fault);
    }
    if let Some(fault) = (document.priority).and_then(|priority| weight_fault("priority", priority))
    {
        faults.push(fault);
    }
}

/// What is wrong with a weight. A priority of 0 is documented as "not set"; a score of 0 is none.
fn weight_fault(name: &str, weight: f64) -> Option<String> {
    if !weight.is_finite() || weight < 0.0 {
        Some(format!("{name} must be >= 0, got {}: write 1 for the usual one", decimal(weight, 2)))
    } else if weight > MAX_WEIGHT || (weight > 0.0 && weight < MAX_WEIGHT.recip()) {
        Some(format!(
            "{name} must be 0 or between {:e} and {MAX_WEIGHT:e}, got {weight:e}: write 1 for the usual \
             one",
            MAX_WEIGHT.recip()
        ))
    } else {
        None
    }
}

/// Rules of the token-based analysis. They bind an entry that selects it; another one may carry
/// anything in these fields. A share that is stated alone meets what the entry inherits, which is known for a default.
fn judge_band(document: &SaturationDocument, kind: EntryKind, faults: &mut Vec<String>) {
    let own = own_band(document);
    let analysis = if document.analyzer_name.as_deref() == Some(SLO) {
        SaturationMethod::Slo
    } else {
        SaturationMethod::Tokens
    };
    let fault = match kind {
        EntryKind::Default => own.completed(analysis).fault(),
        EntryKind::Model | EntryKind::Tier => own.fault(),
    };
    faults.extend(fault.filter(|_| selects_tokens(document)));
}

fn selects_tokens(document: &SaturationDocument) -> bool {
    let listed = document.analyzers.as_ref();
    matches!(document.analyzer_name.as_deref(), Some(SATURATION | SLO))
        || listed.is_some_and(|list| !list.is_empty())
}

fn own_band(document: &SaturationDocument) -> StatedBand {
    StatedBand {
        scale_up_threshold: document.scale_up_threshold,
        scale_down_boundary: document.scale_down_boundary,
    }
}
