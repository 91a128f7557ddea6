//! Part of the programs: admitting a thread that is in scope.

use super::layout::{stack, thread, KEPT};
use super::plan::Plan;
use crate::bpf::assembler::{Assembler, Label};
use crate::bpf::instruction::{Condition, Function, Operand, Operation, Width, R0, R1, R2, R3, R4, R7, STACK};
use crate::syscalls::options::Times;
use crate::syscalls::scope::Within;

use Condition::{Equal, NotEqual};
use Operand::Number;
use Width::{Double, Word};

impl Plan<'_> {
    /// Begins to keep the thread with the ids in R7, if it is in scope; else goes to `out`.
    pub fn admit(&self, code: &mut Assembler, out: Label) {
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
        code.address(R3, STACK, stack::NAMESPACE_IDS);
        code.set(R4, 8);
        code.store_number(Double, STACK, stack::NAMESPACE_IDS, 0);
        code.call(Function::NsCurrentPidTgid);
        code.jump_if(R0, NotEqual, Number(0), elsewhere);
        code.load(Word, R1, STACK, stack::NAMESPACE_IDS + 4);
        for excluded in self.scope.excluded {
            code.jump_if(R1, Equal, Number(excluded as i32), out);
        }
        if let Some(pids) = self.scope.pids {
            code.look_up(pids, stack::NAMESPACE_IDS + 4);
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
        code.address(R2, STACK, stack::THREAD_ID);
        code.first_value(R3, self.blank);
        code.set(R4, 0);
        code.call(Function::MapUpdate);
        code.look_up(self.threads, stack::THREAD_ID);
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
}
