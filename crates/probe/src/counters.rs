//! `counters`: snapshots of the host's counters on a fixed grid, raw and in one file.
//!
//! A snapshot begins with a line `@ index monotonic_s realtime_s`. Each source follows as a line `# source bytes`, that many
//! bytes as the kernel gave them, and a newline. A source that could not be read is a line `# source -`. With `--wake-ups` each
//! snapshot has a source `wake-ups` (see `wake_ups`); where the kernel refuses to count them, its one line is `refused REASON`.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::process::{Command, Stdio};

use crate::arguments::{number, Arguments};
use crate::failure::{Failure, Outcome, Tried};
use crate::idle_states;
use crate::stop::Stop;
use crate::sys::{self, NS_PER_S};
use crate::wake_ups::WakeUps;

const ALWAYS: [&str; 9] = [
    "/proc/stat",
    "/proc/interrupts",
    "/proc/softirqs",
    "/proc/vmstat",
    "/proc/meminfo",
    "/proc/loadavg",
    "/proc/pressure/cpu",
    "/proc/pressure/io",
    "/proc/pressure/memory",
];
const NET: [&str; 3] = ["/proc/net/dev", "/proc/net/snmp", "/proc/net/netstat"];
const SOFTNET: &str = "/proc/net/softnet_stat";
/// Counters of a kernel's scheduler and of its guests. They are long on machines with many CPUs, so they are read once a
/// kernel.
const OF_A_KERNEL: [&str; 4] = [
    "/proc/schedstat",
    "/sys/kernel/debug/kvm/exits",
    "/sys/kernel/debug/kvm/halt_exits",
    "/sys/kernel/debug/kvm/halt_wakeup",
];
const KMSG: &str = "/dev/kmsg";
const WAKE_UPS: &str = "wake-ups";
const IDLE_STATES: &str = "idle-states";

pub fn main(mut arguments: Arguments) -> Outcome<()> {
    let out = arguments.required("--out")?;
    let interval_s: f64 = number("--interval", &arguments.required("--interval")?)?;
    let with_kmsg = arguments.flag("--kmsg");
    let with_net = arguments.flag("--net");
    let with_kernel = arguments.flag("--kernel");
    let with_softnet = arguments.flag("--softnet");
    let with_wake_ups = arguments.flag("--wake-ups");
    let devices = arguments.values("--ethtool")?;
    arguments.finish()?;
    if !(0.001..=86_400.0).contains(&interval_s) {
        return Err(Failure::new(format!("--interval takes 0.001 to 86400 seconds, not {interval_s}")));
    }
    let interval_ns = (interval_s * NS_PER_S as f64) as i64;

    // Signals are blocked before anything else, so that one at any time is an orderly end.
    let stop = Stop::block().tried(|| "block signals")?;
    let mut sources: Vec<&'static str> = ALWAYS.to_vec();
    sources.extend(NET.iter().filter(|_| with_net));
    sources.extend(with_softnet.then_some(SOFTNET));
    sources.extend(OF_A_KERNEL.iter().filter(|_| with_kernel));
    let mut recorder = Recorder {
        out: File::create(&out).tried(|| format!("create {out}"))?,
        path: out,
        sources: sources.into_iter().map(Source::open).collect(),
        snapshot: Vec::with_capacity(64 * 1024),
        content: vec![0; 64 * 1024],
        wake_ups: with_wake_ups.then(WakeUps::attach),
        index: 0,
    };
    let mut kmsg = with_kmsg.then(Kmsg::open);

    recorder.begin();
    recorder.add_at_the_ends(&devices, with_net, with_kernel);
    recorder.write()?;
    let mut stdout = io::stdout();
    let written = stdout.write_all(b"ready\n").and_then(|()| stdout.flush());
    written.tried(|| "write to standard output")?;

    let mut next = sys::monotonic_ns() + interval_ns;
    while !stop.wait_until(next) {
        recorder.begin();
        recorder.write()?;
        // A grid point that was missed is left out, not made up for.
        let late = sys::monotonic_ns() - next;
        next += interval_ns * (1 + late.max(0) / interval_ns);
    }
    recorder.begin();
    recorder.add_at_the_ends(&devices, with_net, with_kernel);
    if let Some(kmsg) = &mut kmsg {
        recorder.add(KMSG, kmsg.as_mut().ok().map(Kmsg::drain).as_deref());
    }
    recorder.write()
}

struct Source {
    path: &'static str,
    file: Option<File>,
}

impl Source {
    fn open(path: &'static str) -> Self {
        Source { path, file: File::open(path).ok() }
    }
}

struct Recorder {
    out: File,
    path: String,
    sources: Vec<Source>,
    snapshot: Vec<u8>,
    content: Vec<u8>,
    wake_ups: Option<Outcome<WakeUps>>,
    index: u64,
}

