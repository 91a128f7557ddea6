//! Counter snapshots: a real file of the probe, its values read by eye, and small ones with planted faults.

use twinbed_core::proc::series::{NOT_IN_FIRST, NOT_IN_LAST, ONE_VALUE, SOURCE_MISSING, WENT_BACKWARDS};
use twinbed_core::proc::{kernel_log, Counters, Difference, Kind, Value};

fn host() -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/counters/host.txt");
    std::fs::read(path).expect("the golden file")
}

fn difference<'a>(counters: &'a Counters, key: &str) -> Difference<'a> {
    counters.differences().find(|row| row.key == Some(key)).unwrap_or_else(|| panic!("no key {key}"))
}

/// A snapshot file of the given sources, a second apart.
fn file(snapshots: &[&[(&str, Option<&str>)]]) -> Vec<u8> {
    let mut text = String::new();
    for (at, sources) in snapshots.iter().enumerate() {
        text += &format!("@ {at} {}.500000000 {}.000000000\n", 10 + at, 1_700_000_000 + at);
        for (name, content) in *sources {
            match content {
                Some(content) => text += &format!("# {name} {}\n{content}\n", content.len()),
                None => text += &format!("# {name} -\n"),
            }
        }
    }
    text.into_bytes()
}

#[test]
fn a_real_file() {
    let bytes = host();
    let counters = Counters::parse(&bytes).expect("counters");
    assert_eq!(counters.taken.len(), 4);
    assert_eq!(counters.cut_off, None);
    assert!(counters.unread_sources.is_empty(), "{:?}", counters.unread_sources);
    for (key, first, last) in [
        ("cpu0.user_ticks", 75_902, 75_977),
        ("cpu0.system_ticks", 33_209, 33_213),
        ("ctxt", 20_731_196, 20_734_044),
        ("intr.LOC(Local timer interrupts).cpu1", 700_426, 700_859),
        ("softirqs:NET_RX.cpu0", 10_281_443, 10_281_443),
        ("vmstat:pgfault", 56_462_685, 56_467_511),
        ("net/dev:lo.rx_packets", 29, 29),
        ("pressure:cpu.some.total_us", 603_408_620, 604_000_798),
    ] {
        let row = difference(&counters, key);
        assert_eq!((row.first, row.last), (Some(&Value::Integer(first)), Some(&Value::Integer(last))), "{key}");
        assert_eq!(row.difference, Some((last - first) as f64), "{key}");
        assert_eq!((row.kind, row.mean, row.note), (Kind::Counter, None, None), "{key}");
        let seconds = row.seconds.expect("a time");
        assert!((seconds - 0.802385419).abs() < 1e-9, "{seconds}");
    }
    let free = difference(&counters, "vmstat:nr_free_pages");
    let mean = (1_192_906.0 + 1_192_735.0 + 1_192_079.0 + 1_191_678.0) / 4.0;
    assert_eq!((free.kind, free.difference, free.mean), (Kind::Gauge, None, Some(mean)));
    let memory = difference(&counters, "meminfo:MemFree_bytes");
    assert_eq!(memory.first, Some(&Value::Integer(16_911_452 * 1024)));
    let limit = difference(&counters, "snmp:Tcp.MaxConn");
    assert_eq!((limit.kind, limit.mean), (Kind::Gauge, Some(-1.0)));
    let offload = difference(&counters, "ethtool-k:lo.tcp-segmentation-offload");
    assert_eq!((offload.kind, offload.last), (Kind::Setting, Some(&Value::Text("on".into()))));
    let missing: Vec<&str> =
        counters.differences().filter(|row| row.note == Some(SOURCE_MISSING)).map(|row| row.source).collect();
    assert_eq!(missing, ["ethtool -S lo", "ethtool -S nosuch", "ethtool -k nosuch"]);
    let ticks: Vec<f64> = counters
        .intervals()
        .filter(|interval| interval.key == "cpu0.user_ticks")
        .filter_map(|interval| interval.difference)
        .collect();
    assert_eq!(ticks, [29.0, 28.0, 18.0]);
    let log = kernel_log(&bytes).expect("a log");
    assert!(log.present && log.records.is_empty() && log.lost == 0);
}

