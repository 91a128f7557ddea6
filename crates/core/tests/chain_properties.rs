//! What holds for every sequence, by naive counting of the same.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use twinbed_core::chain::{compare, graph, tally, walk, Chain, Cut, Smoothing, Transitions, START};
use twinbed_core::syscall::Architecture;

const CALLS: [&str; 5] = ["read", "write", "close", "epoll_wait", "futex"];

fn sequence() -> impl Strategy<Value = Vec<&'static str>> {
    vec(prop::sample::select(&CALLS[..]), 0..80)
}

type Counted = BTreeMap<(Vec<String>, String), u64>;

fn naive(sequences: &[Vec<&str>], order: usize) -> Counted {
    let mut counts = Counted::new();
    for sequence in sequences {
        for window in sequence.windows(order + 1) {
            let (state, call) = window.split_at(order);
            let state = state.iter().map(|call| (*call).to_owned()).collect();
            *counts.entry((state, call[0].to_owned())).or_default() += 1;
        }
    }
    counts
}

fn counted(counts: &Transitions, order: usize) -> Counted {
    let chain = Chain::new(counts, order, 0.0);
    let mut by_edge = Counted::new();
    for edge in graph::edges(&chain) {
        let state: Vec<String> = chain.calls(edge.from).map(str::to_owned).collect();
        let next: Vec<&str> = chain.calls(edge.to).collect();
        assert_eq!(next.last(), Some(&edge.call.as_ref()));
        assert_eq!(next[..order - 1], state[1..]);
        by_edge.insert((state, edge.call.to_string()), edge.count);
    }
    by_edge
}

fn of(sequences: &[Vec<&str>]) -> Transitions {
    let each: Vec<Transitions> = sequences.iter().map(|one| Transitions::of_sequence(one)).collect();
    Transitions::pool(&each)
}

proptest! {
    #[test]
    fn every_order_is_that_of_the_sequences(sequences in vec(sequence(), 1..4)) {
        let counts = of(&sequences);
        for order in 1..=3 {
            prop_assert_eq!(counted(&counts, order), naive(&sequences, order));
        }
        prop_assert_eq!(counts.calls(), sequences.iter().map(|one| one.len() as u64).sum::<u64>());
        prop_assert_eq!(counts.sequences(), sequences.iter().filter(|one| !one.is_empty()).count() as u64);
    }

    /// A file with an empty line between is read as the pool of its parts, whatever is cut off.
    #[test]
    fn pooling_is_concatenation_with_a_break(sequences in vec(sequence(), 1..4), skip in 0_usize..5, limit in 0_usize..40) {
        let text: Vec<String> = sequences.iter().map(|one| one.join(" ")).collect();
        let cut = Cut { skip: skip as u64, limit: Some(limit as u64) };
        let within: Vec<Vec<&str>> =
            sequences.iter().map(|one| one.iter().copied().skip(skip).take(limit).collect()).collect();
        match tally(text.join("\n\n").as_bytes(), Architecture::X86_64, cut) {
            Ok((programs, source)) => {
                let counts = programs.first().map(|program| program.transitions.clone()).unwrap_or_default();
                prop_assert_eq!(counts, of(&within));
                prop_assert_eq!(source.calls, sequences.iter().map(Vec::len).sum::<usize>() as u64);
            }
            Err(_) => prop_assert!(sequences.iter().all(Vec::is_empty)),
        }
    }

    #[test]
    fn rows_sum_to_one(sequences in vec(sequence(), 1..4), order in 1_usize..4, threshold in 0.0..0.6) {
        let chain = Chain::new(&of(&sequences), order, threshold);
        for row in chain.rows().iter().filter(|row| row.total > 0) {
            let sum: f64 = row.edges.iter().map(|edge| row.probability(edge)).sum();
            prop_assert!((sum - 1.0).abs() < 1e-12);
            prop_assert!(row.edges.iter().map(|edge| edge.count).sum::<u64>() == row.total);
        }
        let states = graph::states(&chain);
        let shares: f64 = states.iter().filter_map(|state| state.share).sum();
        prop_assert!(chain.transitions() == 0 || (shares - 1.0).abs() < 1e-12);
    }

    #[test]
    fn own_chain_has_every_transition(sequences in vec(sequence(), 1..4), order in 1_usize..4) {
        let counts = of(&sequences);
        let walked = walk(&Chain::new(&counts, order, 0.0), &counts, None);
        prop_assert_eq!(walked.invalid, 0);
        prop_assert_eq!(walked.log10_probability(), walked.log10_valid);
        prop_assert!(walked.log10_valid <= 0.0);
        let own = compare(&counts, &counts, order, 0.0);
        prop_assert_eq!(own.only, [0, 0]);
        prop_assert!(own.distance().is_none_or(|distance| distance < 1e-7));
    }

    #[test]
    fn comparison_is_symmetric_and_bounded(one in sequence(), two in sequence(), order in 1_usize..4) {
        let (one, two) = (Transitions::of_sequence(&one), Transitions::of_sequence(&two));
        let (there, back) = (compare(&one, &two, order, 0.0), compare(&two, &one, order, 0.0));
        prop_assert_eq!(there.only, [back.only[1], back.only[0]]);
        match (there.distance(), back.distance()) {
            (Some(there), Some(back)) => prop_assert!((there - back).abs() < 1e-9 && (0.0..=1.0).contains(&there)),
            (there, back) => prop_assert_eq!(there, back),
        }
    }

    /// Smoothed probabilities over the whole support sum to one, from known states and unknown ones.
    #[test]
    fn smoothed_rows_sum_to_one(chain in sequence(), alpha in 0.01..3.0) {
        let chain = Chain::new(&Transitions::of_sequence(&chain), 1, 0.0);
        let smoothing = Some(Smoothing { alpha, support: CALLS.len() as u64 });
        for before in CALLS {
            let sum: f64 = CALLS
                .iter()
                .map(|call| 10_f64.powf(walk(&chain, &Transitions::of_sequence(&[before, *call]), smoothing).log10_valid))
                .sum();
            prop_assert!((sum - 1.0).abs() < 1e-9);
        }
    }
}

#[test]
fn counts_that_make_no_sense_are_left_out() {
    let grams = [
        ([START, START, START, 0], 2),
        ([0, START, 0, 1], 5),
        ([START, START, 0, START], 5),
        ([START, START, 0, 7], 5),
        ([START, START, 0, 1], 0),
    ];
    let counts = Transitions::new(&["read", "write"], grams);
    assert_eq!(counts, Transitions::new(&["read"], [([START, START, START, 0], 2)]));
    assert_eq!((counts.calls(), counts.sequences()), (2, 2));
}
