//! The policies that can be played, by name. Each has one knob for its headroom.

mod apa;
mod controller;
mod dynamo;
mod hpa;
mod hybrid;
mod kpa;
mod signals;
mod slo;
#[cfg(test)]
mod tests;

pub(super) use controller::{ControllerSetup, controller};
pub(super) use hpa::ZeroStep;
pub(super) use signals::{Peer, PeerModel, read_signals};

use wva::policy::params::{SaturationThresholds, SloTerm};

use self::apa::Apa;
use self::dynamo::DynamoLoad;
use self::hpa::HpaPeer;
use self::hybrid::DynamoHybrid;
use self::kpa::Kpa;
use self::slo::KedaSlo;

/// The family whose terms can be left out, and what stands between its name and that of a term.
const SLO: &str = "wva-slo";
const WITHOUT: &str = "-without-";
/// What the controller's `scaleDownBoundary` is below its `scaleUpThreshold`, where the latter is the knob.
const BAND: f64 = 0.15;
/// Bounds of other knobs: an HPA reads thousandths.
const KNOBS: (f64, f64) = (0.001, 1e6);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PolicyKind {
    /// The controller of this repository, unmodified, with ConfigMaps.
    Controller,
    Static,
    /// The smallest fixed number that meets the objective.
    StaticBest,
    Peer,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PolicyFamily {
    pub name: &'static str,
    pub about: &'static str,
    pub kind: PolicyKind,
    pub knob: &'static str,
    /// Its default; none where the policy has no knob.
    pub default: Option<f64>,
    pub sweep: &'static [f64],
}

/// What a knob is called, its default, and the points of a sweep.
type Knob = (&'static str, Option<f64>, &'static [f64]);

const TRIGGER: Knob = ("queueSpareTrigger", None, &[2.0, 3.0, 4.0]);
const THRESHOLD: Knob = ("scaleUpThreshold", None, &[0.75, 0.85, 0.95]);
const SLO_THRESHOLD: Knob = ("scaleUpThreshold", None, &[0.7, 0.85, 0.95]);
const SHARE: Knob = ("share of the objective", Some(1.0), &[0.5, 0.75, 1.0]);
const RUNNING: Knob = ("running requests per replica", Some(16.0), &[8.0, 12.0, 16.0]);
const REPLICAS: Knob = ("replicas", None, &[]);

const fn family(
    name: &'static str,
    kind: PolicyKind,
    about: &'static str,
    (knob, default, sweep): Knob,
) -> PolicyFamily {
    PolicyFamily { name, about, kind, knob, default, sweep }
}

const STATIC: PolicyFamily =
    family("static", PolicyKind::Static, "a fixed number of replicas: static-4", REPLICAS);

const fn controlled(name: &'static str, about: &'static str, knob: Knob) -> PolicyFamily {
    family(name, PolicyKind::Controller, about, knob)
}

const fn peer(name: &'static str, about: &'static str, knob: Knob) -> PolicyFamily {
    family(name, PolicyKind::Peer, about, knob)
}

pub(crate) const POLICIES: &[PolicyFamily] = &[
    controlled("wva-default", "the controller where nothing is chosen", TRIGGER),
    controlled(
        "wva-chart",
        "wva-default with the original chart's HPA windows of 240 s and interval of 60 s",
        TRIGGER,
    ),
    controlled("wva-tokens", "the controller with analyzerName saturation", THRESHOLD),
    controlled("wva-throughput", "the controller with the throughput analyzer alone", THRESHOLD),
    controlled(
        "wva-queueing",
        "the controller with the queueing model; its targets are the objective times the knob",
        ("share of the objective", Some(0.75), &[0.5, 0.75, 1.0]),
    ),
    controlled(
        "wva-slo",
        "the controller with analyzerName slo and the objective as a service class",
        SLO_THRESHOLD,
    ),
    controlled("wva-slo-none", "wva-slo with burstReserve none", SLO_THRESHOLD),
    controlled("wva-slo-strict", "wva-slo with burstReserve strict", SLO_THRESHOLD),
    STATIC,
    family(
        "static-best",
        PolicyKind::StaticBest,
        "the smallest fixed fleet that meets the objective for 99 % of the requests, by search",
        REPLICAS,
    ),
    peer(
        "hpa-queue",
        "HPA on the mean queue of the servers, with its default behavior (Kubernetes, GKE guide)",
        ("queue per replica", Some(5.0), &[2.0, 5.0, 10.0]),
    ),
    peer(
        "hpa-kv",
        "HPA on the mean KV usage of the servers, with its default behavior (Kubernetes, GKE guide)",
        ("KV usage per replica", Some(0.8), &[0.4, 0.6, 0.8]),
    ),
    peer(
        "keda-epp",
        "KEDA on the router's queue (1) and running requests (llm-d guides, keda-epp-queue)",
        RUNNING,
    ),
    peer(
        "keda-saturation",
        "KEDA on the saturation of the pool (0.7) and running requests (llm-d guides)",
        RUNNING,
    ),
    peer(
        "keda-token",
        "KEDA on queued prompt tokens over prefill speed and on KV usage (llm-d guides)",
        ("KV usage per replica", Some(0.8), &[0.6, 0.7, 0.8]),
    ),
    peer(
        "keda-slo",
        "KEDA on latency over the objective, up above 0.55 and down below 0.40 (llm-d guides)",
        SHARE,
    ),
    peer(
        "knative-kpa",
        "Knative's KPA on concurrency, windows 60 s and 6 s, utilization 70 % (knative/serving)",
        (
            "concurrency, as a share of what a server holds within the objective",
            Some(1.0),
            &[0.5, 0.75, 1.0],
        ),
    ),
    peer(
        "aibrix-apa",
        "AIBrix's APA on KV usage, tolerances 0.1, rates 2, windows 180 s and, down, 300 s (aibrix apa.go)",
        ("KV usage per replica", Some(0.5), &[0.3, 0.5, 0.7]),
    ),
    peer(
        "dynamo-load",
        "Dynamo's load planner: one replica at a time by estimated latency (ai-dynamo 1.6.1)",
        SHARE,
    ),
    peer(
        "dynamo-hybrid",
        "Dynamo's load planner above a floor of forecast demand, every 180 s (ai-dynamo 1.6.1)",
        SHARE,
    ),
];

impl PolicyFamily {
    /// Refuses a value of the knob that the policy would not play by.
    fn accept(&self, knob: f64) -> Result<(), String> {
        let is_whole = self.kind == PolicyKind::Static;
        let (above, most) = match self.knob {
            "scaleUpThreshold" => (BAND, 1.0),
            // The controller refuses a trigger above the threshold, and goes by its defaults.
            "queueSpareTrigger" => (0.0, SaturationThresholds::default().queue_length_threshold),
            _ if is_whole => (0.0, KNOBS.1),
            _ => KNOBS,
        };
        if above < knob && knob <= most && (!is_whole || knob.fract() <= 0.0) {
            return Ok(());
        }
        let number = if is_whole { "whole number" } else { "number" };
        Err(format!(
            "a {number} above {above} and at most {most} as {} of {}",
            self.knob, self.name
        ))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PolicyChoice {
    /// The name as given, the second part of file names.
    pub name: String,
    pub family: &'static PolicyFamily,
    /// The knob; none where it stands at its default.
    pub knob: Option<f64>,
    pub without: Option<SloTerm>,
}

impl PolicyChoice {
    /// Reads a name: that of a family, or of a family with a dash and a value of its knob.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        let named = |name: &str| POLICIES.iter().find(|one| one.name == name);
        let choice = |family, knob| Self { name: name.to_owned(), family, knob, without: None };
        if let Some((family, term)) = name.split_once(WITHOUT) {
            let mut terms = SloTerm::ALL.into_iter();
            let without = terms.find(|one| one.as_str() == term);
            let family = named(family).filter(|family| family.name == SLO && without.is_some());
            let chosen = family.map(|family| Self { without, ..choice(family, None) });
            return chosen.ok_or_else(|| {
                let terms = SloTerm::ALL.map(SloTerm::as_str).join(", ");
                format!("wva-slo-without- and one of {terms}")
            });
        }
        let exact = named(name).filter(|family| family.kind != PolicyKind::Static);
        if let Some(family) = exact {
            return Ok(choice(family, family.default));
        }
        let tuned = name.rsplit_once('-').and_then(|(family, knob)| {
            let family = named(family).filter(|one| one.kind != PolicyKind::StaticBest)?;
            Some((family, knob.parse::<f64>().ok()?))
        });
        let Some((family, knob)) = tuned else {
            let known: Vec<&str> = POLICIES.iter().map(|one| one.name).collect();
            return Err(format!(
                "one of {}, or one with a value of its knob, for example static-4 or keda-epp-12",
                known.join(", ")
            ));
        };
        family.accept(knob)?;
        Ok(choice(family, Some(knob)))
    }

    /// The points of a sweep over the knob; the policy itself where it has none, or leaves a term out.
    pub(crate) fn sweep(&self) -> Vec<Self> {
        if self.family.sweep.is_empty() || self.without.is_some() {
            return vec![self.clone()];
        }
        let points = self.family.sweep.iter();
        points
            .map(|knob| Self {
                name: format!("{}-{knob}", self.family.name),
                knob: Some(*knob),
                ..self.clone()
            })
            .collect()
    }

    pub(super) fn fixed(replicas: u32) -> Self {
        Self {
            name: format!("static-{replicas}"),
            family: &STATIC,
            knob: Some(f64::from(replicas)),
            without: None,
        }
    }

    /// The rule that decides for one model; none where the controller or nothing decides.
    pub(super) fn peer(&self, model: &PeerModel) -> Option<Box<dyn Peer>> {
        let knob = self.knob.or(self.family.default)?;
        Some(match self.family.name {
            "hpa-queue" => Box::new(HpaPeer::queue(model, knob)),
            "hpa-kv" => Box::new(HpaPeer::kv(model, knob)),
            "keda-epp" => Box::new(HpaPeer::router(model, knob)),
            "keda-saturation" => Box::new(HpaPeer::saturation(model, knob)),
            "keda-token" => Box::new(HpaPeer::tokens(model, knob)),
            "keda-slo" => Box::new(KedaSlo::new(model, knob)),
            "knative-kpa" => Box::new(Kpa::new(model, knob)),
            "aibrix-apa" => Box::new(Apa::new(model, knob)),
            "dynamo-load" => Box::new(DynamoLoad::new(model, knob)),
            "dynamo-hybrid" => Box::new(DynamoHybrid::new(model, knob)),
            _ => return None,
        })
    }
}
