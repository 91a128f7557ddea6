//! The statistics against what tcptrace printed (tests/golden/flows/expected.py), every column, at its precision.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use twinbed_core::capture;
use twinbed_core::readers::tcptrace::{Engine, Options, Row, Side};

/// How tcptrace prints a value.
enum Printed {
    Count(u64),
    /// 0 where there is none.
    Zero(Option<u64>),
    /// NA where there is none.
    Missing(Option<i128>),
    /// The digits after the point cut off.
    Cut(Option<f64>),
    /// Rounded, in units of which there are so many to ours, with so many digits after the point.
    Rounded(Option<f64>, f64, i32),
    Text(String),
}
use Printed::*;

fn columns(side: &Side) -> Vec<(&'static str, Printed)> {
    let yes = |is: bool| if is { "Y" } else { "N" };
    let ms = |time| Rounded(time, 1e3, 1);
    let small = |value: Option<u32>| Zero(value.map(u64::from));
    vec![
        ("total_packets", Count(side.total_packets)),
        ("resets_sent", Count(side.rare().resets_sent)),
        ("ack_pkts_sent", Count(side.ack_pkts_sent)),
        ("pure_acks_sent", Count(side.pure_acks_sent)),
        ("sack_pkts_sent", Count(side.rare().sack_pkts_sent)),
        ("dsack_pkts_sent", Count(side.rare().dsack_pkts_sent)),
        ("max_sack_blks/ack", Count(side.rare().max_sack_blks_per_ack)),
        ("unique_bytes_sent", Count(side.unique_bytes_sent)),
        ("actual_data_pkts", Count(side.actual_data_pkts)),
        ("actual_data_bytes", Count(side.actual_data_bytes)),
        ("rexmt_data_pkts", Count(side.rare().rexmt_data_pkts)),
        ("rexmt_data_bytes", Count(side.rare().rexmt_data_bytes)),
        ("zwnd_probe_pkts", Count(side.rare().zwnd_probe_pkts)),
        ("zwnd_probe_bytes", Count(side.rare().zwnd_probe_bytes)),
        ("outoforder_pkts", Count(side.rare().outoforder_pkts)),
        ("pushed_data_pkts", Count(side.pushed_data_pkts)),
        ("SYN/FIN_pkts_sent", Text(format!("{}/{}", side.syn_pkts_sent, side.fin_pkts_sent))),
        ("req_1323_ws/ts", Text(format!("{}/{}", yes(side.req_1323_ws), yes(side.req_1323_ts)))),
        ("adv_wind_scale", Count(side.adv_wind_scale.into())),
        ("req_sack", Text(yes(side.req_sack).into())),
        ("sacks_sent", Count(side.rare().sacks_sent)),
        ("urgent_data_pkts", Count(side.rare().urgent_data_pkts)),
        ("urgent_data_bytes", Count(side.rare().urgent_data_bytes)),
        ("mss_requested", Zero(side.mss_requested.map(u64::from))),
        ("max_segm_size", small(side.max_segm_size)),
        ("min_segm_size", small(side.min_segm_size)),
        ("avg_segm_size", Cut(side.avg_segm_size)),
        ("max_win_adv", Zero(side.max_win_adv)),
        ("min_win_adv", Zero(side.min_win_adv)),
        ("zero_win_adv", Count(side.zero_win_adv)),
        ("avg_win_adv", Cut(side.avg_win_adv)),
        ("max_owin", Zero(side.max_owin)),
        ("min_non-zero_owin", Zero(side.min_non_zero_owin)),
        ("avg_owin", Cut(side.avg_owin)),
        ("initial_window_bytes", Zero(side.initial_window_bytes)),
        ("initial_window_pkts", Zero(side.initial_window_pkts)),
        ("ttl_stream_length", Missing(side.ttl_stream_length.map(i128::from))),
        ("missed_data", Missing(side.missed_data.map(i128::from))),
        ("truncated_data", Count(side.truncated_data)),
        ("truncated_packets", Count(side.truncated_packets)),
        ("data_xmit_time", Rounded(side.data_xmit_time, 1.0, 3)),
        ("idletime_max", ms(side.idletime_max)),
        ("hardware_dups", Count(side.rare().hardware_dups)),
        ("throughput", Rounded(side.throughput, 1.0, 0)),
        ("RTT_samples", Count(side.rtt_samples)),
        ("RTT_min", ms(side.rtt_min)),
        ("RTT_max", ms(side.rtt_max)),
        ("RTT_avg", ms(side.rtt_avg)),
        ("RTT_stdev", ms(side.rtt_stdev)),
        ("RTT_from_3WHS", ms(side.rtt_from_3whs)),
        ("RTT_full_sz_smpls", Count(side.rtt_full_sz_smpls)),
        ("RTT_full_sz_min", ms(side.rtt_full_sz_min)),
        ("RTT_full_sz_max", ms(side.rtt_full_sz_max)),
        ("RTT_full_sz_avg", ms(side.rtt_full_sz_avg)),
        ("RTT_full_sz_stdev", ms(side.rtt_full_sz_stdev)),
        ("post-loss_acks", Count(side.rare().post_loss_acks)),
        ("ambiguous_acks", Count(side.rare().ambiguous_acks)),
        ("RTT_min_(last)", ms(side.rare().rtt_min_last)),
        ("RTT_max_(last)", ms(side.rare().rtt_max_last)),
        ("RTT_avg_(last)", ms(side.rare().rtt_avg_last)),
        ("RTT_sdv_(last)", ms(side.rare().rtt_sdv_last)),
        ("segs_cum_acked", Count(side.segs_cum_acked)),
        ("duplicate_acks", Count(side.duplicate_acks)),
        ("triple_dupacks", Count(side.rare().triple_dupacks)),
        ("max_#_retrans", Count(side.rare().max_retrans)),
        ("min_retr_time", ms(side.rare().min_retr_time)),
        ("max_retr_time", ms(side.rare().max_retr_time)),
        ("avg_retr_time", ms(side.rare().avg_retr_time)),
        ("sdv_retr_time", ms(side.rare().sdv_retr_time)),
    ]
}

