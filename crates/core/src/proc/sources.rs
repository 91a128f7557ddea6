//! The text of each source into keys and values. Units are in the keys where the kernel's are not plain counts.
//!
//! Sources: Documentation/filesystems/proc.rst, Documentation/accounting/psi.rst, Documentation/scheduler/sched-stats.rst,
//! net/core/net-procfs.c.

use super::network;
use super::text::{Sink, Text};
use super::value::{Kind, Value};
use crate::error::Result;

/// Reads one source; false if it is of no known kind.
pub(super) fn read(name: &str, content: &[u8], first_line: usize, sink: &mut Sink) -> Result<bool> {
    let content = String::from_utf8_lossy(content);
    let text = |layer| Text { layer, first_line, content: &content };
    match name {
        "/proc/stat" => stat(&text("/proc/stat"), sink)?,
        "/proc/schedstat" => schedstat(&text("/proc/schedstat"), sink)?,
        "/sys/kernel/debug/kvm/exits" => of_kvm(&text("/sys/kernel/debug/kvm/exits"), "exits", sink)?,
        "/sys/kernel/debug/kvm/halt_exits" => of_kvm(&text("/sys/kernel/debug/kvm/halt_exits"), "halt_exits", sink)?,
        "/sys/kernel/debug/kvm/halt_wakeup" => of_kvm(&text("/sys/kernel/debug/kvm/halt_wakeup"), "halt_wakeup", sink)?,
        "wake-ups" => wake_ups(&text("wake-ups"), sink)?,
        "idle-states" => idle_states(&text("idle-states"), sink)?,
        "/proc/interrupts" => per_cpu(&text("/proc/interrupts"), true, sink)?,
        "/proc/softirqs" => per_cpu(&text("/proc/softirqs"), false, sink)?,
        "/proc/vmstat" => vmstat(&text("/proc/vmstat"), sink)?,
        "/proc/meminfo" => meminfo(&text("/proc/meminfo"), sink)?,
        "/proc/loadavg" => loadavg(&text("/proc/loadavg"), sink)?,
        "/proc/net/dev" => network::devices(&text("/proc/net/dev"), sink)?,
        "/proc/net/snmp" => network::header_pairs(&text("/proc/net/snmp"), "snmp", sink)?,
        "/proc/net/netstat" => network::header_pairs(&text("/proc/net/netstat"), "netstat", sink)?,
        "/proc/net/softnet_stat" => network::softnet(&text("/proc/net/softnet_stat"), sink)?,
        "/proc/pressure/cpu" => pressure(&text("/proc/pressure/cpu"), "cpu", sink)?,
        "/proc/pressure/io" => pressure(&text("/proc/pressure/io"), "io", sink)?,
        "/proc/pressure/memory" => pressure(&text("/proc/pressure/memory"), "memory", sink)?,
        "tc -s qdisc" => network::queueing_disciplines(&text("tc -s qdisc"), sink)?,
        _ => match name.strip_prefix("ethtool -").and_then(|rest| rest.split_once(' ')) {
            Some(("S", device)) => network::ethtool_statistics(&text("ethtool -S"), device, sink)?,
            Some(("k", device)) => network::ethtool_features(&text("ethtool -k"), device, sink)?,
            _ => return Ok(false),
        },
    }
    Ok(true)
}

/// `cpu0.user_ticks` (ticks of USER_HZ, 1/100 s), `ctxt`, ... The numbers of single interrupts are left to
/// /proc/interrupts, which names them.
fn stat(text: &Text, sink: &mut Sink) -> Result<()> {
    const STATES: [&str; 10] =
        ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"];
    for line in text.lines() {
        let mut words = line.text.split_whitespace();
        let Some(name) = words.next() else { continue };
        if name.starts_with("cpu") {
            for (state, word) in STATES.iter().zip(words) {
                sink(&format!("{name}.{state}_ticks"), Kind::Counter, line.integer(word)?);
            }
        } else {
            let word = words.next().ok_or_else(|| line.wrong("a name and a number"))?;
            let is_gauge = matches!(name, "btime" | "procs_running" | "procs_blocked");
            let name = if name == "btime" { "btime_s" } else { name };
            sink(name, if is_gauge { Kind::Gauge } else { Kind::Counter }, line.integer(word)?);
        }
    }
    Ok(())
}

