//! How long wake-ups of idle CPUs take: from `sched_waking` of a task until it runs on a CPU that had nothing to run.
//!
//! Two programs on raw tracepoints (include/trace/events/sched.h of Linux). Tasks are known by their addresses, which are numbers
//! here: nothing of the kernel is read, so that neither BTF nor a tracefs is needed. `sched_wakeup` would be too late: the kernel
//! enters a task that another CPU wakes into its queue after the interrupt has arrived.
//!
//! A wake-up counts if the CPU was idle from before it until the task ran. What was noted of a task is dropped when the task leaves
//! a CPU: a task that is moved while it runs, as by exec, or whose address is used again, was not woken. A task that waits for a
//! busy CPU until one that was idle all the while fetches it does count.

use std::fmt::Write;
use std::os::fd::OwnedFd;

use crate::bpf::assembler::{Assembler, Label};
use crate::bpf::instruction::{
    Condition, Function, Instruction, Operand, Operation, Width, R0, R1, R6, R7, R8, R9, STACK,
};
use crate::bpf::kernel::{Map, MapKind, Program};
use crate::failure::{Outcome, Tried};

use Condition::{Equal, Greater, NotEqual};
use Operand::{Number, Register};
use Width::{Double, Word};

/// Places for woken tasks. A task that takes another one's place makes it forgotten: that wake-up does not count. An array without
/// chains takes two thirds of the time that a hash map takes.
const PLACE_BITS: i32 = 12;
/// 2^64 divided by the golden ratio (Knuth, The Art of Computer Programming, volume 3, section 6.4).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// A place: the task, or 0, and when it was woken, in nanoseconds.
const PLACE_BYTES: usize = 16;
const TASK: i16 = 0;
const WOKEN: i16 = 8;
/// The idle task of every CPU.
const IDLE_PID: i32 = 0;
const ONLY_CPU: [u8; 4] = [0; 4];
/// Of each CPU.
const CPU_BYTES: usize = 32;
const IDLE_TASK: i16 = 0;
const IDLE_SINCE: i16 = 8;
const COUNT: i16 = 16;
const SUM: i16 = 24;
/// On the programs' stack.
const CPU: i16 = -8;
const PLACE: i16 = -16;

struct Maps {
    woken: Map,
    cpus: Map,
}

/// The programs, while they are attached.
pub struct WakeUps {
    maps: Maps,
    programs: [Program; 2],
    _links: [OwnedFd; 2],
}

impl WakeUps {
    pub fn attach() -> Outcome<WakeUps> {
        crate::bpf::lift_memory_limit();
        let maps = Maps::new()?;
        let programs = [Program::load(&maps.waking())?, Program::load(&maps.switch(IDLE_PID))?];
        let links = [programs[0].attach("sched_waking")?, programs[1].attach("sched_switch")?];
        Ok(WakeUps { maps, programs, _links: links })
    }

    /// A line `cpu0 COUNT SUM_NS` for each CPU, and `missed COUNT` where the kernel says how often a program was not run.
    pub fn text(&self) -> Outcome<String> {
        let mut text = String::new();
        for (cpu, (count, sum_ns)) in self.maps.totals()?.into_iter().enumerate() {
            // Writing to a String does not fail.
            let _ = writeln!(text, "cpu{cpu} {count} {sum_ns}");
        }
        if let Some(missed) = self.programs.iter().map(Program::missed).sum::<Option<u64>>() {
            let _ = writeln!(text, "missed {missed}");
        }
        Ok(text)
    }
}

impl Maps {
    fn new() -> Outcome<Maps> {
        let woken = Map::new(MapKind::Array, 4, PLACE_BYTES, 1 << PLACE_BITS)?;
        Ok(Maps { woken, cpus: Map::new(MapKind::ArrayOfProcessors, 4, CPU_BYTES, 1)? })
    }

    /// Number of wake-ups and their nanoseconds, of each CPU that there may be.
    fn totals(&self) -> Outcome<Vec<(u64, u64)>> {
        let mut values = vec![0; self.cpus.value_bytes()];
        self.cpus.get(&ONLY_CPU, &mut values).tried(|| "read the wake-ups of idle CPUs")?;
        let number = |value: &[u8], at: i16| {
            let at = at as usize;
            value[at..at + 8].try_into().map_or(0, u64::from_ne_bytes)
        };
        Ok(values.chunks_exact(CPU_BYTES).map(|value| (number(value, COUNT), number(value, SUM))).collect())
    }

    /// sched_waking(task): notes the time.
    fn waking(&self) -> Vec<Instruction> {
        let mut code = Assembler::default();
        let done = code.label();
        code.load(Double, R6, R1, 0);
        code.call(Function::KtimeGetNs);
        code.copy(R7, R0);
        self.find_place(&mut code, R6, done);
        code.store(Double, R0, TASK, R6);
        code.store(Double, R0, WOKEN, R7);
        code.here(done);
        code.exit();
        code.finish()
    }

    /// R0 becomes the task's place; goes to `none` where there is none. Changes R1 and R2.
    fn find_place(&self, code: &mut Assembler, task: u8, none: Label) {
        code.set_wide(R1, SPREAD);
        code.operate(Operation::Multiply, R1, Register(task));
        code.operate(Operation::ShiftRight, R1, Number(u64::BITS as i32 - PLACE_BITS));
        code.store(Word, STACK, PLACE, R1);
        code.look_up(&self.woken, PLACE);
        code.jump_if(R0, Equal, Number(0), none);
    }

