//! What is wrong with a scenario: the field, its value, and what to write instead.

use std::collections::BTreeSet;
use std::fmt::Display;

use super::schema::{
    ActuationSpec, AsleepSpec, LabModel, LabScenario, LatencySlo, LoadPart, TokenSpec, VariantSpec,
};
use crate::engine::Profile;
use wva::policy::capacity::ServingRole;

pub(super) struct Checker<'a> {
    scenario: &'a LabScenario,
}

type Checked = Result<(), String>;

pub(super) fn check(scenario: &LabScenario) -> Checked {
    Checker { scenario }.all()
}

impl Checker<'_> {
    fn wrong(&self, field: impl Display, value: impl Display, remedy: impl Display) -> Checked {
        let name = &self.scenario.name;
        Err(format!("scenario {name}: {field} is {value}; {remedy}"))
    }

    /// The same for a field below another one.
    fn wrong_in(
        &self,
        path: &str,
        field: &str,
        value: impl Display,
        remedy: impl Display,
    ) -> Checked {
        self.wrong(format_args!("{path}.{field}"), value, remedy)
    }

    fn all(&self) -> Checked {
        let one = self.scenario;
        let is_word = |name: &str| {
            let letters = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
            !name.is_empty() && name.chars().all(letters) && !name.contains("__")
        };
        if !is_word(&one.name) {
            let remedy = "give letters, digits and dashes";
            return self.wrong("name", format_args!("{:?}", one.name), remedy);
        }
        for (field, time) in [
            ("duration", one.duration),
            ("interval", one.interval),
            ("scrape", one.scrape),
        ] {
            if time.0.is_zero() {
                return self.wrong(field, "0s", "give a longer time");
            }
        }
        self.actuation(&one.actuation)?;
        if one.models.is_empty() {
            return self.wrong("models", "empty", "give at least one model");
        }
        let (mut names, mut ids) = (BTreeSet::new(), BTreeSet::new());
        for (place, model) in one.models.iter().enumerate() {
            let path = format!("models[{place}]");
            for name in std::iter::once(&model.name).chain(model.variants.iter().map(|v| &v.name)) {
                let is_new = names.insert(name.as_str());
                if !is_new || !is_word(name) {
                    let remedy = "give every model and variant a name of its own, of letters, digits and dashes";
                    return self.wrong_in(&path, "name", format_args!("{name:?}"), remedy);
                }
            }
            if !ids.insert(model.id.as_str()) {
                // Series and requests name the id alone.
                let remedy = "give every model an id of its own";
                return self.wrong_in(&path, "id", format_args!("{:?}", model.id), remedy);
            }
            self.model(&path, model)?;
        }
        self.gpus()
    }

    fn actuation(&self, actuation: &ActuationSpec) -> Checked {
        let ways = [
            actuation.hpa.is_some(),
            actuation.direct.is_some(),
            actuation.keda.is_some(),
        ];
        let count = ways.iter().filter(|given| **given).count();
        if count > 1 {
            let value = format!("{count} ways at once");
            return self.wrong("actuation", value, "give one of hpa, direct and keda");
        }
        if actuation.hpa.and_then(|hpa| hpa.pods) == Some(0) {
            let remedy = "give at least 1, or leave it out for the default of Kubernetes";
            return self.wrong("actuation.hpa.pods", 0, remedy);
        }
        let times = actuation.hpa.map(|hpa| ("actuation.hpa.sync", hpa.sync));
        let polls = actuation
            .keda
            .map(|keda| ("actuation.keda.poll", keda.poll));
        let times = times.or(polls);
        if let Some((field, time)) = times
            && time.0.is_zero()
        {
            return self.wrong(field, "0s", "give a longer time");
        }
        Ok(())
    }

    fn model(&self, path: &str, model: &LabModel) -> Checked {
        self.slo(path, model.slo)?;
        if !(0.0..=1.0).contains(&model.router.kv_usage) {
            let value = model.router.kv_usage;
            return self.wrong_in(path, "router.kvUsage", value, "give a share from 0 to 1");
        }
        if model.variants.is_empty() {
            return self.wrong_in(path, "variants", "empty", "give at least one variant");
        }
        for (place, variant) in model.variants.iter().enumerate() {
            self.variant(&format!("{path}.variants[{place}]"), variant)?;
        }
        self.roles(path, model)?;
        if model.load.is_empty() {
            return self.wrong_in(path, "load", "empty", "give at least one part");
        }
        for (place, part) in model.load.iter().enumerate() {
            self.part(&format!("{path}.load[{place}]"), part)?;
        }
        Ok(())
    }

    fn slo(&self, path: &str, slo: LatencySlo) -> Checked {
        for (field, time) in [("ttft", slo.ttft), ("itl", slo.itl)] {
            if time.0.is_zero() {
                let remedy = "give the longest time that is good";
                return self.wrong(format!("{path}.slo.{field}"), "0s", remedy);
            }
        }
        match slo.quantile {
            Some(quantile) if !(quantile > 0.0 && quantile <= 1.0) => {
                let remedy = "give a share above 0 and at most 1, for example 0.95";
                self.wrong_in(path, "slo.quantile", quantile, remedy)
            }
            _ => Ok(()),
        }
    }

    fn roles(&self, path: &str, model: &LabModel) -> Checked {
        let roles: BTreeSet<ServingRole> = model.variants.iter().map(|one| one.role).collect();
        let parts = BTreeSet::from([ServingRole::Prefill, ServingRole::Decode]);
        if roles == parts || roles == BTreeSet::from([ServingRole::Both]) {
            return Ok(());
        }
        let names: Vec<String> = roles.iter().map(ToString::to_string).collect();
        let remedy = "give prefill and decode variants, or variants without a role";
        self.wrong_in(path, "variants[].role", names.join(", "), remedy)
    }

    fn variant(&self, path: &str, variant: &VariantSpec) -> Checked {
        if profile(&variant.profile).is_none() {
            let names = Profile::ALL.map(|one| format!("{:?}", one.name));
            let remedy = format!("give one of {}", names.join(", "));
            let value = format!("{:?}", variant.profile);
            return self.wrong_in(path, "profile", value, remedy);
        }
        if variant.gpus == 0 {
            return self.wrong_in(path, "gpus", 0, "give at least 1");
        }
        let limits = variant.limits;
        for (field, value) in [
            ("maxNumSeqs", limits.max_num_seqs),
            ("maxNumBatchedTokens", limits.max_num_batched_tokens),
            ("maxModelLen", limits.max_model_len),
            ("blockSize", limits.block_size),
        ] {
            if value == 0 {
                return self.wrong(format!("{path}.limits.{field}"), 0, "give at least 1");
            }
        }
        if !(variant.cost > 0.0 && variant.cost.is_finite()) {
            return self.wrong_in(path, "cost", variant.cost, "give a cost above 0");
        }
        if variant.max == 0 || variant.max < variant.min {
            let remedy = format!("give at least 1 and at least min, {}", variant.min);
            return self.wrong_in(path, "max", variant.max, remedy);
        }
        if !(variant.min..=variant.max).contains(&variant.replicas) {
            let remedy = format!("give a count from {} to {}", variant.min, variant.max);
            return self.wrong_in(path, "replicas", variant.replicas, remedy);
        }
        self.start_up(path, variant)
    }

    fn start_up(&self, path: &str, variant: &VariantSpec) -> Checked {
        let (median, sigma) = (variant.start_up.median(), variant.start_up.sigma);
        if median.is_zero() {
            return self.wrong_in(path, "startUp.median", "0s", "give a time above 0");
        }
        if !(0.0..=3.0).contains(&sigma) {
            return self.wrong_in(path, "startUp.sigma", sigma, "give a number from 0 to 3");
        }
        let Some(AsleepSpec { count, wake }) = variant.start_up.asleep else {
            return Ok(());
        };
        if !(1..=variant.max).contains(&count) {
            let remedy = format!("give a count from 1 to max, {}", variant.max);
            return self.wrong_in(path, "startUp.asleep.count", count, remedy);
        }
        if wake.0.is_zero() || wake.0 >= median {
            let [value, median] = [wake.0, median].map(humantime::format_duration);
            let remedy = format!("give a time above 0 and below that of a start, {median}");
            return self.wrong_in(path, "startUp.asleep.wake", value, remedy);
        }
        Ok(())
    }

    fn part(&self, path: &str, part: &LoadPart) -> Checked {
        part.slo.map_or(Ok(()), |slo| self.slo(path, slo))?;
        let kinds = [
            part.constant.is_some(),
            part.step.is_some(),
            part.ramp.is_some(),
            part.wave.is_some(),
            part.burst.is_some(),
            part.stages.is_some(),
            part.trace.is_some(),
        ];
        let count = kinds.iter().filter(|given| **given).count();
        if count != 1 {
            let remedy = "give one of constant, step, ramp, wave, burst, stages and trace";
            return self.wrong(path, format!("{count} loads at once"), remedy);
        }
        if let Some(trace) = &part.trace {
            if part.lengths.is_some() || part.sharing.is_some() {
                let remedy = "leave lengths and sharing out; the trace has its own";
                return self.wrong(path, "a trace with lengths", remedy);
            }
            if !(trace.scale > 0.0 && trace.scale <= 1_000.0) {
                let remedy = "give a factor above 0 and up to 1000";
                return self.wrong_in(path, "trace.scale", trace.scale, remedy);
            }
            if trace.to.is_some_and(|to| to <= trace.from) {
                let value = humantime::format_duration(trace.to.unwrap_or_default().0);
                return self.wrong_in(path, "trace.to", value, "give a time after `from`");
            }
            return Ok(());
        }
        let Some(lengths) = &part.lengths else {
            let remedy = "give {prompt: {median: …}, output: {median: …}}";
            return self.wrong_in(path, "lengths", "missing", remedy);
        };
        if let Some(sharing) = part.sharing {
            if !(0.0..=1.0).contains(&sharing.share) {
                let remedy = "give a share from 0 to 1";
                return self.wrong_in(path, "sharing.share", sharing.share, remedy);
            }
            if sharing.texts == 0 {
                return self.wrong_in(path, "sharing.texts", 0, "give at least 1");
            }
        }
        self.tokens(&format!("{path}.lengths.prompt"), lengths.prompt)?;
        self.tokens(&format!("{path}.lengths.output"), lengths.output)
    }

    fn tokens(&self, path: &str, tokens: TokenSpec) -> Checked {
        if !(tokens.median >= 1.0 && tokens.median <= 10_000_000.0) {
            let remedy = "give a number of tokens from 1";
            return self.wrong_in(path, "median", tokens.median, remedy);
        }
        if !(0.0..=3.0).contains(&tokens.sigma) {
            return self.wrong_in(path, "sigma", tokens.sigma, "give a number from 0 to 3");
        }
        Ok(())
    }

    /// The nodes must hold what the bounds allow: a bound that cannot be reached flatters no policy.
    fn gpus(&self) -> Checked {
        let variants = self
            .scenario
            .models
            .iter()
            .flat_map(|model| &model.variants);
        for variant in variants.clone() {
            let needed: u32 = variants
                .clone()
                .filter(|other| other.product == variant.product)
                .map(|other| other.max.saturating_mul(other.gpus))
                .sum();
            let nodes = self.scenario.nodes.iter();
            let present: u32 = nodes
                .filter(|node| node.product == variant.product)
                .map(|node| node.count.saturating_mul(node.gpus))
                .sum();
            if present < needed {
                let field = format!("nodes with product {}", variant.product);
                let remedy = format!("give {needed}, or lower max of its variants");
                return self.wrong(field, format!("{present} GPUs"), remedy);
            }
        }
        Ok(())
    }
}

pub(super) fn profile(name: &str) -> Option<Profile> {
    Profile::ALL.into_iter().find(|one| one.name == name)
}