/// `schedstat:cpu0.run_delay_ns`: how long tasks that could run waited for that CPU. Nothing of a version whose fields are not known.
fn schedstat(text: &Text, sink: &mut Sink) -> Result<()> {
    const VERSIONS: [&str; 3] = ["version 15", "version 16", "version 17"];
    const NAMES: [(usize, &str); 3] = [(7, "run_time_ns"), (8, "run_delay_ns"), (9, "timeslices")];
    for (at, line) in text.lines().enumerate() {
        if at == 0 && !VERSIONS.contains(&line.text.trim_end()) {
            return Ok(());
        }
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let Some(cpu) = words.first().filter(|name| name.starts_with("cpu")) else { continue };
        if words.len() != 10 {
            return Err(line.wrong("a CPU and nine numbers"));
        }
        for (field, name) in NAMES {
            sink(&format!("schedstat:{cpu}.{name}"), Kind::Counter, line.integer(words[field])?);
        }
    }
    Ok(())
}

/// `kvm:exits`, of all guests that there are.
fn of_kvm(text: &Text, name: &str, sink: &mut Sink) -> Result<()> {
    for line in text.lines() {
        sink(&format!("kvm:{name}"), Kind::Counter, line.integer(line.text.trim())?);
    }
    Ok(())
}

/// `wake_ups:cpu0.count` and `wake_ups:cpu0.latency_ns`, of tasks that were woken on an idle CPU; or why they are not counted.
fn wake_ups(text: &Text, sink: &mut Sink) -> Result<()> {
    for line in text.lines() {
        let (name, rest) = line.text.split_once(' ').ok_or_else(|| line.wrong("a CPU and two numbers"))?;
        match (name, rest.split_once(' ')) {
            ("refused", _) => sink("wake_ups:refused", Kind::Setting, Value::Text(rest.to_owned())),
            ("missed", _) => sink("wake_ups:missed", Kind::Counter, line.integer(rest)?),
            (cpu, Some((count, sum_ns))) => {
                sink(&format!("wake_ups:{cpu}.count"), Kind::Counter, line.integer(count)?);
                sink(&format!("wake_ups:{cpu}.latency_ns"), Kind::Counter, line.integer(sum_ns)?);
            }
            _ => return Err(line.wrong("a CPU and two numbers")),
        }
    }
    Ok(())
}

/// `cpuidle:cpu0.state1(haltpoll idle).usage`, how often the CPU entered the state, and `.time_us`; settings such as
/// `cpuidle:governor`.
fn idle_states(text: &Text, sink: &mut Sink) -> Result<()> {
    for line in text.lines() {
        let words: Vec<&str> = line.text.splitn(5, ' ').collect();
        match words[..] {
            [cpu, state, usage, time_us, name] => {
                let key = format!("cpuidle:{cpu}.{state}({name})");
                sink(&format!("{key}.usage"), Kind::Counter, line.integer(usage)?);
                sink(&format!("{key}.time_us"), Kind::Counter, line.integer(time_us)?);
            }
            [name, value] => sink(&format!("cpuidle:{name}"), Kind::Setting, Value::Text(value.to_owned())),
            _ => return Err(line.wrong("a CPU, a state, two numbers and a name")),
        }
    }
    Ok(())
}

