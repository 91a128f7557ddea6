//! The one small static program that twinbed puts on every host.

mod agent;
mod arguments;
mod boundary;
mod bpf;
mod clock;
mod command;
mod container;
mod counters;
mod delay;
mod events;
mod exec;
mod failure;
mod files;
mod fingerprint;
mod frame;
mod fw_cfg;
mod held;
mod idle;
mod idle_states;
mod inbox;
mod init;
mod lab;
mod lease;
mod leased_host;
mod listening;
mod loopback;
mod mount_points;
mod mounts;
mod netlink;
mod nic;
mod port;
mod program;
mod reach;
mod reap;
mod request;
mod resumed;
mod root;
mod session;
mod sockets;
mod stations;
mod stop;
mod sys;
mod syscalls;
mod system_folders;
mod undo;
mod usage;
mod user_namespace;
mod waiting;
mod wake_ups;

use std::io::Write;
use std::process::ExitCode;

use arguments::Arguments;
use failure::{complain, Failure, Outcome, Tried};

const USAGE: &str =
    "usage: twinbed-probe agent|lab|container|lease|init|clock|counters|delay|events|fingerprint|sockets|spin|stations|syscalls|wake-up|version [arguments]";

fn main() -> ExitCode {
    // Rust's runtime takes both, to name an overflow of the stack, and lets one pass that somebody has sent.
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        sys::set_signal(signal, libc::SIG_DFL);
    }
    let mut words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let name = words.next().unwrap_or_default();
    let subcommand = match words.next() {
        // The kernel runs /init of an initramfs, and passes on what it does not know itself.
        _ if name == "/init" && std::process::id() == 1 => "init".to_owned(),
        word => word.unwrap_or_default(),
    };
    match run(&subcommand, Arguments::new(words)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain(&failure);
            ExitCode::FAILURE
        }
    }
}

fn run(subcommand: &str, arguments: Arguments) -> Outcome<()> {
    match subcommand {
        "agent" => agent::main(arguments),
        "lab" => lab::main(arguments),
        "container" => container::main(arguments),
        "lease" => lease::main(arguments),
        "init" => init::main(),
        "clock" => clock::main(arguments),
        "counters" => counters::main(arguments),
        "delay" => delay::main(arguments),
        "events" => events::main(arguments),
        "fingerprint" => fingerprint::main(arguments),
        "sockets" => sockets::main(arguments),
        "spin" => idle::spin_main(arguments),
        "stations" => stations::main(arguments),
        "syscalls" => syscalls::main(arguments),
        "wake-up" => idle::measure_main(arguments),
        "version" => {
            arguments.finish()?;
            writeln!(std::io::stdout(), "{}", env!("CARGO_PKG_VERSION")).tried(|| "write to standard output")
        }
        _ => Err(Failure::new(USAGE)),
    }
}
