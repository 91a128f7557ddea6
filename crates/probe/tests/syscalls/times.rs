//! Time in call: of a sample, of all and of none, of one run that strace sees as well.
//!
//! A trace of the same run has each call's time, so that a sample's estimate is held against what it estimates.

use super::*;

const SHARE: f64 = 1.0 / 16.0;

/// (calls, seconds together) by name, from the lines of `strace -T`.
fn strace_times(text: &str) -> BTreeMap<String, (u64, f64)> {
    let mut times = BTreeMap::new();
    for (name, rest) in text.lines().filter_map(|line| line.split_once('(')) {
        let spent = rest.rsplit_once('<').and_then(|(_, spent)| spent.trim_end_matches('>').parse::<f64>().ok());
        let one: &mut (u64, f64) = times.entry(name.to_owned()).or_default();
        *one = (one.0 + 1, one.1 + spent.unwrap_or(0.0));
    }
    times
}

/// Of a call under the name `program`.
fn totals(count: &Count, call: libc::c_long) -> Totals {
    let entry = count.totals.iter().find(|((_, stream, _, n), _)| stream.2 == "program" && *n == number(call));
    *entry.expect("the call").1
}

/// The estimate of all calls' time and its standard error, in nanoseconds: as SYSCALLS.md has them.
fn estimate(of: &Totals) -> (f64, f64) {
    let (returned, timed) = (of.returned as f64, of.timed as f64);
    let (sum, squares) = (of.time_ns.unwrap() as f64, of.squares_ns2.unwrap() as f64);
    let variance = (squares - sum * sum / timed) / (timed - 1.0);
    (sum / timed * returned, returned * (variance / timed * (1.0 - timed / returned)).sqrt())
}

#[test]
fn the_estimate_of_a_sample_is_what_all_calls_took() {
    let (folder, group) = (Folder::new("times"), Group::new("times"));
    let (program, second) = programs(&folder);
    let arguments = ["--cgroup", group.text(), "--method", "bpf"];
    let count = |times: &str| Probe::start(&folder, times, &[&["count", "--times", times], &arguments[..]].concat());
    let counting = ["sampled", "all", "none"].map(count);
    let tracing = Probe::start(&folder, "trace", &[&["trace"], &arguments[..]].concat());
    let log = folder.path("strace");
    let mut child = group.spawn(Command::new("strace").args(["-T", "-o", &log, &program, "times", &second]));
    child.stdin.take().unwrap().write_all(b"x").unwrap();
    assert!(child.wait().unwrap().success());
    let [sampled, all, none] = counting.map(|probe| Count::parse(&probe.stop()));
    let trace = Trace::parse(&tracing.stop());
    let straced = strace_times(&fs::read_to_string(&log).unwrap());

    let header = |count: &Count| (count.header["times"].clone(), count.header["timed_share"].clone());
    assert_eq!(header(&sampled), ("sampled".into(), "0.0625".into()));
    assert_eq!(header(&all), ("all".into(), "1".into()));
    assert_eq!(header(&none), ("none".into(), "0".into()));
    assert_eq!([&sampled, &all, &none].map(|count| count.end.unwrap().2), [0; 3], "nothing is lost");
    // What is counted is the same, whatever is timed.
    assert_eq!(sampled.whole(), all.whole());
    assert_eq!(none.whole(), all.whole());
    assert_eq!(sampled.sums(), all.sums());
    assert_eq!(none.sums(), all.sums());
    let made: u64 = straced.values().map(|(calls, _)| calls).sum();
    let counted = all.sums().iter().filter(|((stream, _), _)| stream.2 == "program").map(|(_, sum)| sum.0).sum::<u64>();
    assert_eq!(counted, made - 1, "execve is made under another name");
    for totals in sampled.totals.values() {
        // A single one's square is its own.
        if totals.timed == 1 {
            let time = u128::from(totals.time_ns.unwrap());
            assert_eq!(totals.squares_ns2, Some(time * time));
        }
    }
    assert!(all.totals.values().all(|totals| totals.timed == totals.returned && totals.squares_ns2.is_none()));
    assert!(none.totals.values().all(|totals| totals.timed == 0 && totals.time_ns.is_none()));

    for (call, name, least_ns) in [(libc::SYS_nanosleep, "nanosleep", 250_000.0), (libc::SYS_read, "read", 0.0)] {
        let of_sample = totals(&sampled, call);
        let of_all = totals(&all, call);
        let calls = of_all.calls as f64;
        assert_eq!((of_sample.calls, of_all.calls), (straced[name].0, straced[name].0), "{name}");
        let chosen = of_sample.timed as f64;
        assert!((chosen - calls * SHARE).abs() < 5.0 * (calls * SHARE * (1.0 - SHARE)).sqrt(), "{name}: {chosen}");

        let (estimate_ns, from_file_ns) = estimate(&of_sample);
        let of_call = |one: &&Call| one.number == number(call);
        let calls_of = trace.streams.iter().filter(|(stream, _)| stream.2 == "program");
        let durations: Vec<f64> =
            calls_of.flat_map(|(_, made)| made.iter().filter(of_call)).map(|one| one.exit.unwrap().0 as f64).collect();
        assert_eq!(durations.len() as f64, calls);
        let truth_ns: f64 = durations.iter().sum();
        let mean = truth_ns / calls;
        let variance = durations.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (calls - 1.0);
        // A sample without a rare long call (the machine was busy) cannot know of it; the trace does.
        let from_trace_ns = calls * (variance / chosen * (1.0 - chosen / calls)).sqrt();
        // Few calls may take most of the time, and n such are all chosen once in 16^n: 3.9 n^0.5 of these errors off.
        let error_ns = 2.0 * from_file_ns.max(from_trace_ns);
        assert!(
            (estimate_ns - truth_ns).abs() <= 4.0 * error_ns,
            "{name}: {estimate_ns} of {chosen} calls, in truth {truth_ns}, standard error {from_file_ns}, {from_trace_ns}"
        );
        let all_ns = of_all.time_ns.unwrap() as f64;
        assert!((estimate_ns - all_ns).abs() <= 4.0 * error_ns, "{name}: {estimate_ns}, {all_ns}");
        // No sleep is shorter than it was told; and strace sees a call begin before and end after, to the microsecond.
        assert!(all_ns >= least_ns * calls, "{name}: {all_ns}");
        assert!(all_ns <= straced[name].1 * 1e9 + 1000.0 * calls, "{name}: {all_ns}, {}", straced[name].1);
    }
}

#[test]
fn tracefs_times_all_calls_whatever_is_asked() {
    let (folder, group) = (Folder::new("times-tracefs"), Group::new("times-tracefs"));
    let mut program = Program::start(&group, &folder, "plain");
    let arguments = ["count", "--times", "none", "--cgroup", group.text(), "--method", "tracefs"];
    let probe = Probe::start(&folder, "count", &arguments);
    program.go();
    program.finish();
    let count = Count::parse(&probe.stop());
    assert_eq!((&count.header["times"][..], &count.header["timed_share"][..]), ("all", "1"));
    assert!(count.totals.values().all(|totals| totals.timed == totals.returned && totals.time_ns.is_some()));
}
