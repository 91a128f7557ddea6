//! How long guests were left for the kernel: all exits, accesses to devices' memory (mmio), and to ports.
//!
//! As `perf kvm stat` has them (tools/perf/arch/x86/util/kvm-stat.c of Linux): an exit lasts from kvm_exit to the thread's next
//! kvm_entry; a read of devices' memory from the exit to its kvm_mmio; a write to it, and an access to a port, from its kvm_mmio or
//! kvm_pio to the next entry.

use std::os::fd::OwnedFd;

use super::moment::Moment;
use crate::bpf::assembler::{Assembler, Label};
use crate::bpf::instruction::{
    Condition, Function, Instruction, Operand, Operation, Register, Width, R0, R1, R2, R3, R4, R6, R7, R8, STACK,
};
use crate::bpf::kernel::{Map, MapKind, Program};
use crate::failure::{Outcome, Tried};

use Condition::{Equal, Greater, NotEqual};
use Operand::Number;
use Width::{Double, Word};

/// What is timed, in the order of its totals.
pub const KINDS: [&str; 3] = ["vmexit", "mmio", "ioport"];
const EXIT: usize = 0;
const MMIO: usize = 1;
const PORT: usize = 2;
/// The first argument of kvm_mmio (include/trace/events/kvm.h).
const READ: i32 = 1;
const WRITE: i32 = 2;
/// Virtual processors whose exits are followed at once.
const THREADS: u32 = 8192;

/// Of a thread between an exit and the next entry: the times since which each kind lasts, or 0.
const STATE_BYTES: usize = 8 * KINDS.len();
/// Totals of a kind, on each processor.
const TOTAL_BYTES: usize = 40;
const HITS: i16 = 0;
const COUNT: i16 = 8;
const SUM: i16 = 16;
const LEAST: i16 = 24;
const MOST: i16 = 32;
/// On the programs' stack.
const THREAD: i16 = -8;
const KIND: i16 = -16;
const STATE: i16 = KIND - STATE_BYTES as i16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// How often it happened.
    pub hits: u64,
    /// How often its time is known.
    pub count: u64,
    pub sum_ns: u64,
    pub least_ns: u64,
    pub most_ns: u64,
}

impl Total {
    /// Both together.
    fn and(self, other: Total) -> Total {
        let hits = self.hits + other.hits;
        if self.count == 0 || other.count == 0 {
            return Total { hits, ..if self.count == 0 { other } else { self } };
        }
        Total {
            hits,
            count: self.count + other.count,
            sum_ns: self.sum_ns + other.sum_ns,
            least_ns: self.least_ns.min(other.least_ns),
            most_ns: self.most_ns.max(other.most_ns),
        }
    }
}

pub struct Timing {
    totals: Map,
    threads: Map,
    programs: Vec<(&'static str, Program)>,
    links: Vec<OwnedFd>,
    since: Moment,
    /// For how long the programs were attached, all in all.
    pub attached: Moment,
}

impl Timing {
    /// Loads the programs, and tries to attach each.
    pub fn load() -> Outcome<Timing> {
        let threads = Map::new(MapKind::Hash, 4, STATE_BYTES, THREADS)?;
        let totals = Map::new(MapKind::ArrayOfProcessors, 4, TOTAL_BYTES, KINDS.len() as u32)?;
        let plan = Plan { threads: &threads, totals: &totals };
        // Entries are attached first, so that every exit that is noted has its entry seen.
        let of_tracepoints = [
            ("kvm_entry", plan.entry()),
            ("kvm_mmio", plan.mmio()),
            ("kvm_pio", plan.port()),
            ("kvm_exit", plan.exit()),
        ];
        let mut programs = Vec::new();
        for (tracepoint, instructions) in of_tracepoints {
            let program = Program::load(&instructions)?;
            program.attach(tracepoint)?;
            programs.push((tracepoint, program));
        }
        let never = Moment::default();
        Ok(Timing { totals, threads, programs, links: Vec::new(), since: never, attached: never })
    }

    /// Forgets what had begun when the programs were detached last: its end was not seen.
    pub fn attach(&mut self) -> Outcome<()> {
        let mut begun = Vec::new();
        self.threads.each(|thread, _| begun.push(thread.to_vec()))?;
        for thread in begun {
            self.threads.delete(&thread).tried(|| "empty a BPF map")?;
        }
        let attach = || self.programs.iter().map(|(tracepoint, program)| program.attach(tracepoint)).collect();
        let (since, links): (Moment, Outcome<Vec<_>>) = Moment::of(attach);
        (self.since, self.links) = (since, links?);
        Ok(())
    }

