//! LOESS with one predictor: local polynomials of degree 0, 1 or 2, by least squares or robustly, with standard errors.
//!
//! At a point the `q = span n` nearest observations are fitted with tricube weights of their distance over the farthest's; with
//! a span above 1 all are, and that distance is multiplied by the root of the span. Ties in x are allowed.
//!
//! | module | what |
//! |---|---|
//! | [`params`] | span, degree, family and surface of a fit |
//! | [`sample`] | the observations in the order of x, and the neighbourhood of a point |
//! | [`local`] | the weighted polynomial at a point, as what it does to the responses |
//! | [`cells`] | the interpolating surface: exact at vertices, cubic between them |
//! | [`operator`] | one surface or the other as a linear map of the responses |
//! | [`deltas`] | the two deltas, on which the residual scale and the degrees of freedom rest |
//! | [`robust`] | bisquare weights and pseudovalues of the symmetric family |
//! | [`fit`](mod@fit) | all of it together, with prediction |
//! | [`student`] | quantiles of Student's t for intervals |
//!
//! Sources: Cleveland (1979, J. Am. Stat. Assoc. 74:829), Cleveland and Devlin (1988, J. Am. Stat. Assoc. 83:596), Cleveland,
//! Devlin and Grosse (1988, J. Econometrics 37:87), Cleveland and Grosse (1991, Stat. Comput. 1:47). Checked against R's `loess`.
//! Unlike there the deltas are always those of the fit: in one dimension they cost little, so nothing is approximated by formula.

mod band;
mod cells;
mod deltas;
mod error;
mod fit;
mod local;
mod operator;
mod params;
mod robust;
mod sample;
mod student;

pub use deltas::Deltas;
pub use error::Error;
pub use fit::{curve, fit, Fit, Point, Spread};
pub use params::{Family, Params, Surface};
