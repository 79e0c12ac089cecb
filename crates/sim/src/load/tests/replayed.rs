use std::io::Cursor;
use std::time::Duration;

use crate::load::{Arrival, RequestTrace};
use wva_supervise::SeedTree;

fn open(text: &'static str) -> Result<RequestTrace, String> {
    RequestTrace::open(Cursor::new(text), 1.0, &SeedTree::new(1))
}

fn all(text: &'static str) -> Vec<Arrival> {
    open(text).unwrap().map(Result::unwrap).collect()
}

fn listed(text: &'static str) -> Vec<(u64, u32, u32)> {
    let listed = |arrival: Arrival| {
        let millis = u64::try_from(arrival.at.as_millis()).unwrap();
        (millis, arrival.prompt_tokens, arrival.output_tokens)
    };
    all(text).into_iter().map(listed).collect()
}

/// The message of the first error.
fn error(text: &'static str) -> String {
    let failed = match open(text) {
        Err(error) => Some(error),
        Ok(mut trace) => trace.find_map(Result::err),
    };
    failed.unwrap()
}

#[test]
fn azure_times_count_from_the_first_request() {
    let text = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n\
                2023-11-16 23:59:59.5000000,374,44\r\n\
                2023-11-17 00:00:01.2500000,396,109";
    assert_eq!(listed(text), [(0, 374, 44), (1_750, 396, 109)]);
}

#[test]
fn aibrix_counts_failed_answers_as_one_token() {
    let text = "t_ms,input_tokens,output_tokens\n21,909,22\n\n500,0,0\n";
    assert_eq!(listed(text), [(21, 909, 22), (500, 1, 1)]);
}

#[test]
fn mooncake_steps_are_spread_and_prompts_shared() {
    let text = r#"{"timestamp": 0, "input_length": 1200, "output_length": 5, "hash_ids": [1, 2, 3]}
{"timestamp": 0, "input_length": 600, "output_length": 6, "hash_ids": [1]}
{"timestamp": 1000, "input_length": 7, "output_length": 7, "hash_ids": []}
{"timestamp": 9000, "input_length": 8, "output_length": 8}
{"timestamp": 9000, "input_length": 9, "output_length": 9}
"#;
    assert_eq!(
        listed(text),
        [(0, 1200, 5), (500, 600, 6), (1000, 7, 7), (9000, 8, 8), (10_500, 9, 9)]
    );
    let prefix = all(text)[0].prefix.clone().unwrap();
    assert_eq!((&*prefix.ids, prefix.tokens_per_id), (&[1, 2, 3][..], 512));
}

const AGGREGATE: &str = "t_s,rate_rps,active_clients,rate_with_lengths_rps,mean_input_tokens,mean_output_tokens\n\
                         0,10,1,1,1000,100\n600,0,1,1,1,1\n1200,20,1,1,500,50\n";

#[test]
fn an_aggregate_is_drawn_at_its_rate() {
    let arrivals = all(AGGREGATE);
    let within = |from, to| {
        let window = Duration::from_secs(from)..Duration::from_secs(to);
        arrivals.iter().filter(move |arrival| window.contains(&arrival.at))
    };
    let near = |found: usize, wanted: usize| found.abs_diff(wanted) < wanted / 20;
    assert!(near(within(0, 600).count(), 6_000));
    assert_eq!(within(600, 1_200).count(), 0);
    assert!(near(within(1_200, 1_800).count(), 12_000));
    assert_eq!(within(1_800, u64::MAX).count(), 0);
    let prompts: u64 = within(0, 600).map(|arrival| u64::from(arrival.prompt_tokens)).sum();
    assert!(near(usize::try_from(prompts).unwrap(), 6_000_000), "{prompts}");
    let halved = RequestTrace::open(Cursor::new(AGGREGATE), 0.5, &SeedTree::new(1)).unwrap();
    assert!(near(halved.count(), 9_000));
}

#[test]
fn what_cannot_be_read_is_refused_with_line_and_remedy() {
    for (text, message) in [
        ("", "line 0: the file holds no requests; give one that does"),
        (
            "t_ms,input_tokens,output_tokens\n1,2,3\n2,3",
            "line 3: 2 columns where 3 are needed; add what is missing or delete the line",
        ),
        (
            "t_ms,input_tokens,output_tokens\n1,-2,3",
            "line 2: input_tokens is \"-2\"; give a whole number of tokens",
        ),
        (
            "t_ms,input_tokens,output_tokens\nNaN,2,3",
            "line 2: t_ms is \"NaN\"; give a number that is not negative",
        ),
        (
            "t_ms,input_tokens,output_tokens\n9,2,3\n8,2,3",
            "line 3: the time goes back from 9ms to 8ms; sort the file by time",
        ),
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,2",
            "line 2: TIMESTAMP is \"yesterday\"; give a time like 2023-11-16 18:15:46.6805900",
        ),
    ] {
        assert_eq!(error(text), message, "{text}");
    }
    assert!(
        error("hello,world").starts_with("line 1: unknown format, the file begins \"hello,world\"")
    );
    let json = error("{\"timestamp\": 1}");
    assert!(
        json.contains("missing field `input_length`") && json.starts_with("line 1: "),
        "{json}"
    );
}

#[test]
fn files_that_are_no_text_are_refused() {
    let refuse = |bytes: Vec<u8>| {
        let opened = RequestTrace::open(Cursor::new(bytes), 1.0, &SeedTree::new(1));
        opened.unwrap_err()
    };
    let gzip = refuse(vec![0x1f, 0x8b, 8, 0, 0xff]);
    assert_eq!(gzip, "line 1: the file is compressed; unpack it first (gunzip -k FILE)");
    assert_eq!(refuse(vec![0xff, 0xfe, 0]), "line 1: not UTF-8; save the file as UTF-8");
    let long = refuse(vec![b'a'; 1_000_000]);
    assert!(long.starts_with("line 1: longer than 65536 bytes"), "{long}");
}

#[test]
fn an_error_is_the_last_item() {
    let trace = open("t_ms,input_tokens,output_tokens\n1,2,3\nx,1,1\n5,1,1").unwrap();
    let items: Vec<bool> = trace.map(|item| item.is_ok()).collect();
    assert_eq!(items, [true, false]);
}
