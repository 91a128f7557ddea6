//! Many threads and programs that make calls in no order, under changing names, in many short slices.

use super::*;

const ROUNDS: usize = 3;
/// More than one round has (some 10,000), fewer than all three.
const STATES_OF_A_ROUND: &str = "14000";
const TOO_FEW_STATES: &str = "700";
/// Six threads and two children, each under two names.
const STREAMS_OF_A_ROUND: usize = 16;
const SKIP: usize = 6000;

/// (stream, part, history): what a count of a whole run has.
type Parts = BTreeMap<(Stream, char, Order3), u64>;

/// The calls of each thread are cut after the first `skip`, whatever its name is then.
fn parts_of(trace: &Trace, skip: usize) -> Parts {
    let mut made: BTreeMap<u32, usize> = BTreeMap::new();
    let mut parts = Parts::new();
    for (stream, calls) in &trace.streams {
        let index = made.entry(stream.0).or_default();
        let numbers: Vec<u16> = calls.iter().map(|call| call.number).collect();
        for history in order_3(&numbers) {
            *index += 1;
            let part = ['a', '0', '1', '2', 'b'][index.saturating_sub(skip).min(4)];
            *parts.entry((stream.clone(), part, history)).or_default() += 1;
        }
    }
    parts
}

fn parts(count: &Count) -> Parts {
    let mut parts = Parts::new();
    for ((_, stream, part, history), calls) in &count.transitions {
        *parts.entry((stream.clone(), *part, *history)).or_default() += calls;
    }
    parts
}

/// Some of what either has and the other has not.
fn unlike<K: Ord + Clone, V: PartialEq + Clone>(actual: &BTreeMap<K, V>, expected: &BTreeMap<K, V>) -> Vec<(K, V)> {
    let lacks = |one: &BTreeMap<K, V>, other: &BTreeMap<K, V>| {
        let lacking = one.iter().filter(|(key, value)| other.get(key) != Some(*value)).take(4);
        lacking.map(|(key, value)| (key.clone(), value.clone())).collect::<Vec<_>>()
    };
    [lacks(actual, expected), lacks(expected, actual)].concat()
}

#[test]
fn slices_of_a_crowd_are_what_its_trace_has() {
    let (folder, group) = (Folder::new("crowds"), Group::new("crowds"));
    let mut program = Program::start(&group, &folder, "crowds");
    let scope = ["--cgroup", group.text(), "--method", "bpf"];
    let count =
        |name: &str, arguments: &[&str]| Probe::start(&folder, name, &[&["count"], &scope[..], arguments].concat());
    let skip = SKIP.to_string();
    let counting = [
        count("whole", &[]),
        count("sliced", &["--slice", "0.01", "--times", "none"]),
        count("reused", &["--slice", "0.01", "--times", "all", "--states", STATES_OF_A_ROUND]),
        count("cut", &["--slice", "0.01", "--skip", &skip]),
        count("short", &["--slice", "0.01", "--states", TOO_FEW_STATES]),
    ];
    let tracing = Probe::start(&folder, "trace", &[&["trace", "--buffer", "65536"], &scope[..]].concat());
    for round in 1..=ROUNDS {
        program.go();
        program.until_it_reads();
        until("ends of all streams but the first", || {
            counting[1..].iter().all(|probe| probe.ended_streams() == STREAMS_OF_A_ROUND * round)
        });
    }
    program.go();
    program.finish();
    let [whole, sliced, reused, cut, short] = counting.map(|probe| Count::parse(&probe.stop()));
    let trace = Trace::parse(&tracing.stop());
    let (_, made, lost) = trace.end.unwrap();
    assert_eq!(lost, 0);
    assert!(made as usize > ROUNDS * STREAMS_OF_A_ROUND * 4000, "{made}");

    let (transitions, expected) = (trace.transitions(), trace.sums(|number| number == 0 || number == 1));
    let states: usize = STATES_OF_A_ROUND.parse().unwrap();
    assert!(transitions.len() > 2 * states, "{} transitions", transitions.len());
    for count in [&whole, &sliced, &reused, &cut] {
        assert_eq!((count.end.unwrap().1, count.end.unwrap().2), (made, 0));
        assert_eq!(unlike(&count.whole(), &transitions), [], "{:?}", count.header);
        assert_eq!(unlike(&own_sums(count), &expected), [], "{:?}", count.header);
    }
    assert_eq!(unlike(&parts(&cut), &parts_of(&trace, SKIP)), []);
    let busy: std::collections::BTreeSet<u64> = sliced.transitions.keys().map(|key| key.0).collect();
    assert!(busy.len() >= ROUNDS, "{busy:?}");

    let (_, counted, lost) = short.end.unwrap();
    assert!(counted > 0 && lost > 0);
    assert_eq!(counted + lost, made);
    for (transition, calls) in short.whole() {
        assert!(calls <= transitions[&transition], "{transition:?}");
    }
}

/// Bytes of the calls that the trace is asked for alone.
fn own_sums(count: &Count) -> Sums {
    let mut sums = count.sums();
    sums.iter_mut().filter(|((_, number), _)| *number > 1).for_each(|(_, sum)| sum.3 = None);
    sums
}
