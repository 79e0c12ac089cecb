//! Planted secrets, and the way back to the recording.

use std::collections::BTreeSet;
use std::io::Read as _;

use flate2::read::MultiGzDecoder;
use schemars::schema_for;
use serde_json::{Value, json};

use super::archive::open;
use super::redact::{redact, redacted};
use super::{Bundled, given};
use crate::policy::document::SnapshotDocument;
use crate::policy::signal::SignalName;
use crate::scratch::Folder;

const SECRET: &str = "s3cr3t-planted";

#[test]
fn secrets_are_redacted_wherever_they_are_planted() {
    let mut planted = json!({
        "args": ["--api-key", SECRET, format!("--hf-token={SECRET}"), "--max-num-seqs=256"],
        "command": ["sh", "-c", format!("vllm serve m --api-key {SECRET} --port 8000")],
        "env": {"HF_TOKEN": SECRET, "MODEL": "llama"},
        "containers": [{"name": "vllm", "env": [{"name": "API_KEY", "value": SECRET}]}],
        "url": format!("https://user:{SECRET}@prometheus:9090/path"),
        "header": format!("Authorization: Bearer {SECRET}"),
        "message": "hf_abcdefghijklmnop was refused",
        "nested": {"bearerToken": [[SECRET]]},
        "inputTokens": {"v": 100.5, "a": 3},
        "kv_tokens": "4096",
    });
    redact(&mut planted);
    let text = planted.to_string();
    assert!(!text.contains(SECRET) && !text.contains("hf_abc"), "{text}");
    for kept in [
        "--max-num-seqs=256",
        "--port 8000",
        "\"MODEL\":\"llama\"",
        "@prometheus:9090/path",
        "100.5",
        "4096",
        "was refused",
    ] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    assert_eq!(redacted("nothing to hide"), "nothing to hide");
}

/// Arguments of one container, and what of them is shown.
#[test]
fn every_value_of_a_secret_flag_is_redacted() {
    for (arguments, kept) in wva_base::cases! {
        (&["--api-key", "SECRET1", "SECRET2", "--port", "8000"][..], "--port 8000"),
        (&["--api-key=SECRET1,SECRET2", "kept"], "kept"),
        (&["--api-key \"SECRET1 SECRET2\" --port 8000"], "--port 8000"),
        (&["-H 'X-API-Key: SECRET1 SECRET2' http://c"], "http://c"),
        (&["sh", "-c", "API_KEY=\"SECRET1 SECRET2\" vllm serve m"], "vllm serve m"),
        (&["['--api-key', 'SECRET1', 'SECRET2', '--port', '8000']"], "'--port', '8000'"),
        (&["--header=Authorization:Bearer", "SECRET", "kept"], "kept"),
        (&["--access-key", "SECRET", "--seed"], "--seed"),
        (&["--aws-access-key=SECRET"], "--aws-access-key="),
        (&["--conn=Endpoint=sb://x;SharedAccessKey=SECRET"], "Endpoint=sb://x"),
        (&["--passphrase=SECRET", "--pwd", "SECRET", "--bearer=SECRET"], "--pwd"),
        (&["--pem=-----BEGIN PRIVATE KEY-----SECRET\nSECRET-----END PRIVATE KEY----- kept"], "kept"),
        (&["github_pat_SECRET1234", "nvapi-SECRET1234", "kept"], "kept"),
        (&["http://u:SEC/SECRET@h", "http://h:80/a@b"], "http://h:80/a@b"),
        (&["{\"api_key\": \"SECRET\", \"a\": {\"password\": \"SECRET\"}, \"b\": \"kept\"}"], "kept"),
        (&["--json={\"token\":\"SECRET SECRET\",\"max_tokens\":5}"], "\"max_tokens\":5"),
        (&["{'token': 'SECRET SECRET', 'a': 'kept'"], "kept"),
        (&["curl -u user:SECRET http://c"], "-u user:REDACTED http://c"),
        (&["curl --user \"user:SECRET1 SECRET2\" http://c"], "http://c"),
        (&["sh -c \"curl -u user:SECRET,SECRET http://c\""], "http://c"),
        (&["curl", "-u", "user:SECRET", "http://c"], "-u user:REDACTED http://c"),
        (&["--user=user:SECRET", "kept"], "--user=user:REDACTED kept"),
        (&["curl -U user:SECRET http://c"], "-U user:REDACTED http://c"),
        (&["curl", "--proxy-user", "user:SECRET", "http://c"], "--proxy-user user:REDACTED http://c"),
        (&["python -uadmin:kept"], "-uadmin:kept"),
        (&["curl -uadmin:SECRET http://c"], "-uadmin:REDACTED http://c"),
        (&["curl -Uadmin:'SECRET1 SECRET2' http://c"], "-Uadmin:REDACTED'REDACTED REDACTED' http://c"),
        (&["/usr/bin/curl", "-s", "-uadmin:SECRET", "http://c"], "-uadmin:REDACTED http://c"),
        (&["curl -s -u 12:34 http://c"], "-u 12:REDACTED http://c"),
        (&["curl", "-u", "12:34", "http://c"], "-u 12:REDACTED http://c"),
        (&["docker run -u 1000:1000 m"], "-u 1000:1000 m"),
        (&["python -u serve.py --host a:80"], "-u serve.py --host a:80"),
    } {
        let mut planted = json!({ "args": arguments });
        redact(&mut planted);
        let shown = planted["args"].as_array().unwrap().iter();
        let shown: Vec<&str> = shown.filter_map(|word| word.as_str()).collect();
        let shown = shown.join(" ");
        assert!(!shown.contains("SECRET"), "{shown}");
        assert!(shown.contains(kept), "{shown} lacks {kept}");
    }
}

