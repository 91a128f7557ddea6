//! The programs that the kernel runs at each call's entry and exit, and where threads end.
//!
//! A thread is admitted at its first entry in scope, and stays so. At an entry its call is noted, at the exit the call is
//! finished: added to its transition (count) or to the thread's chunk (trace). A thread runs on one processor at
//! a time and only its own calls touch what is kept of it, so nothing here is locked. No loops; every program has
//! at most some three hundred instructions.

use super::assembler::{
    Assembler, Condition, Function, Instruction, Label, Operand, Operation, Register, Width, R0, R1, R2, R3, R4, R6,
    R7, R8, STACK,
};
use super::cells::Cells;
use super::finishing::Ending;
use super::kernel::Map;
use super::layout::{about, stream, thread};
use crate::syscalls::call::LARGEST_NUMBER;
use crate::syscalls::options::{Times, SAMPLED_ONE_IN};
use crate::syscalls::scope::Within;

use Condition::{Equal, Greater, NotEqual};
use Operand::Number;
use Width::{Double, Word};

/// What the programs do, and the maps that they do it with.
pub struct Plan<'a> {
    pub scope: Scope<'a>,
    pub purpose: Purpose<'a>,
    /// Thread id to what is kept of the thread: a hash, or an array in which free places have the id 0.
    pub threads: &'a Map,
    /// One value: what is kept of a thread at first.
    pub blank: &'a Map,
    /// One number: calls seen and neither counted nor traced.
    pub lost: &'a Map,
    /// One number: how often any thread's name was set.
    pub renames: &'a Map,
}

pub struct Scope<'a> {
    pub within: Within,
    /// One control group, of `Within::Cgroup`.
    pub cgroup: Option<&'a Map>,
    /// Thread group ids in this process's PID namespace, of `Within::Pids`.
    pub pids: Option<&'a Map>,
    /// The PID namespace of this process, as the kernel's device number and the inode.
    pub namespace: (u64, u64),
    /// Thread group ids there that are never followed: this process and its parent.
    pub excluded: [u32; 2],
}

pub enum Purpose<'a> {
    Count { cells: Cells<'a>, streams: &'a Map, skip: u64, times: Times },
    Trace { ring: &'a Map, wake_bytes: i32 },
}

// The stack, as far as the programs themselves use it.
const KEY_TID: i16 = -8;
const NAME: i16 = -24;
const NAMESPACE_IDS: i16 = -32;
const STREAM: i16 = -128;
const ABOUT: i16 = STREAM - about::BYTES as i16;

/// What is kept of the thread, in every program.
pub const KEPT: Register = R8;