fn agrees(ours: &Printed, theirs: &str) -> bool {
    let number = || theirs.parse::<f64>().ok();
    match ours {
        Count(value) => theirs == value.to_string(),
        Zero(value) => theirs == value.unwrap_or(0).to_string(),
        Missing(None) | Rounded(None, ..) | Cut(None) => theirs == "NA" || number() == Some(0.0),
        // A negative difference is printed as the unsigned number it is kept as.
        Missing(Some(value)) => theirs == value.to_string() || theirs == (value + (1 << 64)).to_string(),
        Cut(Some(value)) => number().is_some_and(|theirs| (value.trunc() - theirs).abs() < 1e-6),
        Rounded(Some(value), unit, digits) => {
            number().is_some_and(|theirs| (value * unit - theirs).abs() <= 0.5 / 10f64.powi(*digits) + 1e-6)
        }
        Text(value) => theirs == value,
    }
}

/// tcptrace writes microseconds without leading zeros: 1389719042.4547 is 1389719042.004547.
fn printed_ns(time: &str) -> i64 {
    let (seconds, microseconds) = time.split_once('.').expect("a time");
    let number = |text: &str| text.parse::<i64>().expect("a number");
    number(seconds) * 1_000_000_000 + number(microseconds) * 1_000
}

/// docs/flows.md, "Where tcptrace is not followed": capture, column.
const DIFFERENT: [(&str, &str); 4] = [
    ("zeek-fin_retransmission.pcap", "ttl_stream_length"),
    ("zeek-fin_retransmission.pcap", "missed_data"),
    ("zeek-truncated-header.pcap", "req_1323_ws/ts"),
    ("zeek-cooper-grill-dvwa.pcapng", "throughput"),
];

/// The columns of full-size segments, which are compared with the build for 32 bits (tests/golden/flows/full_size.py).
const FULL_SIZE: [&str; 5] =
    ["RTT_full_sz_smpls", "RTT_full_sz_min", "RTT_full_sz_max", "RTT_full_sz_avg", "RTT_full_sz_stdev"];