#[test]
fn what_has_no_difference_says_why() {
    let stat = |ctxt: &str, more: &str| format!("ctxt {ctxt}\n{more}");
    let (one, two, three) = (stat("100", "old 1\n"), stat("50", "new 7\n"), stat("200", "new 9\n"));
    let snapshots = [
        [("/proc/stat", Some(one.as_str())), ("/proc/pressure/io", None)],
        [("/proc/stat", Some(two.as_str())), ("/proc/pressure/io", None)],
        [("/proc/stat", Some(three.as_str())), ("/proc/pressure/io", None)],
    ];
    let list: Vec<&[(&str, Option<&str>)]> = snapshots.iter().map(|snapshot| &snapshot[..]).collect();
    let bytes = file(&list);
    let counters = Counters::parse(&bytes).expect("counters");
    for (key, note) in [("ctxt", WENT_BACKWARDS), ("new", NOT_IN_FIRST), ("old", NOT_IN_LAST)] {
        let row = difference(&counters, key);
        assert_eq!((row.difference, row.note), (None, Some(note)), "{key}");
    }
    let notes: Vec<_> =
        counters.intervals().map(|interval| (interval.key, interval.difference, interval.note)).collect();
    assert_eq!(notes, [("ctxt", None, Some(WENT_BACKWARDS)), ("ctxt", Some(150.0), None), ("new", Some(2.0), None)]);
    let single = file(&list[..1]);
    let counters = Counters::parse(&single).expect("counters");
    assert_eq!(difference(&counters, "ctxt").note, Some(ONE_VALUE));
}

#[test]
fn integers_stay_exact() {
    let (first, last) = (format!("ctxt {}\n", u64::MAX - 1), format!("ctxt {}\n", u64::MAX));
    let bytes = file(&[&[("/proc/stat", Some(&first))], &[("/proc/stat", Some(&last))]]);
    assert_eq!(difference(&Counters::parse(&bytes).expect("counters"), "ctxt").difference, Some(1.0));
}

#[test]
fn other_sources() {
    let interrupts = "           CPU0       CPU1\n 24:  10   20   PCI-MSI 512-edge      virtio0-input.0\nERR:  3\n";
    let softnet = "0000000a 00000001 00000002 0 0 0 0 0 00000003 0 0 00000004 00000007 00000005 00000006\n";
    let statistics = "NIC statistics:\n     rx_packets: 12\n     [0]: rx_drops: 5\n";
    let bytes = file(&[&[
        ("/proc/interrupts", Some(interrupts)),
        ("/proc/net/softnet_stat", Some(softnet)),
        ("ethtool -S eth0", Some(statistics)),
        ("/proc/nothing", Some("x\n")),
    ]]);
    let counters = Counters::parse(&bytes).expect("counters");
    for (key, value) in [
        ("intr.24(PCI-MSI 512-edge virtio0-input.0).cpu1", 20),
        ("intr.ERR", 3),
        ("softnet:cpu7.processed", 10),
        ("softnet:cpu7.dropped", 1),
        ("softnet:cpu7.backlog_len", 4),
        ("ethtool-S:eth0.rx_packets", 12),
        ("ethtool-S:eth0.[0]: rx_drops", 5),
    ] {
        assert_eq!(difference(&counters, key).last, Some(&Value::Integer(value)), "{key}");
    }
    assert_eq!(counters.unread_sources, ["/proc/nothing"]);
}

