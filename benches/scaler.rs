//! KEDA's calls for many ScaledObjects: CPU time of one call, and peak memory.
//!
//! `cargo bench --bench scaler` prints a table. Each size runs in a fresh process, since peak memory never goes down.
//! That process is KEDA, too, on one connection, and makes as many calls whatever the number of ScaledObjects.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark: what is unexpected ends it, and its table goes to the terminal"
)]

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;

use http::Uri;
use http::uri::PathAndQuery;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tonic::body::Body;
use tonic_prost::ProstCodec;
use wva::api::ScaledObject;
use wva::api::variant_autoscaling::VariantAutoscaling;
use wva::cluster::MirrorWriter;
use wva::cluster::kinds::WatchedKind;
use wva::cluster::project::{Interner, Projected};
use wva::cluster::watch::key_of;
use wva::metrics::Metrics;
use wva::policy::filter::WatchScope;
use wva::roles::Role;
use wva::serve::external_scaler::ExternalScalerServer;
use wva::serve::server::{listen, serve};
use wva::settings::problem::Diagnostics;
use wva::settings::{Sources, start};
use wva::state::SharedState;
use wva_supervise::{Clock, Epoch};

mod usage;

use usage::{cpu, peak_memory_kib};

const NAMESPACE: &str = "bench";
const METRIC: &str = "wva_desired_replicas";
const SIZES: [usize; 2] = [1_000, 10_000];
/// A multiple of each size.
const CALLS: usize = 100_000;

#[derive(Clone, PartialEq, prost::Message)]
struct ObjectReference {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    namespace: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct MetricsRequest {
    #[prost(message, optional, tag = "1")]
    object: Option<ObjectReference>,
    #[prost(string, tag = "2")]
    metric: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct MetricsAnswer {
    #[prost(message, repeated, tag = "1")]
    values: Vec<AnsweredValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct AnsweredValue {
    #[prost(string, tag = "1")]
    metric: String,
    #[prost(int64, tag = "2")]
    whole: i64,
    #[prost(double, tag = "3")]
    float: f64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|word| word == "measure") {
        return measure(arguments[2].parse().unwrap());
    }
    println!(
        "| ScaledObjects | calls | CPU µs a call | ratio | RSS MB after a call each | at the end |"
    );
    println!("|---|---|---|---|---|---|");
    let mut base = None;
    for objects in SIZES {
        let this = std::env::current_exe().unwrap();
        let done = Command::new(this).args(["measure", &objects.to_string()]).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        let text = String::from_utf8(done.stdout).unwrap();
        let figures: Vec<f64> =
            (text.split_whitespace()).map(|figure| figure.parse().unwrap()).collect();
        let [micros, first, last] = figures[..] else {
            panic!("{text}");
        };
        let ratio = micros / *base.get_or_insert(micros);
        println!("| {objects} | {CALLS} | {micros:.1} | {ratio:.2} | {first} | {last} |");
    }
}

fn name(kind: &str, number: usize) -> String {
    format!("{kind}-{number:05}")
}

fn count(number: usize) -> i64 {
    i64::try_from(number % 7).unwrap()
}

fn store<K>(mirror: &MirrorWriter<K::View>, kind: WatchedKind, objects: impl Iterator<Item = Value>)
where
    K: Projected + DeserializeOwned,
{
    let mut texts = Interner::default();
    let mut list = mirror.relist();
    for object in objects {
        let object: K = serde_json::from_value(object).unwrap();
        let key = key_of(object.meta());
        list.add(key, object.project(&mut texts)).unwrap();
    }
    let epoch = Epoch::for_test(Role::Watcher(kind), 1);
    mirror.replace(&epoch, list).unwrap();
}

/// ScaledObjects, each with the VariantAutoscaling of its target.
fn shared(objects: usize) -> SharedState {
    let mut sources = Sources::default();
    for (name, text) in
        [("PROMETHEUS_BASE_URL", "http://prometheus"), ("PROMETHEUS_ALLOW_HTTP", "true")]
    {
        sources.environment.insert(name.to_owned(), text.to_owned());
    }
    let scope = WatchScope {
        system_namespace: "system".into(),
        watch_namespace: Some(NAMESPACE.into()),
        instance: None,
    };
    let shared = SharedState::new(
        Clock::real(),
        scope,
        start(&sources).unwrap().generation,
        Arc::new(Metrics::new(None).unwrap()),
        "".into(),
        &Diagnostics::default(),
    );
    let mirrors = &shared.writers.mirrors;
    let variants = (0..objects).map(|number| {
        let name = name("variant", number);
        json!({
            "metadata": {"namespace": NAMESPACE, "name": name, "uid": name},
            "spec": {"modelID": "m", "scaleTargetRef": {"kind": "Deployment", "name": self::name("target", number)}},
            "status": {"desiredOptimizedAlloc": {"numReplicas": count(number), "accelerator": "H100"}},
        })
    });
    let kind = WatchedKind::VariantAutoscaling;
    store::<VariantAutoscaling>(&mirrors.variants, kind, variants);
    let scaled = (0..objects).map(|number| {
        json!({
            "metadata": {"namespace": NAMESPACE, "name": name("object", number)},
            "spec": {"scaleTargetRef": {"name": name("target", number)}, "triggers": []},
        })
    });
    store::<ScaledObject>(&mirrors.scaled_objects, WatchedKind::ScaledObject, scaled);
    shared
}

async fn call(connection: &SendRequest<Body>, number: usize) -> i64 {
    let connection = connection.clone();
    let service = tower::service_fn(move |request| connection.clone().send_request(request));
    let origin = Uri::from_static("http://external-scaler.test");
    let mut grpc = tonic::client::Grpc::with_origin(service, origin);
    let wanted = MetricsRequest {
        object: Some(ObjectReference {
            name: name("object", number),
            namespace: NAMESPACE.to_owned(),
        }),
        metric: METRIC.to_owned(),
    };
    let path = PathAndQuery::from_static("/externalscaler.ExternalScaler/GetMetrics");
    let codec = ProstCodec::<MetricsRequest, MetricsAnswer>::default();
    let answer = grpc.unary(tonic::Request::new(wanted), path, codec).await;
    answer.unwrap().into_inner().values[0].whole
}

#[tokio::main(flavor = "current_thread")]
async fn measure(objects: usize) {
    let shared = shared(objects);
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = listen("EXTERNAL_SCALER_BIND_ADDRESS", &[any]).await;
    let listener = listener.unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let server = ExternalScalerServer::new(shared.readers.clone(), None, None);
    tokio::spawn(async move {
        let never = serve(listener, server).await;
        match never {}
    });
    let io = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (sender, connection) = handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);

    let before = cpu();
    let mut first = 0;
    for made in 0..CALLS {
        if made == objects {
            first = peak_memory_kib() / 1024;
        }
        let number = made % objects;
        assert_eq!(call(&sender, number).await, count(number));
    }
    let spent = cpu().saturating_sub(before).as_micros();
    let micros =
        f64::from(u32::try_from(spent).unwrap()) / f64::from(u32::try_from(CALLS).unwrap());
    println!("{micros} {first} {}", peak_memory_kib() / 1024);
}
