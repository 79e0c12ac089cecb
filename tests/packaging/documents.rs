//! The documentation: what its blocks are, where its links lead, and which commands its sentences name.

use std::collections::BTreeSet;
use std::process::Command;

use serde::Deserialize as _;
use serde_json::Value;

use super::{path, text, yaml};

fn has_extension(file: &str, wanted: &str) -> bool {
    path(file).extension().is_some_and(|found| found == wanted)
}

fn pages() -> Vec<String> {
    let pages = text("tests/documents");
    pages.lines().map(str::to_owned).collect()
}

/// Every page that people read.
#[test]
fn every_page_is_listed() {
    let mut found = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned()];
    let mut folders = vec!["docs".to_owned(), super::CHART.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(path(&folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let page = format!("{folder}/{name}");
            if path(&page).is_dir() {
                folders.push(page);
            } else if has_extension(&name, "md") {
                found.push(page);
            }
        }
    }
    let listed = pages();
    for page in found {
        assert!(listed.contains(&page), "{page} is not in tests/documents");
    }
}

/// Pages whose blocks are run by the cluster tests, but for those that are marked as text.
#[test]
fn blocks_of_the_documentation_are_run_or_marked() {
    for page in pages() {
        let page = page.as_str();
        for line in text(page).lines().filter(|line| line.starts_with("```")) {
            let kind = line.trim_start_matches('`');
            assert!(["", "sh", "yaml", "text", "json"].contains(&kind), "{page}: {line}");
        }
        // Code is no link.
        let prose: String = text(page).split('`').step_by(2).collect();
        for link in prose.split("](").skip(1) {
            let target = link.split([')', '#']).next().unwrap();
            if !target.is_empty() && !target.contains("://") {
                let file = path(page).parent().unwrap().join(target);
                assert!(file.exists(), "{page}: {target} is not there");
            }
        }
    }
}

/// A ConfigMap that a reader copies has a name that the controller of the chart or of kustomize reads.
#[test]
fn config_maps_of_the_documentation_are_read() {
    let manager = text("config/manager/manager.yaml");
    let helpers = text(&format!("{}/templates/_helpers.tpl", super::CHART));
    let is_read = |name: &str| {
        let suffix = name.strip_prefix("workload-variant-autoscaler");
        let of_chart = suffix.map(|suffix| format!("{{{{ include \"wva.fullname\" . }}}}{suffix}"));
        let mut helpers = helpers.lines();
        let is_of_chart = helpers.any(|line| of_chart.as_deref() == Some(line));
        is_of_chart || manager.contains(&format!(" value: {name}\n"))
    };
    assert!(!is_read("wva-saturation-scaling-config"));
    assert!(is_read("workload-variant-autoscaler-wva-saturation-scaling-config"));
    let mut seen = 0;
    for page in pages() {
        let page_text = text(&page);
        let blocks = page_text.split("```yaml\n").skip(1);
        let blocks = blocks.filter_map(|rest| rest.split("```").next());
        for document in blocks.flat_map(|block| block.split("\n---\n")) {
            let object: Value = serde_yaml::from_str(document)
                .unwrap_or_else(|error| panic!("{page}: {error}\n{document}"));
            if object["kind"] == "ConfigMap" {
                let name = object["metadata"]["name"].as_str().unwrap();
                assert!(is_read(name), "{page}: {name}");
                seen += 1;
            }
        }
    }
    assert!(seen > 3, "only {seen}");
}

/// Commands in the sentences of a page, without its blocks.
fn inline_commands(page: &str) -> Vec<String> {
    let prose: String = text(page).split("```").step_by(2).collect();
    let code = prose.split('`').skip(1).step_by(2);
    let code = code.map(|words| words.split_whitespace().collect::<Vec<_>>().join(" "));
    code.filter(|words| {
        let mut words = words.split(' ');
        let first = words.next().unwrap_or_default();
        let is_command = ["kubectl", "helm", "cargo", "wva"].contains(&first)
            || ["tests/", "image/", "deploy/"].iter().any(|folder| first.starts_with(folder));
        is_command && words.next().is_some()
    })
    .collect()
}

/// Whether the program takes a command and its flags, by its own help.
fn is_known_to_wva(words: &[&str]) -> bool {
    let help = |arguments: &[&str]| {
        let mut wva = Command::new(env!("CARGO_BIN_EXE_wva"));
        let said = wva.args(arguments).output().unwrap().stdout;
        String::from_utf8_lossy(&said).into_owned()
    };
    let general = help(&["--help"]);
    let own = help(&[words[0], "--help"]);
    let mut flags = words.iter().filter(|word| word.starts_with('-'));
    general.contains(&format!("\n  wva {}", words[0]))
        && flags.all(|flag| own.contains(flag) || general.contains(flag))
}

/// Whether some source has a function, module or case of that name.
fn is_in_sources(folder: &str, name: &str) -> bool {
    std::fs::read_dir(path(folder)).unwrap().any(|entry| {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let file = format!("{folder}/{file}");
        if path(&file).is_dir() {
            return is_in_sources(&file, name);
        }
        let is_module = file.ends_with(&format!("/{name}.rs"));
        is_module || (has_extension(&file, "rs") && text(&file).contains(&format!("fn {name}")))
    })
}

/// Whether a benchmark is there, of a package that is named or of the root.
fn is_bench(words: &[&str]) -> bool {
    let after = |flag| {
        let mut pairs = words.windows(2);
        pairs.find_map(|pair| (pair[0] == flag).then_some(pair[1]))
    };
    let folder = after("-p").map_or_else(String::new, |package| {
        format!("crates/{}/", package.trim_start_matches("wva-"))
    });
    after("--bench").is_some_and(|name| path(&format!("{folder}benches/{name}.rs")).exists())
}

