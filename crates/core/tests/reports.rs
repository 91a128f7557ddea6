//! The reports of ab and wrk against their texts, read by eye (tests/golden/README.md).

use twinbed_core::reports::ab::{self, Failures, Times};
use twinbed_core::reports::ab_requests;
use twinbed_core::reports::wrk::{self, SocketErrors, Spread};

fn golden(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    std::fs::read(path).expect("a golden file")
}

fn ab(name: &str) -> ab::Report {
    ab::parse(&golden(&format!("ab/{name}.txt"))).expect("a report")
}

#[test]
fn ab_with_tls() {
    let report = ab("tls");
    assert_eq!(report.version.as_deref(), Some("2.3"));
    assert_eq!(report.server_software.as_deref(), Some("nginx/1.22.1"));
    assert_eq!((report.server_hostname.as_deref(), report.server_port), (Some("10.77.0.2"), Some(443)));
    assert_eq!(report.tls_protocol.as_deref(), Some("TLSv1.2,ECDHE-RSA-AES256-GCM-SHA384,2048,256"));
    assert_eq!(report.tls_server_key.as_deref(), Some("X25519 253 bits"));
    assert_eq!((report.document_path.as_deref(), report.document_bytes), (Some("/500"), Some(500)));
    assert_eq!(report.document_length_varies, Some(false));
    assert_eq!((report.concurrency, report.duration_s), (Some(2), Some(0.023)));
    assert_eq!((report.complete_requests, report.failed_requests), (Some(20), Some(0)));
    assert_eq!(report.failures, None);
    assert_eq!((report.transferred_bytes, report.html_bytes), (Some(14680), Some(10000)));
    assert_eq!(report.requests_per_second, Some(881.72));
    assert_eq!(report.time_per_request_s, Some(0.002268));
    assert_eq!(report.time_per_request_across_all_s, Some(0.001134));
    assert_eq!(report.received_bytes_per_second, Some(632.01 * 1024.0));
    let total = Times { min_s: 0.001, mean_s: 0.002, deviation_s: Some(0.0007), median_s: Some(0.002), max_s: 0.004 };
    assert_eq!(report.total, Some(total));
    assert_eq!(report.percentiles.len(), 9);
    assert_eq!(report.percentiles[2], (75, 0.003));
    assert_eq!((report.keep_alive_requests, report.non_2xx_responses, report.body_sent_bytes), (None, None, None));
    assert!(report.messages.is_empty());
}

#[test]
fn ab_with_failures() {
    let report = ab("failed");
    assert_eq!((report.complete_requests, report.failed_requests), (Some(40), Some(45)));
    let failures = Failures { connect: 0, receive: Some(8), length: 29, exceptions: 8 };
    assert_eq!(report.failures, Some(failures));
    assert_eq!(report.percentiles.last(), Some(&(100, 0.003)));
    assert_eq!(ab("404").non_2xx_responses, Some(50));
}

#[test]
fn ab_of_other_kinds() {
    assert_eq!(ab("keepalive").keep_alive_requests, Some(200));
    let post = ab("post");
    assert_eq!(post.body_sent_bytes, Some(2700));
    assert_eq!(post.sent_bytes_per_second, Some(1525.88 * 1024.0));
    assert_eq!(post.total_bytes_per_second, Some(3153.48 * 1024.0));
    let varies = ab("variable");
    assert_eq!((varies.document_bytes, varies.document_length_varies), (None, Some(true)));
    let short = ab("S");
    let zero = Times { min_s: 0.0, mean_s: 0.0, deviation_s: None, median_s: None, max_s: 0.0 };
    assert_eq!((short.connect, short.percentiles.len()), (Some(zero), 0));
    assert_eq!(ab("one").complete_requests, Some(1));
    assert_eq!(ab("timed").duration_s, Some(1.002));
}

#[test]
fn ab_that_gave_up() {
    let report = ab("refused");
    assert_eq!(report.complete_requests, None);
    assert_eq!(report.messages, ["apr_socket_recv: Connection refused (111)"]);
    let late = b"Benchmarking 10.0.0.1 (be patient)\napr_pollset_poll: The timeout specified has expired (70007)\nTotal of 12 requests completed\n";
    assert_eq!(ab::parse(late).expect("a report").aborted_after_requests, Some(12));
}

