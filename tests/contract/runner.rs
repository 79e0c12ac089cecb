// Runs the contract table against an API server, whichever it is.

use std::collections::BTreeMap;

use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde_json::Value;

const TABLE: &str = include_str!("contract.yaml");

/// Which server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    Embedded,
    Real,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    request: String,
    #[serde(default)]
    media: Option<String>,
    #[serde(default)]
    accept: Option<String>,
    #[serde(default)]
    body: Option<Value>,
    status: u16,
    /// Exact values by JSON pointer; `null` means absent.
    #[serde(default)]
    holds: BTreeMap<String, Value>,
    /// Parts of texts by JSON pointer.
    #[serde(default)]
    contains: BTreeMap<String, String>,
    /// Values that later rows name with a dollar sign.
    #[serde(default)]
    keep: BTreeMap<String, String>,
    /// What the embedded server does otherwise.
    #[serde(default)]
    embedded: Option<Difference>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    because: String,
    #[serde(default)]
    status: Option<u16>,
    #[serde(default)]
    holds: BTreeMap<String, Value>,
}

/// How the table went.
pub(crate) struct Outcome {
    pub(crate) rows: usize,
    pub(crate) differences: usize,
    pub(crate) failures: Vec<String>,
}

/// Sends every row in order, in one namespace.
pub(crate) async fn run(client: &Client, namespace: &str, server: Server) -> Outcome {
    let rows: Vec<Row> = serde_yaml::from_str(TABLE).expect("the contract table can be read");
    let mut known = BTreeMap::from([("ns".to_owned(), namespace.to_owned())]);
    let mut outcome = Outcome { rows: rows.len(), differences: 0, failures: Vec::new() };
    for mut row in rows {
        if let Some(difference) = row.embedded.take() {
            assert!(!difference.because.is_empty(), "{}: no reason", row.id);
            outcome.differences += 1;
            if server == Server::Embedded {
                row.status = difference.status.unwrap_or(row.status);
                row.holds.extend(difference.holds);
            }
        }
        let (status, body) = match send(client, &row, &known).await {
            Ok(answer) => answer,
            Err(error) => {
                outcome.failures.push(format!("{}: {error}", row.id));
                continue;
            }
        };
        outcome.failures.extend(compare(&row, &known, status, &body));
        for (name, pointer) in &row.keep {
            let value = body.pointer(pointer).and_then(Value::as_str);
            known.insert(name.clone(), value.unwrap_or("?").to_owned());
        }
    }
    outcome
}

async fn send(
    client: &Client,
    row: &Row,
    known: &BTreeMap<String, String>,
) -> Result<(u16, Value), Box<dyn std::error::Error>> {
    let request = fill(&row.request, known);
    let (method, path) = request.split_once(' ').ok_or("no method")?;
    let mut builder = Request::builder().method(method).uri(path);
    builder = builder.header("user-agent", "contract/1");
    builder = builder.header("accept", row.accept.as_deref().unwrap_or("application/json"));
    let body = match &row.body {
        Some(body) => {
            let media = row.media.as_deref().unwrap_or("application/json");
            builder = builder.header("content-type", media);
            Body::from(fill(&body.to_string(), known).into_bytes())
        }
        None => Body::empty(),
    };
    let answer = client.send(builder.body(body)?).await?;
    let status = answer.status().as_u16();
    let bytes = answer.into_body().collect().await?.to_bytes();
    let text = String::from_utf8_lossy(&bytes);
    let body = if path.contains("watch=") && status == 200 {
        text.lines().map(serde_json::from_str::<Value>).collect::<Result<Value, _>>()?
    } else {
        serde_json::from_str(&text).unwrap_or_else(|_| Value::String(text.into_owned()))
    };
    Ok((status, body))
}

fn compare(row: &Row, known: &BTreeMap<String, String>, status: u16, body: &Value) -> Vec<String> {
    let mut failures = Vec::new();
    if status != row.status {
        failures.push(format!("{}: answered {status}, not {}: {body}", row.id, row.status));
        return failures;
    }
    for (pointer, wanted) in &row.holds {
        let wanted: Value = serde_json::from_str(&fill(&wanted.to_string(), known)).unwrap();
        let found = body.pointer(pointer).cloned().unwrap_or_default();
        if found != wanted {
            failures.push(format!("{}: {pointer} is {found}, not {wanted}", row.id));
        }
    }
    for (pointer, wanted) in &row.contains {
        let wanted = fill(wanted, known);
        let found = body.pointer(pointer).map(Value::to_string).unwrap_or_default();
        let found = found.replace("\\\"", "\"");
        if !found.contains(&wanted) {
            failures.push(format!("{}: {pointer} is {found}, without {wanted:?}", row.id));
        }
    }
    failures
}

fn fill(text: &str, known: &BTreeMap<String, String>) -> String {
    let mut text = text.to_owned();
    // Longer names first, so that none is taken for the beginning of another.
    for (name, value) in known.iter().rev() {
        text = text.replace(&format!("${name}"), value);
    }
    text
}