/// Sides all of whose samples are of segments of one number, of which tcptrace keeps the last alone, not all of the longest
/// as its manual says (docs/flows.md).
const ONE_NUMBER_EACH: [(&str, usize, &str); 18] = [
    ("http-ipv6.pcap", 6, "a2b"),
    ("http-ipv6.pcap", 6, "b2a"),
    ("random-100045.pcap", 0, "a2b"),
    ("random-100052.pcap", 0, "a2b"),
    ("random-100060.pcap", 0, "a2b"),
    ("random-100061.pcap", 1, "a2b"),
    ("random-100063.pcap", 1, "b2a"),
    ("random-330.pcap", 3, "b2a"),
    ("zeek-bro.org-96.pcap", 10, "a2b"),
    ("zeek-bro.org-96.pcap", 10, "b2a"),
    ("zeek-bro.org-96.pcap", 11, "a2b"),
    ("zeek-bro.org-96.pcap", 11, "b2a"),
    ("zeek-bro.org-96.pcap", 12, "a2b"),
    ("zeek-bro.org-96.pcap", 12, "b2a"),
    ("zeek-bro.org-96.pcap", 8, "a2b"),
    ("zeek-bro.org-96.pcap", 8, "b2a"),
    ("zeek-bro.org-96.pcap", 9, "a2b"),
    ("zeek-bro.org-96.pcap", 9, "b2a"),
];

/// Their cells by capture, connection and direction.
fn full_size() -> BTreeMap<(String, usize, String), Vec<String>> {
    let text = std::fs::read_to_string(golden().join("flows/full-size.tsv")).expect("text");
    let cells = text.lines().map(|line| line.split('\t').map(str::to_owned).collect::<Vec<_>>());
    cells.map(|row| ((row[0].clone(), row[1].parse().expect("a number"), row[2].clone()), row[3..].to_vec())).collect()
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

pub fn rows(bytes: &[u8]) -> Vec<Row> {
    let mut engine = Engine::new(Options::default());
    let mut rows = Vec::new();
    let origin = capture::read_slice(bytes, |frame| engine.frame(frame, &mut |row| rows.push(row))).expect("a capture");
    engine.finish(origin, &mut |row| rows.push(row));
    rows
}

#[test]
fn every_column_is_as_tcptrace_prints_it() {
    let mut compared = 0;
    let mut wrong = Vec::new();
    let full_size = full_size();
    for entry in std::fs::read_dir(golden().join("flows")).expect("the golden folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        let Some(name) = name.strip_suffix(".tcptrace.csv") else { continue };
        let folder = if name.starts_with("random-") { "flows" } else { "captures" };
        let rows = rows(&std::fs::read(golden().join(folder).join(name)).expect("a capture"));
        let text = std::fs::read_to_string(&path).expect("text");
        let mut lines = text.lines();
        // One name is spelt otherwise for a to b.
        let head = lines.next().expect("a header").replace("RTT full_sz_stdev", "RTT_full_sz_stdev");
        let head: Vec<&str> = head.split(',').collect();
        let theirs: Vec<BTreeMap<&str, &str>> =
            lines.map(|line| head.iter().copied().zip(line.split(',')).collect()).collect();
        assert_eq!(rows.len(), theirs.len(), "{name}: connections");
        for (at, (row, theirs)) in rows.iter().zip(&theirs).enumerate() {
            assert_eq!(
                row.first_ns.map(|ns| ns / 1_000 * 1_000),
                Some(printed_ns(theirs["first_packet"])),
                "{name} {at}"
            );
            for (side, way, letter) in [(&row.a, "a2b", "a"), (&row.b, "b2a", "b")] {
                assert_eq!(side.port.to_string(), theirs[format!("port_{letter}").as_str()], "{name}");
                let of_full_size = &full_size[&(name.to_owned(), at, way.to_owned())];
                let cell = |column: &str| match FULL_SIZE.iter().position(|name| *name == column) {
                    Some(place) => of_full_size[place].as_str(),
                    None => theirs[format!("{column}_{way}").as_str()],
                };
                // A window below 0 is printed as an unsigned number, and all three columns are of no use then.
                let is_wrapped =
                    ["max_owin", "min_non-zero_owin", "avg_owin"].iter().any(|column| cell(column).len() > 12);
                for (column, ours) in columns(side) {
                    if FULL_SIZE.contains(&column) && ONE_NUMBER_EACH.contains(&(name, at, way)) {
                        assert_eq!((side.rtt_full_sz_smpls > 1, cell("RTT_full_sz_smpls")), (true, "1"), "{name} {at}");
                        assert_eq!(side.rtt_full_sz_smpls, side.rtt_samples, "{name} {at}");
                        continue;
                    }
                    if column.contains("owin") && is_wrapped || DIFFERENT.contains(&(name, column)) {
                        continue;
                    }
                    compared += 1;
                    if !agrees(&ours, cell(column)) {
                        wrong.push(format!("{name} {at} {way} {column}: {}", cell(column)));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(compared > 15_000, "{compared} cells");
}