    pub fn detach(&mut self) {
        let (until, ()) = Moment::of(|| self.links.clear());
        self.attached += until - self.since;
    }

    /// Once detached: of each kind in the order of `KINDS`, and how often a program was not run.
    pub fn totals(&self) -> Outcome<(Vec<Total>, Option<u64>)> {
        let mut totals = vec![Total::default(); KINDS.len()];
        self.totals.each(|key, values| {
            let number = key.try_into().map_or(0, u32::from_ne_bytes) as usize;
            for value in values.chunks_exact(TOTAL_BYTES) {
                let [hits, count, sum_ns, least_ns, most_ns] = [HITS, COUNT, SUM, LEAST, MOST].map(|offset| {
                    let at = offset as usize;
                    value[at..at + 8].try_into().map_or(0, u64::from_ne_bytes)
                });
                totals[number] = totals[number].and(Total { hits, count, sum_ns, least_ns, most_ns });
            }
        })?;
        Ok((totals, self.programs.iter().map(|(_, program)| program.missed()).sum()))
    }
}

struct Plan<'a> {
    threads: &'a Map,
    totals: &'a Map,
}

impl Plan<'_> {
    /// R7 becomes the time, and the thread's id is put on the stack.
    fn begin(&self) -> Assembler {
        let mut code = Assembler::default();
        code.load(Double, R6, R1, 0);
        code.call(Function::KtimeGetNs);
        code.copy(R7, R0);
        code.call(Function::CurrentPidTgid);
        code.store(Word, STACK, THREAD, R0);
        code
    }

    /// R8 becomes the thread's state; goes to `none` where it has none.
    fn find(&self, code: &mut Assembler, none: Label) {
        code.look_up(self.threads, THREAD);
        code.jump_if(R0, Equal, Number(0), none);
        code.copy(R8, R0);
    }

    /// The guest is left: everything begins anew.
    fn exit(&self) -> Vec<Instruction> {
        let mut code = self.begin();
        for kind in 0..KINDS.len() {
            code.store_number(Double, STACK, STATE + 8 * kind as i16, 0);
        }
        code.store(Double, STACK, STATE + 8 * EXIT as i16, R7);
        self.hit(&mut code, EXIT);
        code.map(R1, self.threads);
        code.address(R2, STACK, THREAD);
        code.address(R3, STACK, STATE);
        code.set(R4, 0);
        code.call(Function::MapUpdate);
        code.exit();
        code.finish()
    }

    /// The guest goes on: what has begun ends.
    fn entry(&self) -> Vec<Instruction> {
        let mut code = self.begin();
        let done = code.label();
        self.find(&mut code, done);
        for kind in [EXIT, MMIO, PORT] {
            let begun = 8 * kind as i16;
            code.load(Double, R6, R8, begun);
            code.store_number(Double, R8, begun, 0);
            self.end(&mut code, kind, R6);
        }
        code.here(done);
        code.exit();
        code.finish()
    }

    /// kvm_mmio(type, ...).
    fn mmio(&self) -> Vec<Instruction> {
        let mut code = self.begin();
        let (done, access, no_write) = (code.label(), code.label(), code.label());
        code.jump_if(R6, Equal, Number(WRITE), access);
        code.jump_if(R6, NotEqual, Number(READ), done);
        code.here(access);
        self.hit(&mut code, MMIO);
        self.find(&mut code, done);
        code.jump_if(R6, NotEqual, Number(WRITE), no_write);
        code.store(Double, R8, 8 * MMIO as i16, R7);
        code.jump(done);
        code.here(no_write);
        code.load(Double, R6, R8, 8 * EXIT as i16);
        self.end(&mut code, MMIO, R6);
        code.here(done);
        code.exit();
        code.finish()
    }

    /// kvm_pio(...).
    fn port(&self) -> Vec<Instruction> {
        let mut code = self.begin();
        let done = code.label();
        self.hit(&mut code, PORT);
        self.find(&mut code, done);
        code.store(Double, R8, 8 * PORT as i16, R7);
        code.here(done);
        code.exit();
        code.finish()
    }

    /// R0 becomes the kind's totals; goes to `none` where there are none.
    fn totals(&self, code: &mut Assembler, kind: usize, none: Label) {
        code.store_number(Word, STACK, KIND, kind as i32);
        code.look_up(self.totals, KIND);
        code.jump_if(R0, Equal, Number(0), none);
    }

    fn hit(&self, code: &mut Assembler, kind: usize) {
        let out = code.label();
        self.totals(code, kind, out);
        code.add_number(R0, HITS, 1);
        code.here(out);
    }

    /// Adds the time from that in `since` to R7, if it has begun, to the kind's totals. Changes `since`.
    fn end(&self, code: &mut Assembler, kind: usize, since: Register) {
        let (out, least, most) = (code.label(), code.label(), code.label());
        code.jump_if(since, Equal, Number(0), out);
        self.totals(code, kind, out);
        code.copy(R2, R7);
        code.operate(Operation::Subtract, R2, Operand::Register(since));
        code.copy(since, R2);
        code.load(Double, R2, R0, COUNT);
        code.load(Double, R3, R0, LEAST);
        code.jump_if(R2, Equal, Number(0), least);
        let kept = code.label();
        code.jump_if(R3, Greater, Operand::Register(since), least);
        code.jump(kept);
        code.here(least);
        code.store(Double, R0, LEAST, since);
        code.here(kept);
        code.load(Double, R3, R0, MOST);
        code.jump_if(R3, Greater, Operand::Register(since), most);
        code.store(Double, R0, MOST, since);
        code.here(most);
        code.add_number(R0, COUNT, 1);
        code.load(Double, R3, R0, SUM);
        code.operate(Operation::Add, R3, Operand::Register(since));
        code.store(Double, R0, SUM, R3);
        code.here(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_of_processors_are_put_together() {
        let one = Total { hits: 3, count: 2, sum_ns: 30, least_ns: 10, most_ns: 20 };
        let other = Total { hits: 1, count: 1, sum_ns: 5, least_ns: 5, most_ns: 5 };
        let both = Total { hits: 4, count: 3, sum_ns: 35, least_ns: 5, most_ns: 20 };
        assert_eq!((one.and(other), one.and(Total::default()), Total::default().and(one)), (both, one, one));
    }

    /// The kernel runs the programs in the order of an exit for a read, two exits for writes and one for a port; needs root.
    #[test]
    fn an_exit_lasts_to_the_entry_and_an_access_as_perf_has_it() {
        let threads = Map::new(MapKind::Hash, 4, STATE_BYTES, THREADS).unwrap();
        let totals = Map::new(MapKind::ArrayOfProcessors, 4, TOTAL_BYTES, KINDS.len() as u32).unwrap();
        let plan = Plan { threads: &threads, totals: &totals };
        let [exit, entry, mmio, port] =
            [plan.exit(), plan.entry(), plan.mmio(), plan.port()].map(|program| Program::load(&program).unwrap());
        let wait = || std::thread::sleep(std::time::Duration::from_millis(20));
        mmio.run(&[0]); // a read that nothing has answered yet
        mmio.run(&[READ as u64]); // outside of any exit: it happened, and its time is not known
        exit.run(&[0]);
        wait();
        mmio.run(&[0]);
        mmio.run(&[READ as u64]);
        wait();
        entry.run(&[0]);
        for _ in 0..2 {
            exit.run(&[0]);
            mmio.run(&[WRITE as u64]);
            entry.run(&[0]);
        }
        exit.run(&[0]);
        port.run(&[0]);
        wait();
        entry.run(&[0]);
        entry.run(&[0]);
        let timing = Timing {
            totals,
            threads,
            programs: Vec::new(),
            links: Vec::new(),
            since: Moment::default(),
            attached: Moment::default(),
        };
        let (found, _) = timing.totals().unwrap();
        assert_eq!(found.iter().map(|total| (total.hits, total.count)).collect::<Vec<_>>(), [(4, 4), (4, 3), (1, 1)]);
        const WAITED: u64 = 20_000_000;
        let [exits, accesses, ports] = [found[0], found[1], found[2]];
        assert!(exits.sum_ns >= 3 * WAITED && exits.most_ns >= 2 * WAITED && exits.least_ns < exits.most_ns);
        assert!(accesses.most_ns >= WAITED && accesses.most_ns <= exits.most_ns - WAITED);
        assert!(ports.sum_ns >= WAITED && ports.least_ns == ports.sum_ns && ports.most_ns == ports.sum_ns);
        assert!(exits.sum_ns >= accesses.sum_ns + ports.sum_ns);
    }
}
