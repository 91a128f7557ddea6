//! pcap files of versions before 2.4, against tcpdump (tests/golden/old-pcap/how.md).

use std::path::{Path, PathBuf};

use twinbed_core::capture::read_slice;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/old-pcap")
}

#[test]
fn tcpdump_reads_the_same_lengths() {
    let expected = std::fs::read_to_string(golden().join("expected.tsv")).expect("tcpdump's reading");
    let mut lines = expected.lines().peekable();
    let mut files = 0;
    while let Some(line) = lines.peek() {
        let name = line.split('\t').next().expect("a file's name").to_owned();
        let bytes = std::fs::read(golden().join(&name)).expect("a capture");
        let origin = read_slice(&bytes, |frame| {
            let time_ns = frame.time_ns.expect("a time");
            let time = format!("{}.{:06}", time_ns / 1_000_000_000, time_ns % 1_000_000_000 / 1000);
            let own = format!("{name}\t{time}\t{}\t{}", frame.original_bytes, frame.data.len());
            assert_eq!(lines.next(), Some(own.as_str()));
        });
        assert!(origin.expect("a whole capture").skipped.is_empty(), "{name}");
        files += 1;
    }
    assert_eq!(files, 5);
}

/// The captured length stands second in version 2.2; an impossible one is named where it stands.
#[test]
fn an_impossible_length_is_named_where_it_stands() {
    let mut file = std::fs::read(golden().join("2.2-little-original-first.pcap")).expect("a capture");
    file[36..40].copy_from_slice(&u32::MAX.to_le_bytes());
    let error = read_slice(&file, |_| {}).expect_err("an impossible length");
    assert_eq!(
        error.to_string(),
        "pcap record header at byte 36: captured length is 4294967295, expected at most 16777216"
    );
}
