# Power of Welch's test on a difference of means of logarithms, held against [-log(1+m), log(1+m)].
# R's own integrate() over both sample variances' chi-square densities (adaptive quadrature on the densities, not on quantiles).
# Rscript welch.R > welch.tsv
study <- function(n1, n2, s1, s2) function(kernel) {
  outer <- function(v1) sapply(v1, function(a) {
    inner <- function(v2) sapply(v2, function(b) {
      e1 <- s1^2 * a / (n1 - 1) / n1; e2 <- s2^2 * b / (n2 - 1) / n2
      df <- (e1 + e2)^2 / (e1^2 / (n1 - 1) + e2^2 / (n2 - 1))
      kernel(sqrt(e1 + e2), df) * dchisq(b, n2 - 1)
    })
    integrate(inner, 0, qchisq(1 - 1e-12, n2 - 1), rel.tol = 1e-6, abs.tol = 1e-9, subdivisions = 2000)$value * dchisq(a, n1 - 1)
  })
  integrate(outer, 0, qchisq(1 - 1e-12, n1 - 1), rel.tol = 1e-6, abs.tol = 1e-9, subdivisions = 2000)$value
}
equivalent <- function(delta, s1, s2, n1, n2, margin, alpha) {
  edge <- log(1 + margin); sd <- sqrt(s1^2 / n1 + s2^2 / n2)
  study(n1, n2, s1, s2)(function(se, df) {
    room <- edge - qt(1 - alpha, df) * se
    if (room <= 0) 0 else pnorm((room - delta) / sd) - pnorm((-room - delta) / sd)
  })
}
different <- function(delta, s1, s2, n1, n2, margin, alpha) {
  edge <- log(1 + margin); sd <- sqrt(s1^2 / n1 + s2^2 / n2)
  study(n1, n2, s1, s2)(function(se, df) {
    bound <- edge + qt(1 - alpha / 2, df) * se
    pnorm((delta - bound) / sd) + pnorm((-delta - bound) / sd)
  })
}
cases <- rbind(
  c(1.00, 0.05, 0.05, 5, 5), c(1.00, 0.02, 0.10, 5, 5), c(1.05, 0.05, 0.03, 10, 10), c(1.03, 0.04, 0.08, 12, 7),
  c(1.10, 0.05, 0.05, 8, 8), c(1.20, 0.05, 0.05, 5, 5), c(1.25, 0.02, 0.10, 6, 9), c(0.80, 0.10, 0.10, 10, 10),
  c(1.00, 0.03, 0.03, 3, 3), c(1.50, 0.30, 0.10, 30, 30))
cat("# ", R.version.string, "\n", sep = "")
cat("ratio\tsd\treference_sd\tn\treference_n\tequivalent\tdifferent\n")
for (i in seq_len(nrow(cases))) {
  x <- cases[i, ]
  cat(sprintf("%g\t%g\t%g\t%d\t%d\t%.7f\t%.7f\n", x[1], x[2], x[3], as.integer(x[4]), as.integer(x[5]),
    equivalent(log(x[1]), x[2], x[3], x[4], x[5], 0.1, 0.05), different(log(x[1]), x[2], x[3], x[4], x[5], 0.1, 0.05)))
}
