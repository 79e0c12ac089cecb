//! The report, as text and as JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::finding::{Finding, FindingGroup, FindingSeverity};
use super::object::ObjectName;
use wva_base::text::counted;

/// Where each code is explained.
const PAGE: &str = "docs/user-guide/findings.md";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckOutcome {
    Fine,
    Found(Vec<Finding>),
    /// It could not look, and why.
    Unseen(Vec<String>),
    /// It does not apply to this look.
    Skipped,
}

/// What KEDA makes of the target of a ScaledObject while no controller answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OutageForecast {
    pub object: ObjectName,
    /// The replicas that its target has then.
    pub replicas: i64,
    pub why: String,
}

impl OutageForecast {
    fn line(&self) -> String {
        format!("{}: {}, {}\n", self.object, counted(self.replicas, "replica"), self.why)
    }
}

/// What settings are accepted with: it does not act as it seems to, and keeps nothing from working.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SettingsNote {
    /// The ConfigMap that it is about, or the controller.
    pub object: ObjectName,
    /// What does not act, and the remedy.
    pub text: String,
}

impl SettingsNote {
    fn line(&self) -> String {
        format!("{}{}: {}\n", self.object, in_file(&self.object), self.text)
    }

    fn to_json(&self) -> Value {
        json!({
            "object": self.object,
            "file": self.object.file.as_deref(),
            "text": self.text,
        })
    }
}

/// The outcomes of all checks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnosis {
    lines: Vec<(FindingGroup, &'static str, CheckOutcome)>,
    /// How long the look of each group took.
    pub took: BTreeMap<FindingGroup, Duration>,
    /// What follows for targets that KEDA scales once no controller answers.
    pub outages: Vec<OutageForecast>,
    /// Remarks on settings.
    pub notes: Vec<SettingsNote>,
    /// Files that are templates or no manifests, and why they are not read.
    pub not_read: Vec<(String, String)>,
    /// Objects that were read of files.
    pub objects_read: Option<usize>,
}

wva_base::named! {
    /// What a diagnosis amounts to.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Verdict {
        /// Nothing is wrong.
        Fine = "fine",
        /// Something is.
        Findings = "findings",
        /// Nothing is known to be wrong, and not everything could be seen.
        Unseen = "unseen",
    }
}

impl Verdict {
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Findings => 1,
            Self::Unseen => 2,
        }
    }
}

impl Diagnosis {
    /// Adds the outcome of a check.
    pub fn add(&mut self, group: FindingGroup, title: &'static str, outcome: CheckOutcome) {
        self.lines.push((group, title, outcome));
    }

