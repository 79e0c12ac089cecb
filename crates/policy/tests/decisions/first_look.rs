//! What a process that has just started, or come to lead, makes of input that is not there: it has
//! no samples yet, so that silence says nothing yet.

use super::{decide, settings, situation, words};
use wva_policy::check_plan;
use wva_policy::learned::Learned;
use wva_policy::params::DynamicSettings;

const VOTERS: &str = "
queueingModel: {default: {}, one: {model_id: m, namespace: ns, targetTTFT: 500, targetITL: 24}}
saturation: {default: {analyzers: [{type: saturation}, {type: queueing-model}]}}
";
const HYBRID: &str = "
EXPERIMENTAL_PROACTIVE_MODEL: true
queueingModel: {default: {}, one: {model_id: m, namespace: ns, targetTTFT: 500, targetITL: 24}}
";

/// What the queueing model needs.
const RATES: &str = "arrivalRate: 3, timeToFirstToken: 0.045, interTokenLatency: 0.008";

/// Three replicas, at so many seconds of uptime.
fn fleet(uptime: u64, rates: &str) -> String {
    let pods: Vec<String> = (0..3)
        .map(|number| {
            format!(
                "{{name: a{number}, signals: {{kvUsage: 0.1, queueLength: 0, kvCapacity: 12500, \
                 inputTokens: 512, outputTokens: 128, {rates}}}}}"
            )
        })
        .collect();
    format!(
        "version: 1\ntime: {{uptime: {uptime}s}}\nvariants:\n- namespace: ns\n  name: v\n  model: m\n  \
         desired: 3\n  target: {{current: 3}}\n  pods: [{}]\n",
        pods.join(", ")
    )
}

/// What is learned and decided of a document: targets in the order of names, and the steps in words.
fn look(
    text: &str,
    learned: &Learned,
    settings: &DynamicSettings,
) -> (Learned, Vec<(u32, String)>) {
    let situation = situation(text, settings);
    let (learned, plan) = decide(&situation, learned, settings);
    assert_eq!(check_plan(&situation.snapshot, settings, &plan), Ok(()));
    (learned, words(&plan))
}

/// The one variant of one look after the other.
fn looks(with: &str, looks: &[(u64, &str)]) -> Vec<(u32, String)> {
    let settings = settings(with);
    let mut learned = Learned::default();
    let mut made = Vec::new();
    for (uptime, rates) in looks {
        let (known, mut decided) = look(&fleet(*uptime, rates), &learned, &settings);
        learned = known;
        made.push(decided.remove(0));
    }
    made
}

#[test]
fn a_voter_without_a_result_yet_is_waited_for_as_long_as_it_may_be_live() {
    let known = looks(VOTERS, &[(3_600, RATES)]).remove(0);
    assert_eq!(known.0, 3, "{}", known.1);
    let unknown = looks(VOTERS, &[(3_600, ""), (3_630, ""), (3_780, ""), (3_781, "")]);
    let counts: Vec<u32> = unknown.iter().map(|(count, _)| *count).collect();
    // After three intervals it counts as silent, and a silent voter has no veto (N107).
    assert_eq!(counts, [3, 3, 3, 1], "{unknown:#?}");
    for (seconds, (_, said)) in [0, 30, 180].iter().zip(&unknown) {
        let expected = format!(
            "queueing-model has had no result since it was first asked {seconds}s ago; nothing is \
             lowered while that is 180s or less"
        );
        assert!(said.contains(&expected), "{said}");
    }
    assert!(!unknown[3].1.contains("no result"), "{}", unknown[3].1);
}

#[test]
fn a_live_voter_without_a_result_names_what_it_lacks() {
    let made = looks(VOTERS, &[(3_600, RATES), (3_630, "")]);
    assert!(!made[0].1.contains("said nothing"), "{}", made[0].1);
    let said = "queueing-model said nothing this cycle, missing: arrival_rate of a0, \
                arrival_rate of a1, arrival_rate of a2";
    assert!(made[1].1.contains(said), "{}", made[1].1);
}