/// Tables with a column a CPU: `intr.24(PCI-MSI 1-edge eth0-rx).cpu0`, `softirqs:NET_RX.cpu0`.
fn per_cpu(text: &Text, is_interrupts: bool, sink: &mut Sink) -> Result<()> {
    let mut cpus: Vec<String> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if at == 0 {
            cpus = line.text.split_whitespace().map(str::to_ascii_lowercase).collect();
            if cpus.is_empty() || cpus.iter().any(|cpu| !cpu.starts_with("cpu")) {
                return Err(line.wrong("the heading CPU0 CPU1 ..."));
            }
            continue;
        }
        let (name, rest) = line.text.split_once(':').ok_or_else(|| line.wrong("a name and a colon"))?;
        let name = name.trim();
        let words: Vec<&str> = rest.split_whitespace().collect();
        let is_count = |word: &&&str| word.bytes().all(|byte| byte.is_ascii_digit());
        let counts = words.iter().take(cpus.len()).take_while(is_count).count();
        let label = words[counts..].join(" ");
        let key = match (is_interrupts, label.is_empty()) {
            (false, _) => format!("softirqs:{name}"),
            (true, true) => format!("intr.{name}"),
            (true, false) => format!("intr.{name}({label})"),
        };
        if counts == 0 || (!is_interrupts && counts < cpus.len()) {
            return Err(line.wrong("a count for each CPU"));
        }
        if counts < cpus.len() {
            // ERR and MIS: one number for all.
            sink(&key, Kind::Counter, line.integer(words[0])?);
            continue;
        }
        for (cpu, word) in cpus.iter().zip(&words) {
            sink(&format!("{key}.{cpu}"), Kind::Counter, line.integer(word)?);
        }
    }
    Ok(())
}

/// `vmstat:pgfault`. Names in nr_ are states, but for the few that count events.
fn vmstat(text: &Text, sink: &mut Sink) -> Result<()> {
    const EVENTS: [&str; 6] = [
        "nr_dirtied",
        "nr_written",
        "nr_vmscan_write",
        "nr_vmscan_immediate_reclaim",
        "nr_foll_pin_acquired",
        "nr_foll_pin_released",
    ];
    for line in text.lines() {
        let (name, word) = line.text.split_once(' ').ok_or_else(|| line.wrong("a name and a number"))?;
        let is_gauge = (name.starts_with("nr_") && !EVENTS.contains(&name)) || name == "workingset_nodes";
        sink(&format!("vmstat:{name}"), if is_gauge { Kind::Gauge } else { Kind::Counter }, line.integer(word)?);
    }
    Ok(())
}

/// `meminfo:MemFree_bytes`.
fn meminfo(text: &Text, sink: &mut Sink) -> Result<()> {
    for line in text.lines() {
        let mut words = line.text.split_whitespace();
        let (Some(name), Some(word)) = (words.next(), words.next()) else {
            return Err(line.wrong("a name and a number"));
        };
        let name = name.trim_end_matches(':');
        match (words.next(), line.integer(word)?) {
            (Some("kB"), Value::Integer(kibibytes)) => {
                let bytes = Value::Integer(kibibytes.saturating_mul(1024));
                sink(&format!("meminfo:{name}_bytes"), Kind::Gauge, bytes);
            }
            (None, value) => sink(&format!("meminfo:{name}"), Kind::Gauge, value),
            _ => return Err(line.wrong("a size in kB, or a count")),
        }
    }
    Ok(())
}

fn loadavg(text: &Text, sink: &mut Sink) -> Result<()> {
    const EXPECTED: &str = "three averages, RUNNING/ALL, a process number";
    for line in text.lines() {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let [one, five, fifteen, tasks, _] = words[..] else { return Err(line.wrong(EXPECTED)) };
        let (running, all) = tasks.split_once('/').ok_or_else(|| line.wrong(EXPECTED))?;
        for (name, word) in [("1min", one), ("5min", five), ("15min", fifteen)] {
            sink(&format!("loadavg:{name}"), Kind::Gauge, line.real(word)?);
        }
        sink("loadavg:running_tasks", Kind::Gauge, line.integer(running)?);
        sink("loadavg:tasks", Kind::Gauge, line.integer(all)?);
    }
    Ok(())
}

/// `pressure:cpu.some.total_us`, and the kernel's averages in percent.
fn pressure(text: &Text, resource: &str, sink: &mut Sink) -> Result<()> {
    for line in text.lines() {
        let mut words = line.text.split_whitespace();
        let share = words.next().ok_or_else(|| line.wrong("some or full"))?;
        for word in words {
            let (name, value) = word.split_once('=').ok_or_else(|| line.wrong("NAME=NUMBER"))?;
            if name == "total" {
                sink(&format!("pressure:{resource}.{share}.total_us"), Kind::Counter, line.integer(value)?);
            } else {
                sink(&format!("pressure:{resource}.{share}.{name}_percent"), Kind::Gauge, line.real(value)?);
            }
        }
    }
    Ok(())
}