impl Recorder {
    /// Starts a snapshot with everything that is in each of them.
    fn begin(&mut self) {
        let (m_s, m_ns) = sys::clock_parts(libc::CLOCK_MONOTONIC);
        let (r_s, r_ns) = sys::clock_parts(libc::CLOCK_REALTIME);
        self.snapshot.clear();
        let line = format!("@ {} {m_s}.{m_ns:09} {r_s}.{r_ns:09}\n", self.index);
        self.snapshot.extend(line.into_bytes());
        self.index += 1;
        for source in &self.sources {
            let length = source.file.as_ref().and_then(|file| read_whole(file, &mut self.content).ok());
            let content = length.map(|length| &self.content[..length]);
            append(&mut self.snapshot, source.path, content);
        }
        if let Some(wake_ups) = &self.wake_ups {
            let text = wake_ups.as_ref().map_err(Failure::clone).and_then(WakeUps::text);
            let text = text.unwrap_or_else(|failure| format!("refused {}\n", failure.message.replace('\n', " ")));
            append(&mut self.snapshot, WAKE_UPS, Some(text.as_bytes()));
        }
    }

    fn add(&mut self, name: &str, content: Option<&[u8]>) {
        append(&mut self.snapshot, name, content);
    }

    /// Adds what is in the first and the last snapshot alone: idle states, of which a machine may have a thousand files, and what
    /// the kernel gives by netlink, as the programs that ask for it print it.
    fn add_at_the_ends(&mut self, devices: &[String], with_net: bool, with_kernel: bool) {
        if with_kernel {
            self.add(IDLE_STATES, idle_states::text().as_deref().map(str::as_bytes));
        }
        for device in devices {
            for option in ["-S", "-k"] {
                self.add_program(&["ethtool", option, device]);
            }
        }
        if with_net {
            self.add_program(&["tc", "-s", "qdisc"]);
        }
    }

    fn add_program(&mut self, argv: &[&str]) {
        let output = Command::new(argv[0]).args(&argv[1..]).stdin(Stdio::null()).stderr(Stdio::null()).output();
        let content = output.ok().filter(|o| o.status.success()).map(|o| o.stdout);
        self.add(&argv.join(" "), content.as_deref());
    }

    fn write(&mut self) -> Outcome<()> {
        self.out.write_all(&self.snapshot).tried(|| format!("write {}", self.path))
    }
}

fn append(snapshot: &mut Vec<u8>, name: &str, content: Option<&[u8]>) {
    match content {
        Some(content) => {
            snapshot.extend(format!("# {name} {}\n", content.len()).into_bytes());
            snapshot.extend(content);
            snapshot.push(b'\n');
        }
        None => snapshot.extend(format!("# {name} -\n").into_bytes()),
    }
}

/// Reads an open file of /proc anew, from its start.
fn read_whole(file: &File, buffer: &mut Vec<u8>) -> io::Result<usize> {
    let mut length = 0;
    loop {
        match file.read_at(&mut buffer[length..], length as u64)? {
            0 => return Ok(length),
            more => length += more,
        }
        if length == buffer.len() {
            buffer.resize(2 * length, 0);
        }
    }
}

/// The kernel's log from now on.
struct Kmsg {
    file: File,
    /// The number of the next record.
    next: u64,
    record: Vec<u8>,
}

impl Kmsg {
    /// Reads past the records that are there. Seeking to the end would leave the number of the last one unknown, and so
    /// how many records are lost later.
    fn open() -> io::Result<Self> {
        const RECORD_BYTES: usize = 8192; // the kernel refuses readers with less room for a record
        let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(KMSG)?;
        let mut kmsg = Kmsg { file, next: 0, record: vec![0; RECORD_BYTES] };
        while kmsg.read().is_some() {}
        Ok(kmsg)
    }

    /// The next record's length, and how many were overwritten before it.
    fn read(&mut self) -> Option<(usize, u64)> {
        loop {
            match self.file.read(&mut self.record) {
                Ok(0) => return None,
                Ok(length) => {
                    let number = sequence(&self.record[..length]).unwrap_or(self.next);
                    let lost = number.saturating_sub(self.next);
                    self.next = number + 1;
                    return Some((length, lost));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The kernel says once that records are gone, and moves to the oldest that is left.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(_) => return None,
            }
        }
    }

    /// The records since the last call, and a line `lost N` if the kernel overwrote some before they were read.
    fn drain(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        let mut lost = 0;
        while let Some((length, before)) = self.read() {
            all.extend(&self.record[..length]);
            lost += before;
        }
        if lost > 0 {
            all.extend(format!("lost {lost}\n").into_bytes());
        }
        all
    }
}

/// Records are `priority,sequence,time,flags;text`.
fn sequence(record: &[u8]) -> Option<u64> {
    let field = record.split(|byte| *byte == b',').nth(1)?;
    std::str::from_utf8(field).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_is_not_empty() {
        let mut snapshot = Vec::new();
        append(&mut snapshot, "/a", Some(b""));
        append(&mut snapshot, "/b", Some(b"x\n"));
        append(&mut snapshot, "/c", None);
        assert_eq!(snapshot, b"# /a 0\n\n# /b 2\nx\n\n# /c -\n");
    }

    #[test]
    fn reads_a_kernel_record_s_number() {
        assert_eq!(sequence(b"6,339,5140900,-;NET: text\n"), Some(339));
        assert_eq!(sequence(b"nonsense"), None);
    }

    #[test]
    fn reads_files_longer_than_the_buffer() {
        let file = File::open("/proc/vmstat").unwrap();
        let mut buffer = vec![0; 16];
        let length = read_whole(&file, &mut buffer).unwrap();
        assert!(length > 500 && buffer.starts_with(b"nr_free_pages"));
    }
}
