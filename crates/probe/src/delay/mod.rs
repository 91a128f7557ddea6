//! `delay`: delay, jitter and loss between two devices, where the kernel has no netem.
//!
//! A line is a way from one device to another: frames that arrive at the first leave by the second, later, some of them never. What
//! netem does is done here alike: whether a frame is lost is drawn for each, the delay is even within the jitter about its mean, so
//! that frames overtake each other, and at most so many wait. A frame's delay counts from the kernel's own timestamp of its
//! arrival, so that it is late by no more than this program is woken late; by how much is counted of every frame.
//!
//! It says `ready`, and writes two lines of JSON: what was set, and once it is told to end what became of the frames.

mod held;
mod lateness;
mod random;
mod wire;

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;

use serde::Serialize;

use crate::arguments::{number, Arguments};
use crate::failure::{complain, Failure, Outcome, Tried};
use crate::stop::Stop;
use crate::sys;

use held::Held;
use lateness::Lateness;
use random::Random;
use wire::{Incoming, Outgoing};

const US_PER_S: f64 = 1e6;

/// What is done to every frame.
#[derive(Clone, Copy, Serialize)]
struct Settings {
    delay_ns: i64,
    /// A delay is within so much of the mean.
    jitter_ns: i64,
    loss: f64,
    /// Frames that may wait.
    limit: usize,
}

#[derive(Serialize)]
struct Set<'a> {
    lines: Vec<[&'a str; 2]>,
    #[serde(flatten)]
    settings: Settings,
}

/// What became of the frames of one line.
#[derive(Serialize)]
struct Line {
    from: String,
    to: String,
    arrived: u64,
    sent: u64,
    /// At random, as asked.
    lost: u64,
    /// More than may wait.
    over_limit: u64,
    /// Not taken in time: the kernel's buffer was full.
    missed: u64,
    /// The kernel would not send them.
    refused: u64,
    late: lateness::Summary,
}

#[derive(Default)]
struct Counts {
    arrived: AtomicU64,
    sent: AtomicU64,
    lost: AtomicU64,
    over_limit: AtomicU64,
    refused: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

struct Running {
    from: String,
    to: String,
    incoming: Arc<Incoming>,
    counts: Arc<Counts>,
    late: Arc<Lateness>,
}

pub fn main(mut arguments: Arguments) -> Outcome<()> {
    let path = arguments.required("--out")?;
    let lines = arguments.values("--line")?;
    let settings = Settings {
        delay_ns: nanoseconds("--delay-us", &arguments.required("--delay-us")?)?,
        jitter_ns: arguments.value("--jitter-us")?.map_or(Ok(0), |text| nanoseconds("--jitter-us", &text))?,
        loss: arguments.value("--loss")?.map_or(Ok(0.0), |text| number("--loss", &text))?,
        limit: number("--limit", &arguments.required("--limit")?)?,
    };
    arguments.finish()?;
    let ends = lines.iter().map(|line| both(line)).collect::<Outcome<Vec<_>>>()?;
    let stop = Stop::block().tried(|| "block signals")?;
    let mut out = File::create(&path).tried(|| format!("create {path}"))?;
    let running = ends.iter().map(|&[from, to]| begin(from, to, settings)).collect::<Outcome<Vec<_>>>()?;
    write(&mut out, &path, &Set { lines: ends.clone(), settings })?;
    let mut stdout = io::stdout();
    stdout.write_all(b"ready\n").and_then(|()| stdout.flush()).tried(|| "write to standard output")?;
    stop.wait().tried(|| "wait for a signal")?;
    let ended = running.iter().map(Running::ended).collect::<Outcome<Vec<_>>>()?;
    write(&mut out, &path, &ended)
}

fn nanoseconds(name: &str, text: &str) -> Outcome<i64> {
    let us: f64 = number(name, text)?;
    Ok((us / US_PER_S * sys::NS_PER_S as f64).round() as i64)
}

/// `FROM:TO`
fn both(line: &str) -> Outcome<[&str; 2]> {
    let (from, to) = line.split_once(':').ok_or_else(|| Failure::new(format!("--line takes FROM:TO, not {line:?}")))?;
    Ok([from, to])
}

fn write(out: &mut File, path: &str, what: &impl Serialize) -> Outcome<()> {
    let mut line = serde_json::to_vec(what).map_err(io::Error::from).tried(|| "write JSON")?;
    line.push(b'\n');
    out.write_all(&line).tried(|| format!("write {path}"))
}

fn begin(from: &str, to: &str, settings: Settings) -> Outcome<Running> {
    let outgoing = Outgoing::open(to).tried(|| format!("open {to}"))?;
    let incoming = Arc::new(Incoming::open(from).tried(|| format!("open {from}"))?);
    let mut random = Random::new().tried(|| "ask the kernel for a random number")?;
    let held = Arc::new(Held::new(settings.limit));
    let counts = Arc::new(Counts::default());
    let late = Arc::new(Lateness::default());
    let running = Running {
        from: from.to_owned(),
        to: to.to_owned(),
        incoming: incoming.clone(),
        counts: counts.clone(),
        late: late.clone(),
    };
    let (into, of_frames) = (held.clone(), counts.clone());
    first(move || {
        let mut room = vec![0; wire::LONGEST_BYTES];
        loop {
            let (arrived_ns, frame) = incoming.next(&mut room)?;
            count(&of_frames.arrived);
            if random.chance(settings.loss) {
                count(&of_frames.lost);
            } else if !into.put(arrived_ns + settings.delay_ns + random.within(settings.jitter_ns), frame) {
                count(&of_frames.over_limit);
            }
        }
    });
    first(move || loop {
        let (due_ns, frame) = held.take();
        late.count(sys::monotonic_ns() - due_ns);
        count(if outgoing.send(&frame)? { &counts.sent } else { &counts.refused });
    });
    Ok(running)
}

/// A thread that runs before all others where that is allowed. What ends it ends the program: half a line is none.
fn first(work: impl FnOnce() -> io::Result<()> + Send + 'static) {
    thread::spawn(move || {
        sys::run_first(true);
        sys::wake_exactly();
        if let Err(error) = work() {
            complain(&Failure::because("delay a frame", &error));
        }
        sys::exit_now(1)
    });
}

impl Running {
    fn ended(&self) -> Outcome<Line> {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Ok(Line {
            from: self.from.clone(),
            to: self.to.clone(),
            arrived: of(&self.counts.arrived),
            sent: of(&self.counts.sent),
            lost: of(&self.counts.lost),
            over_limit: of(&self.counts.over_limit),
            missed: self.incoming.missed().tried(|| format!("ask what {} missed", self.from))?,
            refused: of(&self.counts.refused),
            late: self.late.summary(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_times_and_lines() {
        assert_eq!(nanoseconds("--delay-us", "12.5").unwrap(), 12_500);
        assert_eq!(both("w.client:p.client").unwrap(), ["w.client", "p.client"]);
        assert!(both("w.client").is_err());
    }
}