#[test]
fn an_object_keeps_neither_its_copy_in_an_annotation_nor_its_variables() {
    let copy = json!({"env": [{"name": "MODEL_SOURCE", "value": SECRET}]}).to_string();
    let mut planted = json!({
        "metadata": {
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": copy,
                "llm-d.ai/model": "llama",
            },
            "managedFields": [{"manager": "planted-manager"}],
        },
        "spec": {"env": [
            {"name": "MODEL_SOURCE", "value": SECRET},
            {"name": "FROM_SECRET", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ]},
    });
    assert!(planted.to_string().matches(SECRET).count() == 2, "planted");
    redact(&mut planted);
    let wanted = json!({
        "metadata": {"annotations": {"llm-d.ai/model": "llama"}},
        "spec": {"env": [
            {"name": "MODEL_SOURCE", "value": "REDACTED"},
            {"name": "FROM_SECRET", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ]},
    });
    assert_eq!(planted, wanted);
}

#[test]
fn a_harmless_part_of_a_name_does_not_excuse_the_rest() {
    for name in ["TOKENIZER_API_KEY", "TOKEN_SECRET", "maxTokensPassword"] {
        let mut planted = json!({ name: SECRET });
        redact(&mut planted);
        assert_eq!(planted, json!({ name: "REDACTED" }));
    }
    for name in [
        "tokenizer",
        "maxTokens",
        "secretName",
        "max_num_batched_tokens",
        "time_per_output_token_seconds",
        "token_usage",
    ] {
        let mut planted = json!({ name: "kept" });
        redact(&mut planted);
        assert_eq!(planted, json!({ name: "kept" }));
    }
}

/// Adds the names of all fields below a schema.
fn field_names(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = fields.get("properties") {
                names.extend(properties.keys().cloned());
            }
            for field in fields.values() {
                field_names(field, names);
            }
        }
        Value::Array(items) => {
            for item in items {
                field_names(item, names);
            }
        }
        _ => {}
    }
}

