//! Parts of the programs: beginning and ending a thread's streams.

use super::layout::{about, stack, stream, thread, KEPT};
use super::plan::{Plan, Purpose};
use crate::bpf::assembler::Assembler;
use crate::bpf::instruction::{Condition, Function, Operand, Width, R0, R1, R2, R3, R4, STACK};

use Condition::{Equal, NotEqual};
use Operand::Number;
use Width::{Double, Word};

impl Plan<'_> {
    /// Begins a stream at the first call, and where the program's name differs from that at the last one. A look at the name
    /// costs as much as the clock, so it is taken only after any thread's name was set.
    pub fn follow_name(&self, code: &mut Assembler) {
        let changed = code.label();
        let begin = code.label();
        let same = code.label();
        code.first_value(R1, self.renames);
        code.load(Double, R2, R1, 0);
        code.load(Double, R1, KEPT, thread::RENAMES);
        code.jump_if(R1, Equal, Operand::Register(R2), same);
        code.store(Double, KEPT, thread::RENAMES, R2);
        code.address(R1, STACK, stack::NAME);
        code.set(R2, 16);
        code.call(Function::CurrentComm);
        code.load(Double, R3, STACK, stack::NAME);
        code.load(Double, R4, STACK, stack::NAME + 8);
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
            code.load(Double, R1, STACK, stack::NAME + half);
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

    pub fn end_stream(&self, code: &mut Assembler) {
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
        code.store(Double, STACK, stack::STREAM + stream::STREAM, R1);
        code.load(Word, R1, KEPT, thread::TID);
        code.store(Double, STACK, stack::STREAM + stream::TID, R1);
        for half in [0, 8] {
            code.load(Double, R1, KEPT, thread::NAME + half);
            code.store(Double, STACK, stack::ABOUT + about::NAME + half, R1);
        }
        code.load(Word, R1, KEPT, thread::TGID);
        code.store(Word, STACK, stack::ABOUT + about::TGID, R1);
        code.store_number(Word, STACK, stack::ABOUT + about::ENDED, ended);
        code.map(R1, streams);
        code.address(R2, STACK, stack::STREAM);
        code.address(R3, STACK, stack::ABOUT);
        code.set(R4, 0);
        code.call(Function::MapUpdate);
    }
}