    /// Every finding, in the order of the report.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.lines.iter().flat_map(|(_, _, outcome)| match outcome {
            CheckOutcome::Found(found) => found.as_slice(),
            _ => &[],
        })
    }

    /// Every check that could not look, with why.
    pub fn unseen(&self) -> impl Iterator<Item = (&'static str, &[String])> {
        self.lines.iter().filter_map(|(_, title, outcome)| match outcome {
            CheckOutcome::Unseen(why) => Some((*title, why.as_slice())),
            _ => None,
        })
    }

    /// What it amounts to.
    pub fn verdict(&self) -> Verdict {
        if self.findings().next().is_some() {
            Verdict::Findings
        } else if self.unseen().next().is_some() {
            Verdict::Unseen
        } else {
            Verdict::Fine
        }
    }

    /// The report for people.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let mut said = BTreeSet::new();
        for group in FindingGroup::ALL {
            let lines = self.lines.iter().filter(|(of, _, _)| *of == group);
            let lines: String =
                lines.map(|(_, title, outcome)| line(title, outcome, &mut said)).collect();
            let took = self
                .took
                .get(&group)
                .map_or_else(String::new, |took| format!(" ({:.1} s)", took.as_secs_f64()));
            let heading = format!("{}{took}", group.as_str());
            text.push_str(&section(&heading, &lines));
        }
        let outages: String = self.outages.iter().map(OutageForecast::line).collect();
        text.push_str(&section("without a controller", &outages));
        let notes: String = self.notes.iter().map(SettingsNote::line).collect();
        text.push_str(&section("notes on settings", &notes));
        let not_read = self.not_read.iter();
        let not_read: Vec<String> =
            not_read.map(|(file, why)| format!("{file}: {why}\n")).collect();
        text.push_str(&section("not read", &not_read.concat()));
        text.push_str(&self.summary());
        text
    }

    fn summary(&self) -> String {
        let of = |severity| {
            let found = self.findings();
            found.filter(|finding| finding.code.spec().severity == severity).count()
        };
        let (errors, warnings) = (of(FindingSeverity::Error), of(FindingSeverity::Warning));
        let unseen = self.unseen().count();
        let blind = match unseen {
            0 => String::new(),
            checks => format!(", {} could not look", counted(checks, "check")),
        };
        let read =
            self.objects_read.map_or_else(String::new, |read| counted(read, "object") + " read, ");
        let (errors, warnings) = (counted(errors, "error"), counted(warnings, "warning"));
        format!("{read}{errors}, {warnings}{blind}\n")
    }

    /// The report for programs.
    pub fn to_json(&self) -> Value {
        let findings: Vec<Value> = self.findings().map(Finding::to_json).collect();
        let notes: Vec<Value> = self.notes.iter().map(SettingsNote::to_json).collect();
        let unseen = self.unseen().map(|(check, why)| json!({ "check": check, "why": why }));
        let took = self.took.iter().map(|(group, took)| (group.as_str(), took.as_secs_f64()));
        let mut document = json!({
            "verdict": self.verdict().as_str(),
            "findings": findings,
            "unseen": unseen.collect::<Vec<Value>>(),
            "outages": self.outages,
            "notes": notes,
            "seconds": took.collect::<BTreeMap<&str, f64>>(),
        });
        if let (Some(read), Some(fields)) = (self.objects_read, document.as_object_mut()) {
            fields.insert("objectsRead".to_owned(), json!(read));
            let files = self.not_read.iter();
            let files = files.map(|(file, why)| json!({ "file": file, "why": why }));
            fields.insert("notRead".to_owned(), files.collect());
        }
        document
    }
}

fn section(heading: &str, lines: &str) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let rule = "-".repeat(heading.len());
    format!("{heading}\n{rule}\n{lines}\n")
}

/// The lines of a check. What kept several from looking is said once.
fn line<'a>(title: &str, outcome: &'a CheckOutcome, said: &mut BTreeSet<&'a str>) -> String {
    match outcome {
        CheckOutcome::Fine => format!("√ {title}\n"),
        CheckOutcome::Skipped => String::new(),
        CheckOutcome::Unseen(why) => {
            let why = why.iter().map(|why| match why.split_once(": ") {
                _ if said.insert(why) => why.clone(),
                Some((what, _)) => format!("{what}: as above"),
                None => "as above".to_owned(),
            });
            let why = why.collect::<Vec<String>>().join("; ");
            format!("? {title}\n    could not look: {why}\n")
        }
        CheckOutcome::Found(found) => found.iter().map(lines).collect(),
    }
}

fn lines(finding: &Finding) -> String {
    let spec = finding.code.spec();
    let sign = match spec.severity {
        FindingSeverity::Error => '×',
        FindingSeverity::Warning => '‼',
    };
    let id = finding.code.id();
    let file = in_file(&finding.object);
    format!(
        "{sign} {id} {}: {}{file}\n    {}\n    remedy: {}\n    see {PAGE}#{}\n",
        spec.title,
        finding.object,
        finding.cause,
        finding.remedy(),
        id.to_lowercase(),
    )
}

/// The file of an object that is not named after it.
fn in_file(object: &ObjectName) -> String {
    match &object.file {
        Some(file) if **file != *object.name => format!(" in {file}"),
        _ => String::new(),
    }
}
