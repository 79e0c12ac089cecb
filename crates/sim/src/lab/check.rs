//! What is wrong with a scenario: the field, its value, and what to write instead.

use std::collections::BTreeSet;
use std::fmt::Display;

use super::schema::{
    AsleepSpec, LabModel, LabScenario, LatencySlo, LoadPart, TimeSpan, TokenSpec, VariantSpec,
};
use crate::engine::Profile;
use wva::policy::capacity::ServingRole;

type Checked = Result<(), String>;

impl LabScenario {
    /// Refuses the value of a field, unless what it must keep to holds.
    fn hold(
        &self,
        holds: bool,
        field: impl Display,
        value: impl Display,
        remedy: impl Display,
    ) -> Checked {
        if holds {
            return Ok(());
        }
        let name = &self.name;
        Err(format!("scenario {name}: {field} is {value}; {remedy}"))
    }

    fn lasts(&self, time: TimeSpan, field: impl Display, remedy: &str) -> Checked {
        self.hold(!time.0.is_zero(), field, "0s", remedy)
    }

    pub(super) fn check(&self) -> Checked {
        let is_word = |name: &str| {
            let letters = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
            !name.is_empty() && name.chars().all(letters) && !name.contains("__")
        };
        let name = format!("{:?}", self.name);
        let remedy = "give letters, digits and dashes";
        self.hold(is_word(&self.name), "name", name, remedy)?;
        self.lasts(self.duration, "duration", "give a longer time")?;
        self.lasts(self.interval, "interval", "give a longer time")?;
        self.lasts(self.scrape, "scrape", "give a longer time")?;
        self.check_actuation()?;
        let has_models = !self.models.is_empty();
        self.hold(has_models, "models", "empty", "give at least one model")?;
        let (mut names, mut ids) = (BTreeSet::new(), BTreeSet::new());
        for (place, model) in self.models.iter().enumerate() {
            let path = format!("models[{place}]");
            for name in std::iter::once(&model.name).chain(model.variants.iter().map(|v| &v.name)) {
                let is_new = names.insert(name.as_str());
                let remedy =
                    "give every model and variant a name of its own, of letters, digits and dashes";
                let field = format!("{path}.name");
                self.hold(is_new && is_word(name), field, format!("{name:?}"), remedy)?;
            }
            // Series and requests name the id alone.
            let is_new = ids.insert(model.id.as_str());
            let (field, id) = (format!("{path}.id"), format!("{:?}", model.id));
            self.hold(is_new, field, id, "give every model an id of its own")?;
            self.check_model(&path, model)?;
        }
        self.check_gpus()
    }

    fn check_actuation(&self) -> Checked {
        let actuation = &self.actuation;
        let ways = [actuation.hpa.is_some(), actuation.direct.is_some(), actuation.keda.is_some()];
        let count = ways.iter().filter(|given| **given).count();
        let remedy = "give one of hpa, direct and keda";
        self.hold(count < 2, "actuation", format!("{count} ways at once"), remedy)?;
        if let Some(hpa) = actuation.hpa {
            let remedy = "give at least 1, or leave it out for the default of Kubernetes";
            self.hold(hpa.pods != Some(0), "actuation.hpa.pods", 0, remedy)?;
            self.lasts(hpa.sync, "actuation.hpa.sync", "give a longer time")?;
        }
        actuation.keda.map_or(Ok(()), |keda| {
            self.lasts(keda.poll, "actuation.keda.poll", "give a longer time")
        })
    }

    fn check_model(&self, path: &str, model: &LabModel) -> Checked {
        self.slo(path, model.slo)?;
        self.share(model.router.kv_usage, format!("{path}.router.kvUsage"))?;
        let (has_variants, remedy) = (!model.variants.is_empty(), "give at least one variant");
        self.hold(has_variants, format!("{path}.variants"), "empty", remedy)?;
        for (place, variant) in model.variants.iter().enumerate() {
            self.variant(&format!("{path}.variants[{place}]"), variant)?;
        }
        self.roles(path, model)?;
        let (has_load, remedy) = (!model.load.is_empty(), "give at least one part");
        self.hold(has_load, format!("{path}.load"), "empty", remedy)?;
        for (place, part) in model.load.iter().enumerate() {
            self.part(&format!("{path}.load[{place}]"), part)?;
        }
        Ok(())
    }

    fn share(&self, share: f64, field: String) -> Checked {
        let holds = (0.0..=1.0).contains(&share);
        self.hold(holds, field, share, "give a share from 0 to 1")
    }

    fn sigma(&self, sigma: f64, field: String) -> Checked {
        let holds = (0.0..=3.0).contains(&sigma);
        self.hold(holds, field, sigma, "give a number from 0 to 3")
    }

    fn slo(&self, path: &str, slo: LatencySlo) -> Checked {
        let remedy = "give the longest time that is good";
        self.lasts(slo.ttft, format!("{path}.slo.ttft"), remedy)?;
        self.lasts(slo.itl, format!("{path}.slo.itl"), remedy)?;
        let quantile = slo.quantile.unwrap_or(1.0);
        let holds = quantile > 0.0 && quantile <= 1.0;
        let remedy = "give a share above 0 and at most 1, for example 0.95";
        self.hold(holds, format!("{path}.slo.quantile"), quantile, remedy)
    }

