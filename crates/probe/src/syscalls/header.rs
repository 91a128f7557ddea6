//! The lines at the head of both files.

use super::options::{Command, Method, Options, Times};
use crate::sys;
use crate::waiting::now_ns;

pub struct Header {
    pub start_ns: u64,
    /// The calls that a count times.
    pub times: Times,
    lines: String,
}

impl Header {
    /// `refused`: the methods that were tried before, and why they failed.
    pub fn now(options: &Options, method: Method, refused: &[String]) -> Header {
        let start_ns = now_ns();
        let from_start = |clock| sys::clock_ns(clock) - sys::monotonic_ns();
        let mut lines = String::new();
        let mut add = |name: &str, value: &dyn std::fmt::Display| lines.push_str(&format!("{name} {value}\n"));
        add("architecture", &std::env::consts::ARCH);
        add("kernel", &sys::identity().1);
        add("method", &method.name());
        for reason in refused {
            add("refused", &reason.replace('\n', " "));
        }
        add("scope", &options.scope.describe());
        add("clock", &"monotonic");
        add("boot_offset_ns", &from_start(libc::CLOCK_BOOTTIME));
        add("realtime_offset_ns", &from_start(libc::CLOCK_REALTIME));
        add("start_ns", &start_ns);
        let mut in_effect = Times::All;
        if let Command::Count { skip, slice_ns, times, .. } = options.command {
            if method == Method::Bpf {
                in_effect = times;
            }
            add("skip", &skip);
            add("slice_ns", &slice_ns);
            add("times", &in_effect.name());
            add("timed_share", &in_effect.share());
        }
        Header { start_ns, times: in_effect, lines }
    }

    pub fn lines(&self) -> &str {
        &self.lines
    }
}
