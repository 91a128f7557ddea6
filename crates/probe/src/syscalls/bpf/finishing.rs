//! Parts of the programs: finishing a call, by adding it to its transition (count) or to the thread's chunk (trace).

use super::cells::Cells;
use super::layout::{call, cell, thread, KEPT};
use super::plan::{Plan, Purpose};
use crate::bpf::assembler::{Assembler, Label};
use crate::bpf::instruction::{Condition, Function, Operand, Operation, Register, Width, R0, R1, R2, R3, R4, R9};
use crate::syscalls::options::Times;

use Condition::{Equal, Greater, SignedGreater, SignedLess};
use Operand::Number;
use Width::{Double, Word};

/// How a call that is finished came to its end.
#[derive(Clone, Copy)]
pub enum Ending {
    Returned { value: Register, time: Register },
    NeverReturned,
}

impl Plan<'_> {
    pub fn finish_what_never_returned(&self, code: &mut Assembler) {
        let none = code.label();
        code.load(Double, R1, KEPT, thread::IN_CALL);
        code.jump_if(R1, Equal, Number(0), none);
        code.store_number(Double, KEPT, thread::IN_CALL, 0);
        self.finish_call(code, Ending::NeverReturned);
        code.here(none);
    }

    pub fn finish_call(&self, code: &mut Assembler, ending: Ending) {
        match self.purpose {
            Purpose::Count { cells, skip, .. } => self.count_call(code, cells, skip, ending),
            Purpose::Trace { .. } => self.trace_call(code, ending),
        }
    }

    fn count_call(&self, code: &mut Assembler, cells: Cells, skip: u64, ending: Ending) {
        let lost = code.label();
        let has_cell = code.label();
        let done = code.label();
        cells.find_next(code, skip, has_cell);
        cells.find_transition(code, skip, lost);
        code.here(has_cell);
        code.add_number(R0, cell::CALLS, 1);
        if let Ending::Returned { value, time } = ending {
            code.add_number(R0, cell::RETURNED, 1);
            let timed = code.label();
            let positive = code.label();
            code.jump_if(value, SignedGreater, Number(0), positive);
            code.jump_if(value, Equal, Number(0), timed);
            code.jump_if(value, SignedLess, Number(-4095), timed);
            code.add_number(R0, cell::ERRORS, 1);
            code.jump(timed);
            code.here(positive);
            add(code, cell::BYTES_MOVED, value);
            code.here(timed);
            self.add_time(code, time, done);
        }
        code.jump(done);
        code.here(lost);
        code.store_number(Word, KEPT, thread::PREVIOUS, 0);
        self.lose_one(code);
        code.here(done);
    }

    /// Adds the call's time to the cell in R0. `time` is that of the exit. Where a sample is timed, a call that is not in it
    /// has the time 0 and goes to `done`.
    fn add_time(&self, code: &mut Assembler, time: Register, done: Label) {
        let times = self.timed();
        match times {
            Times::Sampled => code.jump_if(time, Equal, Number(0), done),
            Times::All => {}
            Times::None => return,
        }
        code.load(Double, R1, KEPT, thread::ENTRY_NS);
        code.operate(Operation::Subtract, time, Operand::Register(R1));
        add(code, cell::TIME_NS, time);
        if times == Times::Sampled {
            code.add_number(R0, cell::TIMED, 1);
            add_square(code, time);
        }
    }

    fn trace_call(&self, code: &mut Assembler, ending: Ending) {
        let done = code.label();
        code.load(Double, R9, KEPT, thread::HELD);
        code.jump_if(R9, Greater, Number(thread::MAXIMUM_HELD - 1), done);
        code.operate(Operation::Multiply, R9, Number(thread::CALL_BYTES));
        code.operate(Operation::Add, R9, Operand::Register(KEPT));
        code.load(Double, R1, KEPT, thread::ENTRY_NS);
        code.store(Double, R9, thread::CALLS + call::ENTRY_NS, R1);
        match ending {
            Ending::Returned { value, time } => {
                code.operate(Operation::Subtract, time, Operand::Register(R1));
                code.copy(R1, time);
                code.store(Double, R9, thread::CALLS + call::VALUE, value);
            }
            Ending::NeverReturned => {
                code.set_wide(R1, call::NO_DURATION);
                code.store_number(Double, R9, thread::CALLS + call::VALUE, 0);
            }
        }
        code.operate(Operation::ShiftLeft, R1, Number(16));
        code.load(Double, R2, KEPT, thread::NUMBER);
        code.operate(Operation::Or, R1, Operand::Register(R2));
        code.store(Double, R9, thread::CALLS + call::DURATION_NUMBER, R1);
        code.add_number(KEPT, thread::HELD, 1);
        code.jump_if(R1, Condition::NotEqual, Number(thread::MAXIMUM_HELD), done);
        self.hand_over(code);
        code.here(done);
    }

    /// Puts the thread's calls into the ring, whose reader is woken once enough is there.
    pub fn hand_over(&self, code: &mut Assembler) {
        let Purpose::Trace { ring, wake_bytes } = self.purpose else {
            return;
        };
        const AVAILABLE: i32 = 0;
        const DO_NOT_WAKE: i32 = 1;
        const WAKE: i32 = 2;
        let send = code.label();
        let kept = code.label();
        let cleared = code.label();
        code.map(R1, ring);
        code.set(R2, AVAILABLE);
        code.call(Function::RingbufQuery);
        code.set(R4, WAKE);
        code.jump_if(R0, Greater, Number(wake_bytes), send);
        code.set(R4, DO_NOT_WAKE);
        code.here(send);
        code.map(R1, ring);
        code.copy(R2, KEPT);
        code.set(R3, thread::CHUNK_BYTES as i32);
        code.call(Function::RingbufOutput);
        code.jump_if(R0, Equal, Number(0), kept);
        code.load(Double, R2, KEPT, thread::HELD);
        code.load(Double, R1, KEPT, thread::LOST);
        code.operate(Operation::Add, R1, Operand::Register(R2));
        code.store(Double, KEPT, thread::LOST, R1);
        code.first_value(R1, self.lost);
        code.add_shared(R1, 0, R2);
        code.jump(cleared);
        code.here(kept);
        code.store_number(Double, KEPT, thread::LOST, 0);
        code.here(cleared);
        code.store_number(Double, KEPT, thread::HELD, 0);
    }

    pub fn lose_one(&self, code: &mut Assembler) {
        code.first_value(R1, self.lost);
        code.set(R2, 1);
        code.add_shared(R1, 0, R2);
    }
}

