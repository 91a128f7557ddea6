//! The programs that the kernel runs at each call's entry and exit, and where threads end.
//!
//! A thread is admitted at its first entry in scope, and stays admitted. Its call is noted at the entry and finished at the
//! exit: added to its transition (count) or to the thread's chunk (trace). A thread runs on one processor at a time, and only
//! its own calls touch what is kept of it, so nothing here is locked. The programs have no loops, and at most some three
//! hundred instructions each.

use super::finishing::Ending;
use super::layout::{stack, thread, KEPT};
use super::plan::{Plan, Purpose};
use super::sampling::draw;
use crate::bpf::assembler::{Assembler, Label};
use crate::bpf::instruction::{Condition, Function, Instruction, Operand, Operation, Width, R0, R1, R2, R6, R7, STACK};
use crate::syscalls::call::LARGEST_NUMBER;
use crate::syscalls::options::Times;

use Condition::{Equal, Greater, NotEqual};
use Operand::Number;
use Width::{Double, Word};

impl Plan<'_> {
    /// sys_enter(registers, number).
    pub fn entry(&self) -> Vec<Instruction> {
        let mut code = Assembler::default();
        let done = code.label();
        let admitted = code.label();
        code.load(Double, R6, R1, 8);
        code.call(Function::CurrentPidTgid);
        code.copy(R7, R0);
        code.store(Word, STACK, stack::THREAD_ID, R0);
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
        code.store(Word, STACK, stack::THREAD_ID, R0);
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
        code.store(Word, STACK, stack::THREAD_ID, R0);
        self.end_thread(code, done)
    }

    /// task_rename(task, name): counted only, since the arguments alone do not say whose name it is.
    pub fn renaming(&self) -> Vec<Instruction> {
        let mut code = Assembler::default();
        code.first_value(R1, self.renames);
        code.set(R2, 1);
        code.add_shared(R1, 0, R2);
        code.exit();
        code.finish()
    }

    /// sched_process_exec(task, old thread id, ...): a thread that executes a program takes over the id of its group's leader.
    /// What was kept under its own id ends.
    pub fn renumbering(&self) -> Vec<Instruction> {
        let mut code = Assembler::default();
        let done = code.label();
        code.load(Double, R6, R1, 8);
        code.operate(Operation::ShiftLeft, R6, Number(32));
        code.operate(Operation::ShiftRight, R6, Number(32));
        code.store(Word, STACK, stack::THREAD_ID, R6);
        code.call(Function::CurrentPidTgid);
        code.operate(Operation::ShiftLeft, R0, Number(32));
        code.operate(Operation::ShiftRight, R0, Number(32));
        code.jump_if(R0, Equal, Operand::Register(R6), done);
        self.end_thread(code, done)
    }

    fn end_thread(&self, mut code: Assembler, done: Label) -> Vec<Instruction> {
        self.find_thread(&mut code, done);
        self.finish_what_never_returned(&mut code);
        self.end_stream(&mut code);
        if self.threads.is_array() {
            code.store_number(Word, KEPT, thread::TID, 0);
        } else {
            code.map(R1, self.threads);
            code.address(R2, STACK, stack::THREAD_ID);
            code.call(Function::MapDelete);
        }
        code.here(done);
        code.exit();
        code.finish()
    }

    /// KEPT becomes the address of what is kept of the thread whose id is on the stack. Goes to `none` where nothing is kept.
    fn find_thread(&self, code: &mut Assembler, none: Label) {
        code.look_up(self.threads, stack::THREAD_ID);
        code.copy(KEPT, R0);
        code.jump_if(KEPT, Equal, Number(0), none);
        if self.threads.is_array() {
            code.load(Word, R1, KEPT, thread::TID);
            code.jump_if(R1, Equal, Number(0), none);
        }
    }
}

fn note_entry_time(code: &mut Assembler) {
    code.call(Function::KtimeGetNs);
    code.store(Double, KEPT, thread::ENTRY_NS, R0);
}
