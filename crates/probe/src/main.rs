//! The one small static program that twinbed puts on every host.

mod agent;
mod arguments;
mod command;
mod container;
mod exec;
mod failure;
mod files;
mod frame;
mod inbox;
mod lab;
mod listening;
mod mounts;
mod port;
mod reap;
mod request;
mod sys;

use std::process::ExitCode;

use arguments::Arguments;
use failure::{Failure, Outcome};

const USAGE: &str = "usage: twinbed-probe agent|lab|container|init|counters|version [arguments]";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let subcommand = words.next().unwrap_or_default();
    match run(&subcommand, Arguments::new(words)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("twinbed-probe {subcommand}: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(subcommand: &str, arguments: Arguments) -> Outcome<()> {
    match subcommand {
        "agent" => agent::main(arguments),
        "lab" => lab::main(arguments),
        "container" => container::main(arguments),
        "version" => {
            arguments.finish()?;
            println!("{}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        _ => Err(Failure::new(USAGE)),
    }
}