/// Adds to a number of the cell in R0. Uses R1.
fn add(code: &mut Assembler, offset: i16, what: Register) {
    code.load(Double, R1, R0, offset);
    code.operate(Operation::Add, R1, Operand::Register(what));
    code.store(Double, R0, offset, R1);
}

/// Adds the square of `time` to the cell in R0. With time = 2^32 a + b it is 2^64 a^2 + 2^32 2ab + b^2. The sums hold up to
/// 2^96: ten calls of a day.
fn add_square(code: &mut Assembler, time: Register) {
    let (a, b, square) = (R2, R3, R4);
    let low_half = |code: &mut Assembler, register| {
        code.operate(Operation::ShiftLeft, register, Number(32));
        code.operate(Operation::ShiftRight, register, Number(32));
    };
    code.copy(b, time);
    low_half(code, b);
    code.copy(square, b);
    code.operate(Operation::Multiply, square, Operand::Register(b));
    code.copy(a, square);
    low_half(code, a);
    add(code, cell::SQUARES_LOW, a);
    code.operate(Operation::ShiftRight, square, Number(32));
    add(code, cell::SQUARES_HIGH, square);
    code.copy(a, time);
    code.operate(Operation::ShiftRight, a, Number(32));
    code.operate(Operation::Multiply, b, Operand::Register(a));
    code.operate(Operation::ShiftLeft, b, Number(1));
    add(code, cell::SQUARES_HIGH, b);
    code.operate(Operation::Multiply, a, Operand::Register(a));
    code.operate(Operation::ShiftLeft, a, Number(32));
    add(code, cell::SQUARES_HIGH, a);
}

#[cfg(test)]
mod tests {
    use super::super::layout::cell_from_bytes;
    use super::*;
    use crate::bpf::instruction::R6;
    use crate::bpf::interpreter::Machine;

    #[test]
    fn squares_add_up_exactly() {
        let mut code = Assembler::default();
        add_square(&mut code, R6);
        let code = code.finish();
        let mut machine = Machine::new(cell::BYTES);
        let mut sum = 0;
        // Around the half of the bits, and up to a day.
        for time in [0, 1, 117, 4_294_967_295, 4_294_967_296, 4_294_967_297, 5_000_000_000, 86_400_000_000_000] {
            for _ in 0..3 {
                machine.registers = [0; 11];
                machine.registers[usize::from(R6)] = time;
                machine.run(&code);
                sum += u128::from(time) * u128::from(time);
                assert_eq!(cell_from_bytes(&machine.memory).squares_ns2, sum, "{time}");
            }
        }
    }
}