#[test]
fn ab_errors_name_the_line() {
    let text = String::from_utf8(golden("ab/plain.txt")).expect("text");
    let error = |from: &str, to: &str| {
        assert!(text.contains(from));
        ab::parse(text.replace(from, to).as_bytes()).expect_err("an error").to_string()
    };
    assert_eq!(
        error("Complete requests:      200", "Complete requests:      2oo"),
        "ab report, line 20: expected a count, found \"Complete requests:      2oo\""
    );
    assert!(error("Connect:        0    0 ", "Connect:        0    x ").contains("line 31"));
    assert!(error("[#/sec] (mean)", "[#/min]").contains("expected requests per second"));
    assert!(ab::parse(b"").is_err());
    assert!(ab::parse(b"command not found: ab\n").is_err());
    let html = ab::parse(&golden("ab/html.txt")).expect_err("HTML").to_string();
    assert!(html.contains("without -w"), "{html}");
}

#[test]
fn ab_requests_and_percentiles() {
    let requests = ab_requests::parse(&golden("ab/requests.tsv")).expect("requests");
    assert_eq!(requests.len(), 200);
    let last = requests[199];
    assert_eq!((last.start_s, last.connect_s, last.processing_s), (1_795_259_258, 0.0, 0.005));
    assert_eq!((last.total_s, last.waiting_s), (0.005, 0.005));
    assert!(requests.windows(2).all(|pair| pair[0].total_s <= pair[1].total_s));
    let percentiles = ab::parse_percentiles(&golden("ab/percentiles.csv")).expect("percentiles");
    assert_eq!(percentiles.len(), 101);
    assert_eq!((percentiles[0], percentiles[2], percentiles[100]), ((0, 0.000167), (2, 0.000191), (100, 0.005019)));
    let error =
        ab_requests::parse(b"starttime\tseconds\tctime\tdtime\tttime\twait\nnow\t1\t2\t3\n").expect_err("short");
    assert!(error.to_string().starts_with("ab requests, line 2"), "{error}");
}

#[test]
fn wrk_with_latency() {
    let report = wrk::parse(&golden("wrk/latency.txt")).expect("a report");
    assert_eq!((report.threads, report.connections, report.requested_duration_s), (Some(2), Some(4), Some(2.0)));
    assert_eq!(report.url.as_deref(), Some("http://10.77.0.2/500"));
    let latency =
        Spread { mean: Some(0.00072293), deviation: Some(0.00175), max: Some(0.02469), within_deviation: Some(0.91) };
    assert_eq!(report.latency, Some(latency));
    let rate = report.thread_requests_per_second.expect("a rate");
    assert_eq!((rate.mean, rate.deviation, rate.max), (Some(13_840.0), Some(4_590.0), Some(20_980.0)));
    assert_eq!(report.percentiles, [(50.0, 0.000096), (75.0, 0.0005), (90.0, 0.00228), (99.0, 0.00724)]);
    assert_eq!((report.requests, report.duration_s), (Some(55_064), Some(2.0)));
    assert_eq!(report.read_bytes, Some(38.81 * 1024.0 * 1024.0));
    assert_eq!(report.requests_per_second, Some(27_486.76));
    assert_eq!(report.read_bytes_per_second, Some(19.37 * 1024.0 * 1024.0));
    assert_eq!((report.socket_errors, report.non_2xx_or_3xx_responses), (None, None));
}

#[test]
fn wrk_of_other_kinds() {
    let plain = wrk::parse(&golden("wrk/plain.txt")).expect("a report");
    assert!(plain.percentiles.is_empty());
    assert_eq!(plain.latency.and_then(|latency| latency.mean), Some(0.00188));
    assert_eq!(wrk::parse(&golden("wrk/404.txt")).expect("a report").non_2xx_or_3xx_responses, Some(14_591));
    let bad = wrk::parse(&golden("wrk/socket-errors.txt")).expect("a report");
    assert_eq!(bad.socket_errors, Some(SocketErrors { connect: 1, read: 2, write: 3, timeout: 4 }));
    assert_eq!((bad.requested_duration_s, bad.duration_s), (Some(120.0), Some(120.0)));
    assert_eq!((bad.read_bytes, bad.read_bytes_per_second), (Some(3.5 * 1024.0), Some(29.87)));
    assert_eq!(bad.latency.and_then(|latency| latency.max), Some(63.0));
    let rate = bad.thread_requests_per_second.expect("a rate");
    assert_eq!((rate.mean, rate.within_deviation), (Some(0.0), None));
    let refused = wrk::parse(&golden("wrk/refused.txt")).expect_err("no report").to_string();
    assert!(refused.contains("unable to connect to 10.77.0.2:81 Connection refused"), "{refused}");
    let text = String::from_utf8(golden("wrk/latency.txt")).expect("text").replace("24.69ms", "24.69 ms");
    assert!(wrk::parse(text.as_bytes()).expect_err("a torn line").to_string().contains("line 4"));
}