impl Plan<'_> {
    /// sys_enter(registers, number).
    pub fn entry(&self) -> Vec<Instruction> {
        let mut code = Assembler::default();
        let done = code.label();
        let admitted = code.label();
        code.load(Double, R6, R1, 8);
        code.call(Function::CurrentPidTgid);
        code.copy(R7, R0);
        code.store(Word, STACK, KEY_TID, R0);
        let unknown = code.label();
        self.find_thread(&mut code, unknown);
        code.jump(admitted);
        code.here(unknown);
        self.admit(&mut code, done);
        code.here(admitted);
        self.finish_what_never_returned(&mut code);
        self.follow_name(&mut code);

        let plausible = code.label();
        code.jump_if(R6, Greater, Number(LARGEST_NUMBER.into()), plausible);
        let noted = code.label();
        code.jump(noted);
        code.here(plausible);
        code.set(R6, LARGEST_NUMBER.into());
        code.here(noted);
        if let Purpose::Count { .. } = self.purpose {
            code.load(Double, R1, KEPT, thread::HISTORY);
            code.operate(Operation::ShiftLeft, R1, Number(16));
            code.operate(Operation::Or, R1, Operand::Register(R6));
            code.store(Double, KEPT, thread::HISTORY, R1);
            code.add_number(KEPT, thread::INDEX, 1);
        } else {
            code.store(Double, KEPT, thread::NUMBER, R6);
        }
        code.store_number(Double, KEPT, thread::IN_CALL, 1);
        match self.timed() {
            Times::Sampled => {
                draw(&mut code, done);
                code.store_number(Double, KEPT, thread::IN_CALL, thread::IN_TIMED_CALL);
                note_entry_time(&mut code);
            }
            Times::All => note_entry_time(&mut code),
            Times::None => {}
        }
        code.here(done);
        code.exit();
        code.finish()
    }

    /// sys_exit(registers, value).
    pub fn exit(&self) -> Vec<Instruction> {
        let mut code = Assembler::default();
        let done = code.label();
        code.load(Double, R7, R1, 8);
        let times = self.timed();
        if times == Times::All {
            code.call(Function::KtimeGetNs);
            code.copy(R6, R0);
        }
        code.call(Function::CurrentPidTgid);
        code.store(Word, STACK, KEY_TID, R0);
        self.find_thread(&mut code, done);
        code.load(Double, R1, KEPT, thread::IN_CALL);
        code.jump_if(R1, Equal, Number(0), done);
        code.store_number(Double, KEPT, thread::IN_CALL, 0);
        if times == Times::Sampled {
            let untimed = code.label();
            code.set(R6, 0);
            code.jump_if(R1, NotEqual, Number(thread::IN_TIMED_CALL), untimed);
            code.call(Function::KtimeGetNs);
            code.copy(R6, R0);
            code.here(untimed);
        }
        self.finish_call(&mut code, Ending::Returned { value: R7, time: R6 });
        code.here(done);
        code.exit();
        code.finish()
    }

    /// sched_process_exit(task): the current thread ends.
    pub fn thread_end(&self) -> Vec<Instruction> {
        let mut code = Assembler::default();
        let done = code.label();
        code.call(Function::CurrentPidTgid);
        code.store(Word, STACK, KEY_TID, R0);
        self.end_thread(code, done)
    }

    /// task_rename(task, name): whose name it is could not be told from the arguments alone.
    pub fn renaming(&self) -> Vec<Instruction> {
        let mut code = Assembler::default();
        code.first_value(R1, self.renames);
        code.set(R2, 1);
        code.add_shared(R1, 0, R2);
        code.exit();
        code.finish()
    }

    /// sched_process_exec(task, old thread id, ...): a thread that executes a program takes over the id of its
    /// group's leader; what was kept under its own id is at an end.
    pub fn renumbering(&self) -> Vec<Instruction> {
        let mut code = Assembler::default();
        let done = code.label();
        code.load(Double, R6, R1, 8);
        code.operate(Operation::ShiftLeft, R6, Number(32));
        code.operate(Operation::ShiftRight, R6, Number(32));
        code.store(Word, STACK, KEY_TID, R6);
        code.call(Function::CurrentPidTgid);
        code.operate(Operation::ShiftLeft, R0, Number(32));
        code.operate(Operation::ShiftRight, R0, Number(32));
        code.jump_if(R0, Equal, Operand::Register(R6), done);
        self.end_thread(code, done)
    }

    /// Which calls are timed: of a trace all.
    pub fn timed(&self) -> Times {
        match self.purpose {
            Purpose::Count { times, .. } => times,
            Purpose::Trace { .. } => Times::All,
        }
    }

    fn end_thread(&self, mut code: Assembler, done: Label) -> Vec<Instruction> {
        self.find_thread(&mut code, done);
        self.finish_what_never_returned(&mut code);
        self.end_stream(&mut code);
        if self.threads.is_array() {
            code.store_number(Word, KEPT, thread::TID, 0);
        } else {
            code.map(R1, self.threads);
            code.address(R2, STACK, KEY_TID);
            code.call(Function::MapDelete);
        }
        code.here(done);
        code.exit();
        code.finish()
    }

    /// KEPT becomes what is kept of the thread whose id is on the stack; where nothing is, goes to `none`.
    fn find_thread(&self, code: &mut Assembler, none: Label) {
        code.look_up(self.threads, KEY_TID);
        code.copy(KEPT, R0);
        code.jump_if(KEPT, Equal, Number(0), none);
        if self.threads.is_array() {
            code.load(Word, R1, KEPT, thread::TID);
            code.jump_if(R1, Equal, Number(0), none);
        }
    }

    /// Begins to keep the thread with the ids in R7, if it is in scope; else goes to `out`.
    fn admit(&self, code: &mut Assembler, out: Label) {
        if let Some(cgroup) = self.scope.cgroup {
            code.map(R1, cgroup);
            code.set(R2, 0);
            code.call(Function::CurrentTaskUnderCgroup);
            code.jump_if(R0, NotEqual, Number(1), out);
        }
        let (device, inode) = self.scope.namespace;
        let elsewhere = code.label();
        let in_scope = code.label();
        code.set_wide(R1, device);
        code.set_wide(R2, inode);
        code.address(R3, STACK, NAMESPACE_IDS);
        code.set(R4, 8);
        code.store_number(Double, STACK, NAMESPACE_IDS, 0);
        code.call(Function::NsCurrentPidTgid);
        code.jump_if(R0, NotEqual, Number(0), elsewhere);
        code.load(Word, R1, STACK, NAMESPACE_IDS + 4);
        for excluded in self.scope.excluded {
            code.jump_if(R1, Equal, Number(excluded as i32), out);
        }
        if let Some(pids) = self.scope.pids {
            code.look_up(pids, NAMESPACE_IDS + 4);
            code.jump_if(R0, Equal, Number(0), out);
        }
        code.jump(in_scope);
        code.here(elsewhere);
        if matches!(self.scope.within, Within::Namespace | Within::Pids(_)) {
            code.jump(out);
        }
        code.here(in_scope);
        let no_room = code.label();
        let admitted = code.label();
        code.map(R1, self.threads);
        code.address(R2, STACK, KEY_TID);
        code.first_value(R3, self.blank);
        code.set(R4, 0);
        code.call(Function::MapUpdate);
        code.look_up(self.threads, KEY_TID);
        code.copy(KEPT, R0);
        code.jump_if(KEPT, Equal, Number(0), no_room);
        code.store(Word, KEPT, thread::TID, R7);
        code.copy(R1, R7);
        code.operate(Operation::ShiftRight, R1, Number(32));
        code.store(Word, KEPT, thread::TGID, R1);
        if self.timed() == Times::Sampled {
            code.call(Function::PrandomU32);
            code.operate(Operation::ShiftLeft, R0, Number(32));
            code.operate(Operation::Or, R0, Operand::Register(R7));
            code.store(Double, KEPT, thread::RANDOM, R0);
        }
        code.jump(admitted);
        code.here(no_room);
        self.lose_one(code);
        code.jump(out);
        code.here(admitted);
    }

    /// Begins a stream at the first call, and where the program's name is another than at the last one.
    /// Names are only looked at after any was set: that costs as much as the clock.
    fn follow_name(&self, code: &mut Assembler) {
        let changed = code.label();
        let begin = code.label();
        let same = code.label();
        code.first_value(R1, self.renames);
        code.load(Double, R2, R1, 0);
        code.load(Double, R1, KEPT, thread::RENAMES);
        code.jump_if(R1, Equal, Operand::Register(R2), same);
        code.store(Double, KEPT, thread::RENAMES, R2);
        code.address(R1, STACK, NAME);
        code.set(R2, 16);
        code.call(Function::CurrentComm);
        code.load(Double, R3, STACK, NAME);
        code.load(Double, R4, STACK, NAME + 8);
        code.load(Double, R1, KEPT, thread::NAME);
        code.load(Double, R2, KEPT, thread::NAME + 8);
        code.jump_if(R1, NotEqual, Operand::Register(R3), changed);
        code.jump_if(R2, NotEqual, Operand::Register(R4), changed);
        code.load(Double, R1, KEPT, thread::STREAM);
        code.jump_if(R1, NotEqual, Number(0), same);
        code.here(changed);
        code.load(Double, R1, KEPT, thread::STREAM);
        code.jump_if(R1, Equal, Number(0), begin);
        self.end_stream(code);
        code.here(begin);
        code.call(Function::KtimeGetNs);
        code.store(Double, KEPT, thread::STREAM, R0);
        for half in [0, 8] {
            code.load(Double, R1, STACK, NAME + half);
            code.store(Double, KEPT, thread::NAME + half, R1);
        }
        code.store_number(Double, KEPT, thread::HISTORY, -1);
        if let Purpose::Count { .. } = self.purpose {
            code.store_number(Word, KEPT, thread::PREVIOUS, 0);
            code.store_number(Word, KEPT, thread::FRESH, 0);
        }
        self.tell_of_stream(code, 0);
        code.here(same);
    }

    fn end_stream(&self, code: &mut Assembler) {
        if let Purpose::Trace { .. } = self.purpose {
            code.store_number(Double, KEPT, thread::ENDED, 1);
            self.hand_over(code);
            code.store_number(Double, KEPT, thread::ENDED, 0);
        }
        self.tell_of_stream(code, 1);
    }

    /// Writes the stream to the map of streams.
    fn tell_of_stream(&self, code: &mut Assembler, ended: i32) {
        let Purpose::Count { streams, .. } = self.purpose else {
            return;
        };
        code.load(Double, R1, KEPT, thread::STREAM);
        code.store(Double, STACK, STREAM + stream::STREAM, R1);
        code.load(Word, R1, KEPT, thread::TID);
        code.store(Double, STACK, STREAM + stream::TID, R1);
        for half in [0, 8] {
            code.load(Double, R1, KEPT, thread::NAME + half);
            code.store(Double, STACK, ABOUT + about::NAME + half, R1);
        }
        code.load(Word, R1, KEPT, thread::TGID);
        code.store(Word, STACK, ABOUT + about::TGID, R1);
        code.store_number(Word, STACK, ABOUT + about::ENDED, ended);
        code.map(R1, streams);
        code.address(R2, STACK, STREAM);
        code.address(R3, STACK, ABOUT);
        code.set(R4, 0);
        code.call(Function::MapUpdate);
    }
}

