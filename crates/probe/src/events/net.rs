//! Tracepoints of networking, counted by device in the kernel: one small program on each.
//!
//! A device is known by the address of its structure, whose name is read when it is met first. Each processor counts for
//! itself, so that nothing is locked.

use std::os::fd::OwnedFd;

use super::moment::Moment;
use crate::bpf::assembler::Assembler;
use crate::bpf::instruction::{Condition, Function, Instruction, Operand, Width, R0, R1, R2, R3, R4, R6, STACK};
use crate::bpf::kernel::{Map, MapKind, Program};
use crate::bpf::types::Types;
use crate::failure::{Failure, Outcome, Tried};

use Operand::Number;
use Width::Double;

/// Where a tracepoint's arguments have the device.
#[derive(Clone, Copy)]
enum Device {
    /// It is that argument.
    Argument(i16),
    /// A member `dev` of the structure that the first argument points to.
    Of(&'static str),
    /// Nowhere: what is kept in its place of a packet in a socket's queue is something else.
    Unknown,
}

/// The tracepoints, in the order of a device's counts.
const TRACEPOINTS: [(&str, Device); 6] = [
    ("net_dev_queue", Device::Of("sk_buff")),
    ("net_dev_xmit", Device::Argument(2)),
    ("netif_rx", Device::Of("sk_buff")),
    ("netif_receive_skb", Device::Of("sk_buff")),
    ("napi_poll", Device::Of("napi_struct")),
    ("kfree_skb", Device::Unknown),
];
/// Devices that are told apart; those beyond are counted as lost.
const DEVICES: u32 = 2048;
const NAME_BYTES: usize = 16;
const VALUE_BYTES: usize = 8 * TRACEPOINTS.len() + NAME_BYTES;
const NAME: i16 = 8 * TRACEPOINTS.len() as i16;
/// On the programs' stack.
const KEY: i16 = -8;
const VALUE: i16 = KEY - VALUE_BYTES as i16;
const ONLY_KEY: [u8; 4] = [0; 4];

/// The programs.
pub struct Counting {
    devices: Outcome<(Map, Map)>,
    programs: Vec<Program>,
    /// Of each program, with the moment since which it is attached.
    links: Vec<(Moment, OwnedFd)>,
    /// For how long each program was attached, all in all.
    attached: Vec<Moment>,
    /// Of each tracepoint, whether it is counted.
    tried: Vec<(&'static str, Outcome<()>)>,
}

/// What was counted.
#[derive(Default)]
pub struct Counts {
    /// (tracepoint, device, hits), of every device that was met.
    pub hits: Vec<(&'static str, String, u64)>,
    /// For want of room.
    pub lost: u64,
    /// As a program interrupted itself.
    pub missed: Option<u64>,
}

impl Counting {
    /// Loads the programs, and tries to attach each.
    pub fn load() -> Counting {
        let devices = Map::new(MapKind::HashOfProcessors, 8, VALUE_BYTES, DEVICES)
            .and_then(|devices| Ok((devices, Map::new(MapKind::Array, 4, 8, 1)?)));
        let mut counting =
            Counting { devices, programs: Vec::new(), links: Vec::new(), attached: Vec::new(), tried: Vec::new() };
        let types = Types::of_kernel();
        for (at, (tracepoint, device)) in TRACEPOINTS.into_iter().enumerate() {
            let outcome = counting.load_one(at, tracepoint, device, &types);
            counting.tried.push((tracepoint, outcome));
        }
        counting
    }

    fn load_one(&mut self, at: usize, tracepoint: &str, device: Device, types: &Outcome<Types>) -> Outcome<()> {
        let types = types.as_ref().map_err(Failure::clone)?;
        let (devices, lost) = self.devices.as_ref().map_err(Failure::clone)?;
        let instructions = program(at, device, types, devices, lost)?;
        let program = Program::load_reading(&instructions, types.tracepoint(tracepoint)?)?;
        program.attach_reading()?;
        self.programs.push(program);
        self.attached.push(Moment::default());
        Ok(())
    }

