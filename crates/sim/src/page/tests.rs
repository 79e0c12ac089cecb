//! The film, and what is served of it. How it looks is checked in a browser by `tests/page/check`.

use http::request::Parts;
use http::{Method, Request};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::{Film, PageRoutes};

fn head(method: Method, uri: &str) -> Parts {
    let request = Request::builder().method(method).uri(uri).body(());
    request.unwrap().into_parts().0
}

async fn answered(film: &Film, uri: &str) -> (u16, String) {
    let routes = PageRoutes::new(film.clone());
    let answer = routes.answer(&head(Method::GET, uri));
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn reading(film: &Film, after: u64) -> Value {
    let (status, text) = answered(film, &format!("/frames?after={after}")).await;
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

fn times(reading: &Value) -> Vec<f64> {
    let frames = reading["frames"].as_array().unwrap();
    frames.iter().map(|frame| frame["seconds"].as_f64().unwrap()).collect()
}

#[tokio::test]
async fn readers_get_what_they_do_not_know_yet() {
    let film = Film::new("run", 10.0);
    let empty = reading(&film, 0).await;
    assert_eq!(empty, json!({"run": "run", "frames": [], "latest": null}));

    for seconds in [0.0, 4.0, 10.0, 19.0] {
        film.record(seconds, &json!({"name": "</script>"})).unwrap();
    }
    let first = reading(&film, 0).await;
    assert_eq!(times(&first), [0.0, 10.0]);
    let latest = json!({"number": 4, "seconds": 19.0, "frame": {"name": "</script>"}});
    assert_eq!(first["latest"], latest);
    assert_eq!(times(&reading(&film, 1).await), [10.0]);
    assert_eq!(times(&reading(&film, 3).await), [0.0; 0]);
    // A number of another film.
    assert_eq!(times(&reading(&film, 99).await), [0.0, 10.0]);
}

#[tokio::test]
async fn a_long_film_keeps_its_whole_length_in_bounded_memory() {
    let film = Film::new("run", 1.0);
    for second in 0..10_000_u32 {
        film.record(f64::from(second), &json!({})).unwrap();
    }
    let times = times(&reading(&film, 0).await);
    assert!((300..=600).contains(&times.len()), "{}", times.len());
    assert_eq!(times[..1], [0.0]);
    assert!(times[times.len() - 1] > 9_900.0);
    let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|gap| (16.0..=32.0).contains(gap)), "{gaps:?}");
}

#[tokio::test]
async fn the_document_needs_nothing_else_and_may_do_nothing_else() {
    let film = Film::new("run", 1.0);
    let (status, document) = answered(&film, "/").await;
    assert_eq!(status, 200);
    for outside in ["src=", "http://", "https://", "@import", "url(", "innerHTML", " style="] {
        assert!(!document.contains(outside), "{outside}");
    }
    assert!(!document.contains("/* script */") && !document.contains("/* style */"));
    let answer = PageRoutes::new(film.clone()).answer(&head(Method::GET, "/"));
    let policy = answer.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe"));

    assert_eq!(answered(&film, "/frames?after=x").await.0, 400);
    let posted = PageRoutes::new(film).answer(&head(Method::POST, "/frames"));
    assert_eq!(posted.status(), 405);
}