    /// sched_switch(preempt, from, to), while `from` is the current task still: it has `idle_pid` on an idle CPU.
    fn switch(&self, idle_pid: i32) -> Vec<Instruction> {
        let mut code = Assembler::default();
        let (idle, unknown, done) = (code.label(), code.label(), code.label());
        code.load(Double, R6, R1, 8);
        code.load(Double, R7, R1, 16);
        code.call(Function::CurrentPidTgid);
        code.copy(R8, R0);
        code.operate(Operation::ShiftLeft, R8, Number(32));
        code.operate(Operation::ShiftRight, R8, Number(32));
        code.store_number(Word, STACK, CPU, 0);
        code.look_up(&self.cpus, CPU);
        code.jump_if(R0, Equal, Number(0), done);
        code.copy(R9, R0);
        code.jump_if(R8, Equal, Number(idle_pid), idle);

        // A busy CPU: its task has run, and the CPU may become idle now.
        self.find_place(&mut code, R6, unknown);
        code.load(Double, R1, R0, TASK);
        code.jump_if(R1, NotEqual, Register(R6), unknown);
        code.store_number(Double, R0, TASK, 0);
        code.here(unknown);
        code.load(Double, R1, R9, IDLE_TASK);
        code.jump_if(R7, NotEqual, Register(R1), done);
        code.call(Function::KtimeGetNs);
        code.store(Double, R9, IDLE_SINCE, R0);
        code.jump(done);

        // An idle CPU has something to run.
        code.here(idle);
        code.store(Double, R9, IDLE_TASK, R6);
        self.find_place(&mut code, R7, done);
        code.load(Double, R1, R0, TASK);
        code.jump_if(R1, NotEqual, Register(R7), done);
        code.store_number(Double, R0, TASK, 0);
        code.load(Double, R6, R0, WOKEN);
        code.load(Double, R1, R9, IDLE_SINCE);
        code.jump_if(R1, Greater, Register(R6), done);
        code.call(Function::KtimeGetNs);
        code.jump_if(R6, Greater, Register(R0), done);
        code.operate(Operation::Subtract, R0, Register(R6));
        code.load(Double, R1, R9, SUM);
        code.operate(Operation::Add, R1, Register(R0));
        code.store(Double, R9, SUM, R1);
        code.add_number(R9, COUNT, 1);
        code.here(done);
        code.exit();
        code.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SELF: u64 = 0x1111;
    const WAITING: u64 = 0x2222;
    const BUSY: u64 = 0x3333;
    const WAITED_NS: u64 = 20_000_000;

    /// The kernel runs the programs in this thread, which stands for an idle task; needs root.
    #[test]
    fn a_wake_up_counts_from_waking_until_an_idle_cpu_runs_the_task() {
        one_cpu();
        let maps = Maps::new().unwrap();
        // SAFETY: it has no arguments, and cannot fail.
        let own_pid = unsafe { libc::gettid() };
        let [waking, of_idle, of_busy] =
            [maps.waking(), maps.switch(own_pid), maps.switch(own_pid + 1)].map(|it| Program::load(&it).unwrap());
        let counted = || maps.totals().unwrap().into_iter().fold((0, 0), |sum, cpu| (sum.0 + cpu.0, sum.1 + cpu.1));
        let wait = || std::thread::sleep(std::time::Duration::from_nanos(WAITED_NS));

        of_idle.run(&[0, SELF, WAITING]);
        assert_eq!(counted(), (0, 0), "nobody woke it while this was watched");
        waking.run(&[WAITING]);
        wait();
        of_idle.run(&[0, SELF, WAITING]);
        let (count, sum_ns) = counted();
        assert!(count == 1 && sum_ns >= WAITED_NS, "{count} {sum_ns}");
        of_idle.run(&[0, SELF, WAITING]);
        assert_eq!(counted(), (1, sum_ns), "one wake-up counts once");

        waking.run(&[WAITING]);
        of_busy.run(&[0, BUSY, WAITING]);
        assert_eq!(counted(), (1, sum_ns), "the CPU had something else to run");
        of_busy.run(&[0, WAITING, BUSY]);
        of_idle.run(&[0, SELF, WAITING]);
        assert_eq!(counted(), (1, sum_ns), "the task has run since, and was moved");
        waking.run(&[WAITING]);
        of_busy.run(&[0, BUSY, SELF]);
        of_idle.run(&[0, SELF, WAITING]);
        assert_eq!(counted(), (1, sum_ns), "the CPU was not idle yet when the task was woken");
        waking.run(&[WAITING]);
        of_idle.run(&[0, SELF, WAITING]);
        assert!(counted().0 == 2 && counted().1 > sum_ns);
    }

    /// So that what a CPU knows is of this thread.
    fn one_cpu() {
        // SAFETY: a set of its own size, of this thread.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(libc::sched_getcpu() as usize, &mut set);
            assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &set), 0);
        }
    }

    #[test]
    fn every_cpu_has_a_line() {
        let text = WakeUps::attach().unwrap().text().unwrap();
        let mut lines = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let cpus: Vec<_> = lines.by_ref().take_while(|line| line.len() == 3).collect();
        assert_eq!(cpus[0][0], "cpu0");
        assert!(cpus.iter().all(|cpu| cpu[1..].iter().all(|number| number.parse::<u64>().is_ok())), "{text}");
    }
}