    pub fn attach(&mut self) -> Outcome<()> {
        for program in &self.programs {
            let (since, link) = Moment::of(|| program.attach_reading());
            self.links.push((since, link?));
        }
        Ok(())
    }

    pub fn detach(&mut self) {
        for ((since, link), attached) in self.links.drain(..).zip(&mut self.attached) {
            let (until, ()) = Moment::of(|| drop(link));
            *attached += until - since;
        }
    }

    /// Each tracepoint with the time for which it was attached, or why it was not.
    pub fn tracepoints(&self) -> impl Iterator<Item = (&'static str, Result<Moment, &Failure>)> {
        let mut attached = self.attached.iter();
        self.tried.iter().map(move |(tracepoint, outcome)| match outcome {
            Ok(()) => (*tracepoint, Ok(attached.next().copied().unwrap_or_default())),
            Err(failure) => (*tracepoint, Err(failure)),
        })
    }

    /// Once detached.
    pub fn counts(&self) -> Outcome<Counts> {
        let Ok((devices, lost)) = &self.devices else { return Ok(Counts::default()) };
        let mut hits = Vec::new();
        devices.each(|_, values| {
            let of_processors = || values.chunks_exact(VALUE_BYTES);
            let name = of_processors().map(|value| name(&value[NAME as usize..])).find(|name| !name.is_empty());
            for (at, (tracepoint, outcome)) in self.tried.iter().enumerate() {
                let total = of_processors().map(|value| number(value, at)).sum();
                if outcome.is_ok() && total > 0 {
                    hits.push((*tracepoint, name.clone().unwrap_or_default(), total));
                }
            }
        })?;
        hits.sort();
        let mut bytes = [0; 8];
        lost.get(&ONLY_KEY, &mut bytes).tried(|| "read how many events were lost")?;
        let missed = self.programs.iter().map(Program::missed).sum();
        Ok(Counts { hits, lost: u64::from_ne_bytes(bytes), missed })
    }
}

fn number(value: &[u8], at: usize) -> u64 {
    value.get(8 * at..8 * at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

/// Up to the first NUL.
fn name(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// Adds one to the count of the device.
fn program(at: usize, device: Device, types: &Types, devices: &Map, lost: &Map) -> Outcome<Vec<Instruction>> {
    let mut code = Assembler::default();
    let count = 8 * at as i16;
    match device {
        Device::Argument(argument) => code.load(Double, R6, R1, 8 * argument),
        Device::Of(structure) => {
            code.load(Double, R6, R1, 0);
            code.load(Double, R6, R6, types.offset(structure, "dev")?);
        }
        Device::Unknown => code.set(R6, 0),
    }
    code.store(Double, STACK, KEY, R6);
    let (known, nameless, added) = (code.label(), code.label(), code.label());
    code.look_up(devices, KEY);
    code.jump_if(R0, Condition::NotEqual, Number(0), known);
    for field in 0..(VALUE_BYTES / 8) as i16 {
        code.store_number(Double, STACK, VALUE + 8 * field, (8 * field == count).into());
    }
    if !matches!(device, Device::Unknown) {
        let of_name = types.offset("net_device", "name")?;
        code.jump_if(R6, Condition::Equal, Number(0), nameless);
        for half in [0, 8] {
            code.load(Double, R1, R6, of_name + half);
            code.store(Double, STACK, VALUE + NAME + half, R1);
        }
    }
    code.here(nameless);
    code.map(R1, devices);
    code.address(R2, STACK, KEY);
    code.address(R3, STACK, VALUE);
    code.set(R4, 0);
    code.call(Function::MapUpdate);
    code.jump_if(R0, Condition::Equal, Number(0), added);
    code.first_value(R1, lost);
    code.set(R2, 1);
    code.add_shared(R1, 0, R2);
    code.jump(added);
    code.here(known);
    code.add_number(R0, count, 1);
    code.here(added);
    code.exit();
    Ok(code.finish())
}