    fn roles(&self, path: &str, model: &LabModel) -> Checked {
        let roles: BTreeSet<ServingRole> = model.variants.iter().map(|one| one.role).collect();
        let parts = BTreeSet::from([ServingRole::Prefill, ServingRole::Decode]);
        let holds = roles == parts || roles == BTreeSet::from([ServingRole::Both]);
        let names: Vec<String> = roles.iter().map(ToString::to_string).collect();
        let remedy = "give prefill and decode variants, or variants without a role";
        let field = format!("{path}.variants[].role");
        self.hold(holds, field, names.join(", "), remedy)
    }

    fn variant(&self, path: &str, variant: &VariantSpec) -> Checked {
        let field = |field: &str| format!("{path}.{field}");
        let VariantSpec { cost, min, max, .. } = *variant;
        let names = Profile::ALL.map(|one| format!("{:?}", one.name));
        let remedy = format!("give one of {}", names.join(", "));
        let is_known = profile(&variant.profile).is_some();
        let value = format!("{:?}", variant.profile);
        self.hold(is_known, field("profile"), value, remedy)?;
        let limits = variant.limits;
        for (name, value) in [
            ("gpus", variant.gpus),
            ("limits.maxNumSeqs", limits.max_num_seqs),
            ("limits.maxNumBatchedTokens", limits.max_num_batched_tokens),
            ("limits.maxModelLen", limits.max_model_len),
            ("limits.blockSize", limits.block_size),
        ] {
            self.hold(value > 0, field(name), value, "give at least 1")?;
        }
        let holds = cost > 0.0 && cost.is_finite();
        self.hold(holds, field("cost"), cost, "give a cost above 0")?;
        let remedy = format!("give at least 1 and at least min, {min}");
        self.hold(max > 0 && max >= min, field("max"), max, remedy)?;
        let holds = (min..=max).contains(&variant.replicas);
        let remedy = format!("give a count from {min} to {max}");
        self.hold(holds, field("replicas"), variant.replicas, remedy)?;
        self.start_up(path, variant)
    }

    fn start_up(&self, path: &str, variant: &VariantSpec) -> Checked {
        let field = |field: &str| format!("{path}.startUp.{field}");
        let (median, sigma) = (variant.start_up.median(), variant.start_up.sigma);
        self.lasts(TimeSpan(median), field("median"), "give a time above 0")?;
        self.sigma(sigma, field("sigma"))?;
        let Some(AsleepSpec { count, wake }) = variant.start_up.asleep else {
            return Ok(());
        };
        let remedy = format!("give a count from 1 to max, {}", variant.max);
        let holds = (1..=variant.max).contains(&count);
        self.hold(holds, field("asleep.count"), count, remedy)?;
        let holds = !wake.0.is_zero() && wake.0 < median;
        let [value, median] = [wake.0, median].map(humantime::format_duration);
        let remedy = format!("give a time above 0 and below that of a start, {median}");
        self.hold(holds, field("asleep.wake"), value, remedy)
    }

    fn part(&self, path: &str, part: &LoadPart) -> Checked {
        let field = |field: &str| format!("{path}.{field}");
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
        let remedy = "give one of constant, step, ramp, wave, burst, stages and trace";
        self.hold(count == 1, path, format!("{count} loads at once"), remedy)?;
        if let Some(trace) = &part.trace {
            let is_plain = part.lengths.is_none() && part.sharing.is_none();
            let remedy = "leave lengths and sharing out; the trace has its own";
            self.hold(is_plain, path, "a trace with lengths", remedy)?;
            let holds = trace.scale > 0.0 && trace.scale <= 1_000.0;
            let remedy = "give a factor above 0 and up to 1000";
            self.hold(holds, field("trace.scale"), trace.scale, remedy)?;
            let holds = trace.to.is_none_or(|to| to > trace.from);
            let value = humantime::format_duration(trace.to.unwrap_or_default().0);
            return self.hold(holds, field("trace.to"), value, "give a time after `from`");
        }
        let Some(lengths) = &part.lengths else {
            let remedy = "give {prompt: {median: …}, output: {median: …}}";
            return self.hold(false, field("lengths"), "missing", remedy);
        };
        if let Some(sharing) = part.sharing {
            self.share(sharing.share, field("sharing.share"))?;
            let holds = sharing.texts > 0;
            self.hold(holds, field("sharing.texts"), 0, "give at least 1")?;
        }
        self.tokens(&field("lengths.prompt"), lengths.prompt)?;
        self.tokens(&field("lengths.output"), lengths.output)
    }

    fn tokens(&self, path: &str, tokens: TokenSpec) -> Checked {
        let holds = (1.0..=10_000_000.0).contains(&tokens.median);
        let remedy = "give a number of tokens from 1";
        self.hold(holds, format!("{path}.median"), tokens.median, remedy)?;
        self.sigma(tokens.sigma, format!("{path}.sigma"))
    }

    /// The nodes must hold what the bounds allow: a bound that cannot be reached flatters no policy.
    fn check_gpus(&self) -> Checked {
        let variants = self.models.iter().flat_map(|model| &model.variants);
        for variant in variants.clone() {
            let needed: u32 = variants
                .clone()
                .filter(|other| other.product == variant.product)
                .map(|other| other.max.saturating_mul(other.gpus))
                .sum();
            let nodes = self.nodes.iter();
            let present: u32 = nodes
                .filter(|node| node.product == variant.product)
                .map(|node| node.count.saturating_mul(node.gpus))
                .sum();
            let field = format!("nodes with product {}", variant.product);
            let remedy = format!("give {needed}, or lower max of its variants");
            self.hold(present >= needed, field, format!("{present} GPUs"), remedy)?;
        }
        Ok(())
    }
}

pub(super) fn profile(name: &str) -> Option<Profile> {
    Profile::ALL.into_iter().find(|one| one.name == name)
}