#[test]
fn a_voter_that_was_just_selected_is_waited_for_too() {
    let alone = "saturation: {default: {analyzerName: saturation}}";
    let settings = [alone, VOTERS].map(settings);
    let mut learned = Learned::default();
    let mut counts = Vec::new();
    for (uptime, settings) in [(3_600, &settings[0]), (4_200, &settings[1]), (4_381, &settings[1])]
    {
        let (known, decided) = look(&fleet(uptime, ""), &learned, settings);
        learned = known;
        counts.push(decided[0].0);
    }
    assert_eq!(counts, [1, 3, 1]);
}

#[test]
fn in_hybrid_mode_the_model_is_waited_for_and_then_saturation_decides_alone() {
    let known = looks(HYBRID, &[(3_600, RATES)]).remove(0);
    assert_eq!(known.0, 3, "{}", known.1);
    let unknown = looks(HYBRID, &[(3_600, ""), (3_780, ""), (3_781, "")]);
    let counts: Vec<u32> = unknown.iter().map(|(count, _)| *count).collect();
    assert_eq!(counts, [3, 3, 2], "{unknown:#?}");
    assert!(
        unknown[0].1.contains("has had no result since it was first asked 0s ago"),
        "{}",
        unknown[0].1
    );
    let alone = "the queueing model has no opinion to follow: saturation decides alone";
    assert!(unknown[2].1.contains(alone), "{}", unknown[2].1);
}

/// A variant of one model, and its replicas: share of the KV cache, queue, and length of answers.
fn variant(name: &str, role: &str, more: &str, pods: &[(f64, u32, u32)]) -> String {
    let pods: Vec<String> = (pods.iter().enumerate())
        .map(|(number, (usage, queue, output))| {
            format!(
                "{{name: {name}-{number}, signals: {{kvUsage: {usage}, queueLength: {queue}, \
                 kvCapacity: 16000, inputTokens: 200, outputTokens: {output}}}}}"
            )
        })
        .collect();
    format!(
        "- {{namespace: ns, name: {name}, model: m, role: {role}, accelerator: H100, {more} \
         target: {{current: {}}}, pods: [{}]}}",
        pods.len(),
        pods.join(", ")
    )
}

/// A first look at some variants.
fn first_look(with: &str, variants: &[String]) -> Vec<(u32, String)> {
    let text = format!("version: 1\nvariants:\n{}\n", variants.join("\n"));
    look(&text, &Learned::default(), &settings(with)).1
}

/// What a full replica holds bounds those like it, unless it is not known which it is like.
#[test]
fn a_full_replica_that_hides_the_length_of_its_answers_lets_none_go() {
    let with = |outputs: &str| {
        let text = variant("v", "prefill", "", &[(0.0, 0, 0), (0.05, 6, 0)]);
        let text = text.replace(", outputTokens: 0", outputs);
        first_look("saturation: {default: {analyzers: [{name: saturation}]}}", &[text])
    };
    let (known, said) = with(", outputTokens: 0").remove(0);
    assert_eq!(known, 3, "{said}");
    let (unknown, said) = with("").remove(0);
    assert_eq!(unknown, 2, "{said}");
    let missing = "no analyzer has a view on role prefill, missing: output_tokens of v-1";
    assert!(said.contains(missing), "{said}");
}

