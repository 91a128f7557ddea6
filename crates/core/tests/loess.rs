//! LOESS on what R answered (tests/golden/loess), on curves that it must give back, and on input that it must refuse.

use proptest::prelude::*;
use std::collections::HashMap;
use twinbed_core::loess::{fit, Error, Family, Params, Surface};

const GAUSSIAN: Params = Params { span: 0.5, degree: 2, family: Family::Gaussian, surface: Surface::Interpolate };
const DIRECT: Params = Params { surface: Surface::Direct, ..GAUSSIAN };

type Row = HashMap<String, String>;

fn golden(name: &str) -> Vec<Row> {
    let path = format!("{}/../../tests/golden/loess/{name}.csv", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row =
        |line: &str| header.iter().map(|name| name.to_string()).zip(line.split(',').map(str::to_string)).collect();
    lines.map(row).collect()
}

fn number(row: &Row, name: &str) -> f64 {
    row[name].parse().unwrap()
}

#[test]
fn small_cases_are_as_r_has_them() {
    let (data, expected) = (golden("data"), golden("expected"));
    // Of the others n^3 products are too many without optimisation; tests/known/test_loess_known.py has them all.
    let small = |case: &Row| ["cars", "pairs", "three"].contains(&case["set"].as_str());
    for case in golden("cases").into_iter().filter(small) {
        let rows: Vec<&Row> = data.iter().filter(|row| row["set"] == case["set"]).collect();
        let column = |name: &str| rows.iter().map(|row| number(row, name)).collect::<Vec<f64>>();
        let params = Params {
            span: number(&case, "span"),
            degree: number(&case, "degree") as usize,
            family: if case["family"] == "gaussian" { Family::Gaussian } else { Family::Symmetric },
            surface: if case["surface"] == "direct" { Surface::Direct } else { Surface::Interpolate },
        };
        let weights = (case["weighted"] == "1").then(|| column("w"));
        let curve = fit(&column("x"), &column("y"), weights.as_deref(), params).unwrap();
        close(curve.residual_scale.unwrap(), number(&case, "scale"), 1.0);
        close(curve.degrees_of_freedom().unwrap(), number(&case, "df"), 1.0);
        let asked: Vec<&Row> = expected.iter().filter(|row| row["case"] == case["case"]).take(13).collect();
        let at: Vec<f64> = asked.iter().map(|row| number(row, "at")).collect();
        let size = column("y").into_iter().map(f64::abs).fold(0.0, f64::max);
        for (row, point) in asked.iter().zip(curve.predict(&at, 0.95).unwrap()) {
            let Some(point) = point else {
                assert_eq!(row["fit"], "", "{case:?} {row:?}");
                continue;
            };
            let spread = point.interval.unwrap();
            close(point.fit, number(row, "fit"), size);
            close(spread.standard_error, number(row, "standard_error"), size);
            close(spread.low, number(row, "low"), size);
            close(spread.high, number(row, "high"), size);
        }
    }
}

fn close(actual: f64, expected: f64, size: f64) {
    assert!((actual - expected).abs() <= 1e-9 * expected.abs().max(1e-3 * size), "{actual} {expected}");
}

#[test]
fn deltas_of_a_large_direct_surface_are_the_interpolating_ones() {
    let x: Vec<f64> = (0..1001).map(|at| f64::from(at * at % 1201)).collect();
    let y: Vec<f64> = x.iter().map(|x| (x / 200.0).sin()).collect();
    let with = |params| fit(&x, &y, None, Params { span: 0.05, ..params }).unwrap();
    let (direct, other) = (with(DIRECT), with(GAUSSIAN));
    assert_eq!(direct.deltas, other.deltas);
}

#[test]
fn what_leaves_no_residuals_has_no_interval() {
    let curve = fit(&[1.0, 2.0, 3.0], &[5.0, 1.0, 7.0], None, Params { span: 1.5, ..DIRECT }).unwrap();
    assert_eq!(curve.residual_scale, None);
    let points = curve.predict(&[2.0, f64::NAN], 0.95).unwrap();
    assert!((points[0].unwrap().fit - 1.0).abs() < 1e-12 && points[0].unwrap().interval.is_none());
    assert_eq!(points[1], None);
}

#[test]
fn refusals_say_why() {
    let (x, y) = ([1.0, 1.0, 1.0, 2.0, 3.0, 4.0], [1.0; 6]);
    let with = |params: Params| fit(&x, &y, None, params).unwrap_err();
    assert_eq!(with(Params { degree: 3, ..GAUSSIAN }), Error::Degree(3));
    assert!(matches!(with(Params { span: f64::NAN, ..GAUSSIAN }), Error::Span(_)));
    assert_eq!(with(Params { span: 0.1, ..GAUSSIAN }), Error::Few { n: 6, neighbours: 0, degree: 2 });
    assert_eq!(with(DIRECT), Error::Ties { x: 1.0, neighbours: 3, ties: 3 });
    assert!(fit(&x, &y, None, Params { span: 0.7, ..DIRECT }).is_ok());
    assert_eq!(fit(&x, &y[1..], None, GAUSSIAN).unwrap_err(), Error::Lengths { x: 6, y: 5, weights: None });
    assert_eq!(fit(&[f64::NAN], &[1.0], None, GAUSSIAN).unwrap_err(), Error::NotFinite { what: "x", at: 0 });
    assert_eq!(fit(&x, &y, Some(&[0.0; 6]), GAUSSIAN).unwrap_err(), Error::Weight { at: 0, weight: 0.0 });
    assert_eq!(fit(&[], &[], None, GAUSSIAN).unwrap_err(), Error::Few { n: 0, neighbours: 0, degree: 2 });
}

proptest! {
    /// A line is its own smooth curve, whatever the span, the weights and the ties. Of the symmetric family that need not hold: of
    /// residuals that are rounding alone, rounding would decide which rows count, and may leave a neighbourhood too few x.
    #[test]
    fn lines_are_kept(
        rows in prop::collection::vec((0_u8..40, 0.1_f64..9.0), 12..60),
        span in 0.6_f64..1.6, degree in 1_usize..3, direct: bool,
    ) {
        let x: Vec<f64> = rows.iter().map(|row| f64::from(row.0)).collect();
        let weights: Vec<f64> = rows.iter().map(|row| row.1).collect();
        let y: Vec<f64> = x.iter().map(|x| 7.0 - 2.0 * x).collect();
        let params = Params {
            span, degree,
            family: Family::Gaussian,
            surface: if direct { Surface::Direct } else { Surface::Interpolate },
        };
        if let Ok(curve) = fit(&x, &y, Some(&weights), params) {
            let mut different = x.clone();
            different.sort_by(f64::total_cmp);
            different.dedup();
            // With neighbourhoods of fewer x than coefficients the shortest solution need not be the line.
            prop_assume!(different.len() > rows.len() / 2);
            for (actual, y) in curve.fitted.iter().zip(&y) {
                prop_assert!((actual - y).abs() < 1e-6, "{actual} {y}");
            }
        }
    }

    /// Whatever the numbers, an answer or a reason.
    #[test]
    fn nothing_panics(
        x in prop::collection::vec(prop::num::f64::ANY, 0..30),
        y in prop::collection::vec(-1e3_f64..1e3, 0..30),
        span in prop::num::f64::ANY, degree in 0_usize..5, direct: bool,
    ) {
        let surface = if direct { Surface::Direct } else { Surface::Interpolate };
        let length = x.len().min(y.len());
        let params = Params { span, degree, family: Family::Symmetric, surface };
        if let Ok(curve) = fit(&x[..length], &y[..length], None, params) {
            let _ = curve.predict(&x, 0.95);
        }
    }
}