/// `wva plan` reads the snapshot of a bundle.
#[test]
fn no_field_of_a_snapshot_is_taken_for_a_secret() {
    let mut names = BTreeSet::new();
    field_names(schema_for!(SnapshotDocument).as_value(), &mut names);
    assert!(names.contains("timeToFirstToken") && names.contains("interTokenLatency"));
    names.extend(SignalName::ALL.map(|signal| signal.as_str().to_owned()));
    // Those of others are dropped.
    names.remove("annotations");
    for name in &names {
        let reading = json!({ name: { "value": 0.5, "age": "12s", "state": "stale" } });
        let mut shown = reading.clone();
        redact(&mut shown);
        assert_eq!(shown, reading);
        let mut planted = json!({ name: { "HF_TOKEN": SECRET } });
        redact(&mut planted);
        assert_eq!(planted, json!({ name: { "HF_TOKEN": "REDACTED" } }));
    }
}

#[test]
fn headers_in_texts_are_redacted() {
    for (header, wanted) in [
        ("Authorization: Basic", "Authorization: Basic REDACTED, done"),
        ("authorization:Basic", "authorization:Basic REDACTED, done"),
        ("x-api-key:", "x-api-key: REDACTED, done"),
        ("Accept:", "Accept: s3cr3t-planted, done"),
    ] {
        assert_eq!(redacted(&format!("{header} {SECRET}, done")), wanted);
    }
    let joined = redacted(&format!("-H 'X-API-Key:{SECRET}' http://c"));
    assert_eq!(joined, "-H 'X-API-Key:REDACTED' http://c");
}

#[test]
fn a_bundle_is_replayed_and_has_no_secret() {
    let recording = crate::cli::replay::tests::both_recording(&format!("--api-key={SECRET}"));
    let mut plain = String::new();
    MultiGzDecoder::new(&*recording).read_to_string(&mut plain).unwrap_or_default();
    assert!(plain.contains(SECRET), "planted");
    let folder = Folder::new();
    let path = |name: &str| folder.join(name).display().to_string();

    let mut bundle = Bundled::default();
    bundle.text("version.txt", "wva 1");
    bundle.document("tree.json", json!({"token": SECRET, "role": "optimizer"}));
    bundle.recording(&recording);
    let (bytes, notes) = bundle.finish();
    assert_eq!(notes, Vec::<String>::new());
    std::fs::write(path("bundle.tgz"), &bytes).unwrap();
    let mut tar = Vec::new();
    MultiGzDecoder::new(&*bytes).read_to_end(&mut tar).unwrap();
    assert_eq!(tar.len() % 512, 0);
    let text = String::from_utf8_lossy(&tar);
    assert!(text.contains("optimizer") && !text.contains(SECRET));
    let mut redacted = String::new();
    let opened = open(&path("bundle.tgz")).unwrap();
    MultiGzDecoder::new(opened).read_to_string(&mut redacted).unwrap();
    assert!(redacted.contains("--api-key=REDACTED") && !redacted.contains(SECRET));
    let report = crate::cli::replay::tests::replayed(&[&path("bundle.tgz")]).unwrap();
    assert!(report.text.ends_with("every decision is the same\n"), "{}", report.text);

    let (empty, _) = Bundled::default().finish();
    std::fs::write(path("empty.tgz"), empty).unwrap();
    let error = open(&path("empty.tgz")).err().unwrap();
    assert!(error.contains("the bundle has no recording"), "{error}");
}

#[test]
fn a_recording_that_is_none_makes_no_bundle() {
    let folder = Folder::new();
    let path = folder.join("recording").display().to_string();
    let recording = crate::cli::replay::tests::recording(SECRET);
    std::fs::write(&path, &recording).unwrap();
    assert!(!given(&path).unwrap().is_empty());
    for broken in [&b""[..], b"no recording", &recording[..40]] {
        std::fs::write(&path, broken).unwrap();
        let error = given(&path).unwrap_err();
        assert!(error.ends_with("or what /debug/recording writes"), "{error}");
    }
    drop(folder);
    assert!(given(&path).is_err());
}