/// Documentation/scheduler/sched-stats.rst: the seventh to ninth number of a CPU's line.
#[test]
fn schedstat_of_a_version_that_is_known() {
    let cpus = "cpu0 1 0 3 4 5 6 2067797287 427125525 733\ndomain0 3 7 7 7\ncpu1 1 0 3 4 5 6 8 9 10\n";
    let text = |version: &str| format!("version {version}\ntimestamp 4294893229\n{cpus}");
    let counters = Counters::parse(&file(&[&[("/proc/schedstat", Some(&text("17")))]])).expect("counters");
    let actual: Vec<(&str, Option<&Value>)> =
        counters.differences().map(|row| (row.key.expect("a key"), row.last)).collect();
    let expected: Vec<(&str, Value)> = [
        ("schedstat:cpu0.run_time_ns", 2_067_797_287),
        ("schedstat:cpu0.run_delay_ns", 427_125_525),
        ("schedstat:cpu0.timeslices", 733),
        ("schedstat:cpu1.run_time_ns", 8),
        ("schedstat:cpu1.run_delay_ns", 9),
        ("schedstat:cpu1.timeslices", 10),
    ]
    .map(|(key, value)| (key, Value::Integer(value)))
    .into();
    assert_eq!(actual, expected.iter().map(|(key, value)| (*key, Some(value))).collect::<Vec<_>>());
    let other = Counters::parse(&file(&[&[("/proc/schedstat", Some(&text("99")))]])).expect("counters");
    assert_eq!(other.differences().count(), 0);
    let wrong = Counters::parse(&file(&[&[("/proc/schedstat", Some("version 15\ncpu0 1 2 3\n"))]]));
    assert!(wrong.expect_err("too few numbers").to_string().contains("a CPU and nine numbers"));
}

/// Each is a file with one number (Documentation/virt/kvm and virt/kvm/kvm_main.c of Linux).
#[test]
fn exits_of_guests() {
    for name in ["exits", "halt_exits", "halt_wakeup"] {
        let path = format!("/sys/kernel/debug/kvm/{name}");
        let of = |count| file(&[&[(path.as_str(), Some("800\n"))], &[(path.as_str(), Some(count))]]);
        let bytes = of("845\n");
        let counters = Counters::parse(&bytes).expect("counters");
        assert_eq!(difference(&counters, &format!("kvm:{name}")).difference, Some(45.0));
        assert!(Counters::parse(&of("many\n")).is_err());
    }
}

#[test]
fn wake_ups_of_idle_cpus_and_why_there_are_none() {
    let of = |text| [("wake-ups", Some(text))];
    let bytes = file(&[&of("cpu0 5 1000\ncpu1 0 0\nmissed 0\n"), &of("cpu0 9 41000\ncpu1 0 0\nmissed 2\n")]);
    let counters = Counters::parse(&bytes).expect("counters");
    for (key, expected) in [
        ("wake_ups:cpu0.count", 4.0),
        ("wake_ups:cpu0.latency_ns", 40_000.0),
        ("wake_ups:cpu1.count", 0.0),
        ("wake_ups:missed", 2.0),
    ] {
        assert_eq!(difference(&counters, key).difference, Some(expected), "{key}");
    }
    let bytes = file(&[&of("refused load a BPF program: Operation not permitted\n")]);
    let counters = Counters::parse(&bytes).expect("counters");
    let row = difference(&counters, "wake_ups:refused");
    let reason = Value::Text("load a BPF program: Operation not permitted".to_owned());
    assert_eq!((row.kind, row.first), (Kind::Setting, Some(&reason)));
    assert!(Counters::parse(&file(&[&of("cpu0 5\n")])).is_err());
}

/// Documentation/admin-guide/pm/cpuidle.rst: usage is a number of times, time is in microseconds.
#[test]
fn idle_states() {
    let of = |text| [("idle-states", Some(text))];
    let states = "cpu0 state0 1 3 POLL\ncpu0 state1 10 700 haltpoll idle\n";
    let bytes = file(&[
        &of("governor haltpoll\nguest_halt_poll_ns 0\ncpu0 state0 1 3 POLL\ncpu0 state1 8 500 haltpoll idle\n"),
        &of(states),
    ]);
    let counters = Counters::parse(&bytes).expect("counters");
    for (key, expected) in [
        ("cpuidle:cpu0.state0(POLL).usage", 0.0),
        ("cpuidle:cpu0.state1(haltpoll idle).usage", 2.0),
        ("cpuidle:cpu0.state1(haltpoll idle).time_us", 200.0),
    ] {
        assert_eq!(difference(&counters, key).difference, Some(expected), "{key}");
    }
    assert_eq!(difference(&counters, "cpuidle:governor").first, Some(&Value::Text("haltpoll".to_owned())));
    assert!(Counters::parse(&file(&[&of("cpu0 state0 1\n")])).is_err());
}

