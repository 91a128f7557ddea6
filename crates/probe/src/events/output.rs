//! The file that `events` writes: EVENTS.md has its lines.

use std::fmt::Write;

use super::kvm::{Timing, KINDS};
use super::moment::Moment;
use super::net::Counting;
use crate::failure::Outcome;
use crate::sys;

pub struct Time {
    pub start: Moment,
    pub end: Moment,
    /// Of this time programs were attached for about so much.
    pub share: f64,
    /// In so many pieces of it programs were attached.
    pub windows: u64,
}

pub fn text(time: &Time, net: &Counting, kvm: &Outcome<Timing>) -> Outcome<String> {
    let mut text = String::new();
    let mut line = |parts: std::fmt::Arguments| {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{parts}");
    };
    line(format_args!("twinbed-events 1"));
    line(format_args!("kernel {}", sys::identity().1));
    line(format_args!("share {}", time.share));
    line(format_args!("start_ns {}", time.start.ns));
    line(format_args!("end_ns {}", time.end.ns));
    line(format_args!("softirqs {}", (time.end - time.start).softirqs));
    line(format_args!("windows {}", time.windows));
    for (tracepoint, outcome) in net.tracepoints() {
        match outcome {
            Ok(attached) => {
                line(format_args!("counted net {tracepoint} {} {}", attached.ns, attached.softirqs));
            }
            Err(failure) => line(format_args!("refused net {tracepoint} {}", one_line(&failure.message))),
        }
    }
    let counts = net.counts()?;
    for (tracepoint, device, hits) in &counts.hits {
        line(format_args!("hits {tracepoint} {hits} {device}"));
    }
    let mut missed = counts.missed;
    match kvm {
        Err(failure) => KINDS.iter().for_each(|kind| {
            line(format_args!("refused kvm {kind} {}", one_line(&failure.message)));
        }),
        Ok(timing) => {
            let (totals, of_kvm) = timing.totals()?;
            missed = missed.zip(of_kvm).map(|(one, other)| one + other);
            for (kind, total) in KINDS.iter().zip(totals) {
                line(format_args!("counted kvm {kind} {} {}", timing.attached.ns, timing.attached.softirqs));
                let (least, most) = (total.least_ns, total.most_ns);
                line(format_args!("lasted {kind} {} {} {} {least} {most}", total.hits, total.count, total.sum_ns));
            }
        }
    }
    line(format_args!("lost {}", counts.lost));
    line(format_args!("missed {}", missed.map_or("-".to_owned(), |missed| missed.to_string())));
    line(format_args!("end"));
    Ok(text)
}

fn one_line(message: &str) -> String {
    message.replace('\n', " ")
}