fn note_entry_time(code: &mut Assembler) {
    code.call(Function::KtimeGetNs);
    code.store(Double, KEPT, thread::ENTRY_NS, R0);
}

/// Goes on with a probability of one in `SAMPLED_ONE_IN`, whatever the calls before were; else goes to `unlucky`. Not
/// every sixteenth call: programs have periods. Knuth's generator for 64 bits; its highest bits are its best.
fn draw(code: &mut Assembler, unlucky: Label) {
    code.load(Double, R1, KEPT, thread::RANDOM);
    code.set_wide(R2, 6_364_136_223_846_793_005);
    code.operate(Operation::Multiply, R1, Operand::Register(R2));
    code.operate(Operation::Add, R1, Number(1_442_695_041));
    code.store(Double, KEPT, thread::RANDOM, R1);
    code.operate(Operation::ShiftRight, R1, Number(64 - SAMPLED_ONE_IN.trailing_zeros() as i32));
    code.jump_if(R1, NotEqual, Number(0), unlucky);
}

#[cfg(test)]
mod tests {
    use super::super::interpreter::Machine;
    use super::*;

    /// Which of so many calls of a thread are timed.
    fn drawn(seed: u64, calls: usize) -> Vec<usize> {
        let mut code = Assembler::default();
        let done = code.label();
        draw(&mut code, done);
        code.set(R0, 1);
        code.here(done);
        let code = code.finish();
        let mut machine = Machine::new(thread::BYTES);
        machine.memory[thread::RANDOM as usize..][..8].copy_from_slice(&seed.to_ne_bytes());
        let timed = (0..calls).filter(|_| {
            machine.registers = [0; 11];
            machine.run(&code);
            machine.registers[usize::from(R0)] == 1
        });
        timed.collect()
    }