#[test]
fn the_kernels_log() {
    let log = "6,1234,5678901,-;e1000: eth0 NIC Link is Up\n SUBSYSTEM=pci\n28,1235,5678999,c;tab\\x09here\nlost 3\n";
    let log = kernel_log(&file(&[&[("/dev/kmsg", Some(log))]])).expect("a log");
    assert_eq!(log.lost, 3);
    let rows: Vec<_> = log
        .records
        .iter()
        .map(|row| (row.sequence, row.seconds, row.level_name(), row.facility, row.text.as_str()))
        .collect();
    assert_eq!(
        rows,
        [(1234, 5.678901, "info", 0, "e1000: eth0 NIC Link is Up"), (1235, 5.678999, "warning", 3, "tab\there")]
    );
    assert!(!kernel_log(&host()[..20_000]).expect("a log").present);
}

#[test]
fn a_file_cut_at_any_byte() {
    let bytes = host();
    let second = bytes.windows(4).position(|window| window == b"\n@ 1").expect("a second snapshot") + 1;
    for length in (0..bytes.len()).step_by(1009) {
        match Counters::parse(&bytes[..length]) {
            Ok(counters) => assert!(!counters.taken.is_empty()),
            Err(error) => assert!(length < second && !error.to_string().is_empty(), "{length}: {error}"),
        }
    }
    let cut = Counters::parse(&bytes[..second + 200]).expect("the first snapshot");
    assert_eq!(cut.taken.len(), 1);
    assert!(cut.cut_off.expect("a reason").to_string().contains("the source's byte count"));
}

#[test]
fn errors_name_the_line_of_the_file() {
    let bytes =
        file(&[&[("/proc/loadavg", Some("0.1 0.2 0.3 1/2 3\n")), ("/proc/stat", Some("cpu 1 2\nctxt many\n"))]]);
    let error = Counters::parse(&bytes).expect_err("not a number").to_string();
    assert_eq!(error, "/proc/stat, line 7: expected a whole number, not \"many\", found \"ctxt many\"");
    let error = Counters::parse(b"@ 0 1.0\n").expect_err("a short heading").to_string();
    assert_eq!(error, "counter snapshots, line 1: expected \"@ INDEX MONOTONIC REALTIME\", found \"@ 0 1.0\"");
}

#[test]
fn queueing_disciplines_of_tc() {
    // As iproute2 6.1 prints them; the counts are changed to differ.
    let text = |dropped: u32| {
        format!(
            "qdisc htb 1: dev q0 root refcnt 3 r2q 10 default 0x1 direct_packets_stat 0 direct_qlen 1000\n \
             Sent 700 bytes 5 pkt (dropped {dropped}, overlimits 3 requeues 0) \n backlog 0b 0p requeues 0\n\
             qdisc pfifo 2: dev q0 parent 1:1 limit 5p\n \
             Sent 700 bytes 5 pkt (dropped {dropped}, overlimits 0 requeues 0) \n backlog 0b 0p requeues 0\n\
             qdisc noqueue 0: dev lo root refcnt 2 \n Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \n"
        )
    };
    let (before, after) = (text(2), text(9));
    let bytes = file(&[&[("tc -s qdisc", Some(&before))], &[("tc -s qdisc", Some(&after))]]);
    let counters = Counters::parse(&bytes).expect("counters");
    for (key, moved) in [
        ("tc:q0.root.dropped", 7.0),
        ("tc:q0.2.dropped", 7.0),
        ("tc:q0.root.overlimits", 0.0),
        ("tc:lo.root.dropped", 0.0),
    ] {
        assert_eq!(difference(&counters, key).difference, Some(moved), "{key}");
    }
    assert_eq!(difference(&counters, "tc:q0.root.sent_bytes").first, Some(&Value::Integer(700)));
    let orphan = file(&[&[("tc -s qdisc", Some(" Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \n"))]]);
    assert!(Counters::parse(&orphan).is_err());
}
