//! What is to be fitted, and how.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Gaussian,
    Symmetric,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// Exact at vertices and cubic between: time grows with the observations, not with their square.
    Interpolate,
    /// Exact at every point, and beyond the observations too.
    Direct,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Params {
    pub span: f64,
    pub degree: usize,
    pub family: Family,
    pub surface: Surface,
}
