//! Matrices whose rows are 0 outside one range of columns.

#[derive(Debug, Clone)]
pub struct Band {
    /// First column, and the entries from it on.
    rows: Vec<(usize, Vec<f64>)>,
}

impl Band {
    pub fn new(rows: Vec<(usize, Vec<f64>)>) -> Self {
        Band { rows }
    }

    pub fn get(&self, row: usize, column: usize) -> f64 {
        let (start, entries) = &self.rows[row];
        column.checked_sub(*start).and_then(|at| entries.get(at)).copied().unwrap_or(0.0)
    }

    pub fn product(&self, other: &Band) -> Band {
        let row = |(start, entries): &(usize, Vec<f64>)| {
            let met = || entries.iter().zip(&other.rows[(*start).min(other.rows.len())..]);
            let low = met().map(|(_, (low, _))| *low).min().unwrap_or(0);
            let high = met().map(|(_, (low, more))| low + more.len()).max().unwrap_or(0);
            let mut sums = vec![0.0; high.saturating_sub(low)];
            for (entry, (from, more)) in met() {
                sums[from - low..].iter_mut().zip(more).for_each(|(sum, one)| *sum += entry * one);
            }
            (low, sums)
        };
        Band { rows: self.rows.iter().map(row).collect() }
    }

    pub fn trace(&self) -> f64 {
        (0..self.rows.len()).map(|at| self.get(at, at)).sum()
    }

    /// Trace of the product of two square matrices.
    pub fn trace_with(&self, other: &Band) -> f64 {
        let rows = self.rows.iter().enumerate();
        rows.flat_map(|(row, (start, entries))| {
            entries.iter().enumerate().map(move |(at, entry)| entry * other.get(start + at, row))
        })
        .sum()
    }
}