/// A part of a demand would move GPUs to the role whose demand is reported.
#[test]
fn a_budget_is_not_shared_by_a_part_of_the_demand() {
    let settings = "saturation: {default: {analyzers: [{name: saturation}], enableLimiter: true, \
                    enableRescale: true, limiters: [{name: q, type: quota, scope: cluster, \
                    quotas: {H100: 6}}]}}";
    let look = |lost: &str| {
        let variants = [
            variant("both", "both", "cost: 10,", &[(0.6, 30, 60), (0.8, 30, 60), (1.0, 0, 0)]),
            variant("first", "prefill", "cost: 30, bounds: {min: 2},", &[(1.0, 6, 0)]),
        ];
        first_look(settings, &variants.map(|text| text.replace(lost, "")))
    };
    let shared = look("nothing");
    assert_eq!((shared[0].0, shared[1].0), (4, 2), "{shared:#?}");
    let taken = "rescale: takes 1 free GPUs towards a share of 4";
    assert!(shared[0].1.contains(taken), "{}", shared[0].1);
    let claimed = look("inputTokens: 200, ");
    assert_eq!((claimed[0].0, claimed[1].0), (4, 2), "{claimed:#?}");
    assert!(!claimed[0].1.contains("rescale: "), "{}", claimed[0].1);
    let withheld = "rescale withheld, the demand of ns/m is not known: missing: input_tokens of first-0, \
                    input_tokens of both-0, input_tokens of both-1;";
    assert!(claimed[0].1.contains(withheld), "{}", claimed[0].1);
}

/// While the published count is not applied, the queueing model does not take it back either.
#[test]
fn hybrid_takes_nothing_away_while_a_count_is_not_applied() {
    let at = |desired: u32| {
        let pods = [(0.02, 0, 128); 3];
        let text = variant("v", "both", &format!("desired: {desired},"), &pods);
        let rates = RATES.replace("arrivalRate: 3", "arrivalRate: 0.5");
        let text = text.replace("queueLength", &format!("{rates}, queueLength"));
        first_look(HYBRID, &[text]).remove(0)
    };
    let (target, said) = at(3);
    assert_eq!(target, 1, "{said}");
    let (target, said) = at(5);
    assert_eq!(target, 5, "{said}");
    assert!(said.contains("saturation safety block: scale-down unsafe"), "{said}");
}

/// Replicas on their way up hold GPUs, and have nothing to report.
#[test]
fn a_budget_is_shared_while_a_replica_starts() {
    let settings = "saturation: {default: {analyzers: [{name: saturation}], enableLimiter: true, \
                    enableRescale: true, limiters: [{name: q, type: quota, scope: cluster, \
                    quotas: {H100: 8}}]}, one: {modelId: n, namespace: ns, priority: 3}}";
    let busy = (0.9, 9, 60);
    let look = |ready: u32, last: &str| {
        let much = variant("much", "both", "", &[busy; 6])
            .replace("current: 6", &format!("current: 6, ready: {ready}"))
            .replace("name: much-5,", &format!("name: much-5, {last}"));
        let little = variant("little", "both", "", &[busy; 2]).replace("model: m", "model: n");
        first_look(settings, &[little, much])
    };
    let held = "rescale: the role holds 6 GPUs, its share is ";
    let ready = look(6, "");
    assert_eq!(ready[1].0, 5, "{ready:#?}");
    assert!(ready[1].1.contains(held), "{ready:#?}");
    let starting = look(5, "ready: false,");
    assert_eq!(starting[1].0, 5, "{starting:#?}");
    assert!(starting[1].1.contains(held), "{starting:#?}");
    // One that serves and is silent might hide what is asked of the model.
    let silent = look(6, "ready: false,");
    assert!(!silent[1].1.contains("rescale: "), "{silent:#?}");
    let withheld = "rescale withheld, the demand of ns/m is not known: not every ready replica of \
                    ns/much reports;";
    for (_, said) in &silent {
        assert!(said.contains(withheld), "{said}");
    }
}

#[test]
fn a_model_of_percentages_says_what_keeps_it_from_zero() {
    let pods = [(0.3, 0, 60)];
    let text = variant("v", "both", "bounds: {min: 0},", &pods);
    let (target, said) = first_look("", std::slice::from_ref(&text)).remove(0);
    assert_eq!(target, 1, "{said}");
    assert!(!said.contains("no-wake-signal"), "{said}");
    let to_zero = "scaleToZero: {default: {enable_scale_to_zero: true}}";
    let (target, said) = first_look(to_zero, &[text]).remove(0);
    assert_eq!(target, 1, "{said}");
    assert!(said.contains("; no-wake-signal; "), "{said}");
}
