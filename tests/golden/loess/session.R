# Rscript session.R: writes data.csv, cases.csv and expected.csv.  R 4.2.2, package stats.
set.seed(19790903)
write_numbers <- function(frame, file, digits = 17) {
  numeric <- vapply(frame, is.numeric, TRUE)
  frame[numeric] <- lapply(frame[numeric], function(v) ifelse(is.na(v), "", sprintf(paste0("%.", digits, "g"), v)))
  write.csv(frame, file, row.names = FALSE, quote = FALSE)
}

round17 <- function(v) as.numeric(sprintf("%.17g", v))
pairs <- rep(c(1, 2, 4, 8, 16, 40, 80), each = 10)
x_even <- round17(sort(runif(300, 0, 10)))
x_tied <- sample(1:30, 250, TRUE)
outliers <- round17(sin(x_even) + rnorm(300) / 4)
outliers[c(7, 60, 61, 200, 299)] <- outliers[c(7, 60, 61, 200, 299)] + c(9, -12, 7, 15, -8)
sets <- list(
  cars = data.frame(x = cars$speed, y = cars$dist, w = 1),
  pairs = data.frame(x = pairs, y = round17(1000 / (1 + (pairs / 20)^2) * exp(rnorm(70, 0, 0.05))), w = 1),
  outliers = data.frame(x = x_even, y = outliers, w = round17(runif(300, 0.5, 2))),
  tied = data.frame(x = x_tied, y = round17(sqrt(x_tied) + rnorm(250) / 5), w = 1),
  # Three x only: a parabola has no more points than coefficients, and at a small span fewer.
  three = data.frame(x = rep(c(1, 2, 3), each = 8), y = round17(rnorm(24, rep(c(1, 4, 2), each = 8))), w = 1)
)
# Unordered, so that the order of observations is tested.
sets$outliers <- sets$outliers[sample(300), ]
data <- do.call(rbind, lapply(names(sets), function(name) cbind(set = name, sets[[name]])))
write_numbers(data, "data.csv")

cases <- list(); expected <- list()
add <- function(set, span, degree, family, surface, weighted) {
  d <- sets[[set]]
  control <- loess.control(surface = surface, statistics = "exact")
  d$weight_of <- if (weighted) d$w else 1
  fitted_model <- suppressWarnings(loess(y ~ x, d, weights = weight_of, span = span, degree = degree, family = family, control = control))
  reach <- range(d$x)
  at <- round17(c(seq(reach[1], reach[2], length.out = 9), reach[1] + diff(reach) * c(0.013, 0.4142, 0.987), reach[2] + diff(reach) / 20))
  new <- data.frame(x = at)
  # The curve without se: with it R multiplies prior weights in twice where both they and a symmetric family are asked for.
  curve <- suppressWarnings(predict(fitted_model, new))
  with_errors <- suppressWarnings(predict(fitted_model, new, se = TRUE))
  case <- length(cases) + 1
  cases[[case]] <<- data.frame(case, set, span, degree, family, surface, weighted = as.integer(weighted),
    parameters = fitted_model$enp, trace = fitted_model$trace.hat, delta_one = fitted_model$one.delta,
    delta_two = fitted_model$two.delta, scale = fitted_model$s, df = with_errors$df)
  # Of a symmetric family the theory is that of pseudovalues smoothed with the prior weights alone. R's interpolating surface
  # keeps to it; its direct one takes the last robustness weights. So there the errors are the Gaussian fit's, at the symmetric scale.
  if (family == "symmetric" && surface == "direct") {
    plain <- suppressWarnings(predict(update(fitted_model, family = "gaussian"), new, se = TRUE))
    with_errors$se.fit <- plain$se.fit / plain$residual.scale * fitted_model$s
  }
  half <- qt(0.975, with_errors$df) * with_errors$se.fit
  expected[[case]] <<- rbind(
    data.frame(case, at, fit = curve, standard_error = with_errors$se.fit, low = curve - half, high = curve + half),
    # Every fifth fitted value, in the order of the data.
    data.frame(case, at = d$x, fit = fitted(fitted_model), standard_error = NA, low = NA, high = NA)[seq(1, nrow(d), 5), ])
}
for (surface in c("direct", "interpolate")) {
  for (family in c("gaussian", "symmetric")) {
    for (degree in 1:2) {
      for (span in c(0.5, 0.75, 1.3)) add("cars", span, degree, family, surface, FALSE)
      for (span in c(0.3, 0.75)) add("pairs", span, degree, family, surface, FALSE)
      for (span in c(0.1, 0.4)) add("outliers", span, degree, family, surface, FALSE)
      add("outliers", 0.25, degree, family, surface, TRUE)
      add("tied", 0.2, degree, family, surface, FALSE)
      add("tied", 0.9, degree, family, surface, FALSE)
    }
    add("outliers", 0.4, 0, family, surface, TRUE)
    add("three", 0.9, 2, family, surface, FALSE)
    add("three", 0.5, 2, family, surface, FALSE)
  }
}
write_numbers(do.call(rbind, cases), "cases.csv")
write_numbers(do.call(rbind, expected), "expected.csv", 15)
writeLines(R.version.string)
