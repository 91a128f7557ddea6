//! Part of a count's programs: the random choice of the calls that are timed.

use super::layout::{thread, KEPT};
use crate::bpf::assembler::{Assembler, Label};
use crate::bpf::instruction::{Condition, Operand, Operation, Width, R1, R2};
use crate::syscalls::options::SAMPLED_ONE_IN;

use Condition::NotEqual;
use Operand::Number;
use Width::Double;

/// Goes on with a probability of one in `SAMPLED_ONE_IN`, whatever the calls before were; else goes to `unlucky`. Timing every
/// sixteenth call would not do, since programs have periods. The generator is Knuth's for 64 bits, whose highest bits are its
/// best.
pub fn draw(code: &mut Assembler, unlucky: Label) {
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
    use super::*;
    use crate::bpf::instruction::R0;
    use crate::bpf::interpreter::Machine;

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
