//! The kinds of traces.

/// Who made a trace, and in which format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Strace,
    PerfScript,
    /// As `trace-cmd report` prints it, and as tracefs itself does.
    TraceCmd,
    PerfData,
    Sysdig,
    Plain,
    /// Two columns: a process or thread, and its call.
    PlainByProcess,
    ProbeTrace,
    ProbeCounts,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Strace => "strace",
            Kind::PerfScript => "perf_script",
            Kind::TraceCmd => "trace_cmd",
            Kind::PerfData => "perf_data",
            Kind::Sysdig => "sysdig",
            Kind::Plain => "plain",
            Kind::PlainByProcess => "plain_by_process",
            Kind::ProbeTrace => "probe_trace",
            Kind::ProbeCounts => "probe_counts",
        }
    }
}