    /// Pearson's statistic of counts that should be equal.
    fn chi_squared(counts: &[usize]) -> f64 {
        let mean = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
        counts.iter().map(|count| (*count as f64 - mean).powi(2) / mean).sum()
    }

    #[test]
    fn calls_are_drawn_without_a_period() {
        // As they are at first: 32 random bits, the thread's id below.
        for seed in [0x0000_0000_0000_002a, 0x9e37_79b9_0000_002a, 0x0000_0001_0000_7fff] {
            let calls = 160_000;
            let timed = drawn(seed, calls);
            let expected = calls as f64 / f64::from(SAMPLED_ONE_IN);
            let deviation = (expected * (1.0 - 1.0 / f64::from(SAMPLED_ONE_IN))).sqrt();
            assert!((timed.len() as f64 - expected).abs() < 4.0 * deviation, "{seed:#x}: {}", timed.len());
            // 99.99 % quantiles of the distribution with one degree of freedom less than the period.
            for (period, quantile) in [(2, 15.1), (3, 18.4), (16, 44.3), (29, 62.9)] {
                let mut counts = vec![0; period];
                timed.iter().for_each(|call| counts[call % period] += 1);
                assert!(chi_squared(&counts) < quantile, "{seed:#x}, {period}: {counts:?}");
            }
            // After a call that was timed the next one is as likely as any.
            let pairs = timed.windows(2).filter(|pair| pair[1] == pair[0] + 1).count() as f64;
            let expected = timed.len() as f64 / f64::from(SAMPLED_ONE_IN);
            assert!((pairs - expected).abs() < 4.0 * expected.sqrt(), "{seed:#x}: {pairs}");
        }
    }
}