/// What a command names is there: files, tests, benchmarks, commands and flags of the program.
#[test]
fn commands_in_sentences_name_what_is_there() {
    let mut seen = 0;
    for page in pages() {
        for command in inline_commands(&page) {
            let words: Vec<&str> = command.split(' ').collect();
            let named = match &words[..] {
                ["wva", rest @ ..] => is_known_to_wva(rest),
                ["cargo", "bench", rest @ ..] => is_bench(rest),
                ["cargo", "test", "--lib", name, ..] => {
                    is_in_sources("src", name.rsplit("::").next().unwrap())
                }
                ["cargo", "test", "-p", package, "--lib", name, ..] => {
                    let folder = format!("crates/{}/src", package.trim_start_matches("wva-"));
                    is_in_sources(&folder, name.rsplit("::").next().unwrap())
                }
                ["cargo", "test", "-p", package] => {
                    path(&format!("crates/{}", package.trim_start_matches("wva-"))).exists()
                }
                ["cargo", "test", "--test", _, "--", name]
                | ["cargo", "test", "-p", "wva-sim", "--test", _, "--", name] => {
                    is_in_sources("tests", name)
                }
                ["kubectl" | "helm", ..] => words.windows(2).all(|pair| match pair {
                    ["-k", folder] => path(&format!("{folder}/kustomization.yaml")).exists(),
                    ["-f", file] => path(file).exists(),
                    _ => true,
                }),
                [script, ..] => path(script).exists(),
                [] => false,
            };
            assert!(named, "{page}: {command}");
            seen += 1;
        }
    }
    assert!(seen > 25, "only {seen}");
}

/// Command lines of the program in blocks that the cluster tests do not run: the words behind its name, up to a pipe.
fn lines_of_the_program(page: &str) -> Vec<String> {
    let text = text(page);
    let blocks = text.split("```text\n").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split("```").next());
    let lines = blocks.flat_map(str::lines);
    let lines = lines.filter_map(|line| line.strip_prefix("wva ")?.split(" | ").next());
    lines.map(str::to_owned).collect()
}

/// What needs neither a cluster nor a file of the reader is run, and of the rest each flag is known.
#[test]
fn commands_in_blocks_of_text_are_run_or_known() {
    let mut ran = BTreeSet::new();
    for page in pages() {
        for line in lines_of_the_program(&page) {
            let words = line.split(' ').map(|word| word.trim_matches(['[', ']']));
            let words: Vec<&str> = words.collect();
            assert!(is_known_to_wva(&words), "{page}: wva {line}");
            let needs_nothing =
                matches!(&words[..], ["crds"] | ["plan", "--schema"] | ["doctor", "--files", _]);
            if needs_nothing && ran.insert(line.clone()) {
                let mut wva = Command::new(env!("CARGO_BIN_EXE_wva"));
                let ended = wva.args(&words).current_dir(path("")).output().unwrap();
                assert!(ended.status.success(), "{page}: wva {line}: {ended:?}");
                assert!(!ended.stdout.is_empty(), "{page}: wva {line}");
            }
        }
    }
    let expected = ["crds", "doctor --files config/samples", "plan --schema"];
    assert_eq!(ran, expected.map(str::to_owned).into());
}

/// The sample can be served by everybody: it is the model of the chart, which needs no access request.
#[test]
fn the_sample_serves_an_open_model() {
    let sample = text("config/samples/workloads/vllm.yaml");
    let model = yaml(&format!("{}/values.yaml", super::CHART))["llmd"]["modelID"].clone();
    let argument = format!("- --model={}\n", model.as_str().unwrap());
    assert!(sample.contains(&argument), "{argument}");
    // Who loads it needs its tokenizer, which goes by the name of the weights.
    let load =
        format!("--model {} --served-model-name meta/llama-3.1-8b ", model.as_str().unwrap());
    assert!(text("docs/user-guide/first-variants.md").contains(&load), "{load}");
}

/// The second variant of the first page is a Deployment alone, whose pods the Service of the first one selects.
#[test]
fn two_variants_share_one_service() {
    let page = text("docs/user-guide/first-variants.md");
    let rename = page.lines().find(|line| line.starts_with("a100() {"));
    let file = "config/samples/workloads/vllm.yaml";
    let script = format!("kubectl() {{ cat; }}\n{}\na100 {file}", rename.unwrap());
    let mut bash = Command::new("bash");
    let run = bash.args(["-c", &script]).current_dir(path("")).output();
    let second = String::from_utf8(run.unwrap().stdout).unwrap();
    let second: Value = serde_yaml::from_str(&second).unwrap();
    assert_eq!(second["kind"], "Deployment");
    assert_eq!(second["metadata"]["name"], "llama-8b-a100");
    let first = text(file);
    let first =
        serde_yaml::Deserializer::from_str(&first).map(|one| Value::deserialize(one).unwrap());
    let first: Vec<Value> = first.collect();
    let [deployment, service, monitor] = &first[..] else {
        panic!("{first:?}");
    };
    let selected = &service["spec"]["selector"];
    assert_eq!(monitor["spec"]["selector"]["matchLabels"], service["metadata"]["labels"]);
    for one in [deployment, &second] {
        let labels = &one["spec"]["template"]["metadata"]["labels"];
        assert_eq!(labels["model"], selected["model"]);
        assert_eq!(one["spec"]["selector"]["matchLabels"]["app"], one["metadata"]["name"]);
    }
    assert_eq!(*selected, serde_json::json!({ "model": "llama-8b" }));
}
