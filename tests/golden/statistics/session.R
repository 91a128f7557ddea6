# Expected values of tests/known/test_scale_known.py, by R: Rscript session.R > session.txt (writes expected.csv as well).
# Packages: boot (boot.ci) and car (leveneTest); everything else is base R, or a formula written out here from its paper.
options(digits = 15)
suppressMessages({library(boot); library(car)})
found <- list()
keep <- function(name, value) {
  for (i in seq_along(value)) {
    label <- if (length(value) > 1) paste0(name, "_", i) else name
    found[[label]] <<- as.numeric(value[[i]])
    cat(sprintf("%-42s %.15g\n", label, as.numeric(value[[i]])))
  }
}
cat(R.version.string, " boot", as.character(packageVersion("boot")), " car", as.character(packageVersion("car")), "\n")

a <- c(101.3, 98.7, 104.2, 99.9, 110.5, 95.1, 102.8, 100.4, 97.6, 106.0, 103.3, 99.2)
b <- c(96.2, 92.4, 99.8, 101.7, 88.5, 94.9, 97.3, 90.6, 105.4, 93.1)
tied <- c(1, 2, 2, 3, 3, 3, 4, 5, 5)
tied2 <- c(2, 3, 3, 4, 4, 5, 5, 5, 5, 1)
s <- c(1.1, 0.9, 1.3, 1.0, 1.2, 8.4, 0.8, 1.6, 2.9, 1.0, 1.4, 0.7, 1.9, 5.2, 1.1)
t <- c(0.8, 0.7, 1.0, 0.9, 3.1, 0.6, 0.8, 1.2, 0.9, 0.7, 1.8, 1.0, 0.5, 0.8)

# Ratio: Welch on logarithms, two one-sided tests at 10 %, two-sided test of being outside.
keep("log_90", exp(t.test(log(a), log(b), conf.level = 0.90)$conf.int))
keep("log_95", exp(t.test(log(a), log(b))$conf.int))
edge <- log(1.1)
p <- function(mu, way) t.test(log(a), log(b), mu = mu, alternative = way)$p.value
keep("log_p_equivalent", max(p(-edge, "greater"), p(edge, "less")))
edge <- log(1.02)
keep("log_p_different_of_2_percent", 2 * min(p(edge, "greater"), p(-edge, "less")))

# Difference: Welch, margin 9 in the unit.
keep("difference", mean(a) - mean(b))
keep("difference_90", t.test(a, b, conf.level = 0.90)$conf.int)
keep("difference_95", t.test(a, b)$conf.int)
q <- function(mu, way) t.test(a, b, mu = mu, alternative = way)$p.value
keep("difference_p_equivalent", max(q(-9, "greater"), q(9, "less")))
keep("difference_p_different_of_2", 2 * min(q(2, "greater"), q(-2, "less")))

# Ordinal: Mann-Whitney, Cliff's delta by counting pairs, Newcombe's method 5 by its defining equation.
keep("mann_whitney_exact", wilcox.test(a, b, exact = TRUE)$p.value)
keep("mann_whitney_tied", wilcox.test(tied, tied2, exact = FALSE, correct = TRUE)$p.value)
keep("cliff_a_b", mean(sign(outer(a, b, "-"))))
keep("cliff_tied", mean(sign(outer(tied, tied2, "-"))))
newcombe <- function(x, y, level) {
  theta <- mean(outer(x, y, ">") + 0.5 * outer(x, y, "=="))
  z <- qnorm((1 + level) / 2); m <- length(x); n <- length(y); star <- (m + n) / 2 - 1
  v <- function(u) u * (1 - u) * (1 + star * (1 - u) / (2 - u) + star * u / (1 + u)) / (m * n)
  low <- if (theta == 0) 0 else uniroot(function(u) (theta - u) - z * sqrt(v(u)), c(1e-12, min(theta, 1 - 1e-9)), tol = 1e-14)$root
  high <- if (theta == 1) 1 else uniroot(function(u) (u - theta) - z * sqrt(v(u)), c(max(theta, 1e-9), 1 - 1e-12), tol = 1e-14)$root
  2 * c(low, high) - 1
}
keep("newcombe_95", newcombe(a, b, 0.95))
keep("newcombe_90", newcombe(a, b, 0.90))
keep("newcombe_separate_95", newcombe(c(5, 6, 7, 8), c(1, 2, 3, 4), 0.95))

# Nominal: chi-square; the exact test by listing every table with the same margins; Farrington-Manning's z with the restricted
# estimate by numerical maximisation of the likelihood.
counts <- rbind(c(30, 25, 45), c(22, 40, 38))
keep("total_variation", sum(abs(counts[1, ] / 100 - counts[2, ] / 100)) / 2)
keep("chi_square", chisq.test(counts, correct = FALSE)$p.value)
few <- rbind(c(5, 2, 1), c(1, 2, 6))
statistic <- function(m) { e <- outer(rowSums(m), colSums(m)) / sum(m); sum((m - e)^2 / e) }
weights <- c(); distances <- c()
for (i in 0:colSums(few)[1]) for (j in 0:colSums(few)[2]) {
  k <- rowSums(few)[1] - i - j
  if (k >= 0 && k <= colSums(few)[3]) {
    row <- c(i, j, k)
    weights <- c(weights, prod(choose(colSums(few), row)))
    distances <- c(distances, statistic(rbind(row, colSums(few) - row)))
  }
}
keep("exact", sum(weights[distances >= statistic(few) - 1e-9]) / sum(weights))
set.seed(1)
keep("exact_simulated", chisq.test(few, simulate.p.value = TRUE, B = 2e6)$p.value)
score <- function(x, n, y, m, d) {
  likelihood <- function(q) x * log(q + d) + (n - x) * log(1 - q - d) + y * log(q) + (m - y) * log(1 - q)
  q <- optimize(likelihood, c(max(0, -d) + 1e-12, min(1, 1 - d) - 1e-12), maximum = TRUE, tol = 1e-12)$maximum
  (x / n - y / m - d) / sqrt((q + d) * (1 - q - d) / n + q * (1 - q) / m)
}
keep("score_low", score(30, 100, 22, 90, -0.1))
keep("score_high", score(30, 100, 22, 90, 0.1))

# Quantiles: type 7; ranks of the equal-tailed interval by the binomial distribution.
keep("quantiles_s", quantile(s, c(0.5, 0.9, 0.95, 0.99), type = 7))
for (n in c(10, 30, 100)) keep(sprintf("ranks_50_%d", n), c(qbinom(0.025, n, 0.5), qbinom(0.975, n, 0.5) + 1))
keep("ranks_90_100", c(qbinom(0.025, 100, 0.9), qbinom(0.975, 100, 0.9) + 1))
keep("ranks_95_400", c(qbinom(0.025, 400, 0.95), qbinom(0.975, 400, 0.95) + 1))

# Spread: Brown-Forsythe; Bonett's (2006) statistic of equal variances, from his equations.
group <- factor(rep(c("a", "b"), c(length(a), length(b))))
keep("brown_forsythe", leveneTest(c(log(a), log(b)), group, center = median)[["Pr(>F)"]][1])
group <- factor(rep(c("s", "t"), c(length(s), length(t))))
keep("brown_forsythe_skewed", leveneTest(c(s, t), group, center = median)[["Pr(>F)"]][1])
bonett <- function(x, y, ratio, z) {
  n1 <- length(x); n2 <- length(y); y <- y * ratio
  m1 <- mean(x, trim = 1 / (2 * sqrt(n1 - 4))); m2 <- mean(y, trim = 1 / (2 * sqrt(n2 - 4)))
  k <- (n1 + n2) * (sum((x - m1)^4) + sum((y - m2)^4)) / ((n1 - 1) * var(x) + (n2 - 1) * var(y))^2
  se <- sqrt((k - (n1 - 3) / n1) / (n1 - 1) + (k - (n2 - 3) / n2) / (n2 - 1))
  log((n1 / (n1 - z)) / (n2 / (n2 - z)) * var(x) / var(y)) / se
}
z <- qnorm(0.975)
limits <- function(x, y) {
  start <- log(sd(x) / sd(y))
  c(exp(uniroot(function(u) bonett(x, y, exp(u), z) - z, c(start - 4, start), tol = 1e-13)$root),
    exp(uniroot(function(u) bonett(x, y, exp(u), z) + z, c(start, start + 4), tol = 1e-13)$root))
}
keep("bonett_95", limits(log(s), log(t)))
keep("bonett_p", 2 * pnorm(-abs(bonett(log(s), log(t), 1, z))))

# Order: Kendall's exact test of one cell; two cells together by listing every order; ties by Hirsch's variance; blocks by
# permutation and by F; Bartels.
x <- c(3.1, 2.9, 3.4, 3.3, 3.8, 3.6, 3.7, 4.1)
keep("kendall_exact", cor.test(seq_along(x), x, method = "kendall", exact = TRUE)$p.value)
kendall <- function(v) { d <- outer(v, v, "-"); sum(sign(d[lower.tri(d)])) }
orders <- function(n) if (n == 1) matrix(1, 1, 1) else {
  rest <- orders(n - 1)
  do.call(rbind, lapply(seq_len(n), function(i) cbind(i, matrix(setdiff(seq_len(n), i)[rest], nrow(rest)))))
}
one <- apply(orders(5), 1, kendall); two <- apply(orders(4), 1, kendall)
cells <- list(c(1.0, 1.2, 1.1, 1.5, 1.6), c(7.2, 7.5, 7.4, 7.9))
keep("seasonal_s", kendall(cells[[1]]) + kendall(cells[[2]]))
keep("seasonal_exact", mean(abs(outer(one, two, "+")) >= kendall(cells[[1]]) + kendall(cells[[2]])))
ties <- list(c(1, 2, 2, 3, 3, 3, 4), c(5, 5, 6, 7, 7, 9))
spread <- function(v) { n <- length(v); g <- table(v); (n * (n - 1) * (2 * n + 5) - sum(g * (g - 1) * (2 * g + 5))) / 18 }
total <- sum(sapply(ties, kendall))
keep("seasonal_tied", 2 * pnorm(-(abs(total) - 1) / sqrt(sum(sapply(ties, spread)))))
blocks <- rbind(c(5.1, 5.6, 5.2, 6.1), c(7.7, 8.0, 7.9, 8.8), c(3.0, 3.3, 3.4, 3.3), c(9.1, 9.0, 9.6, 9.9), c(4.4, 4.7, 4.1, 4.9))
scaled <- t(apply(blocks, 1, function(r) (r - mean(r)) / sd(r)))
between <- sum(colSums(scaled)^2) / nrow(scaled)
keep("blocks", between)
keep("blocks_permuted", mean(replicate(200000, sum(colSums(t(apply(scaled, 1, sample)))^2) / nrow(scaled)) >= between - 1e-9))
long <- data.frame(value = c(scaled), row = factor(row(scaled)), block = factor(col(scaled)))
keep("blocks_f", anova(lm(value ~ row + block, long))["block", "Pr(>F)"])
series <- c(0.3, 0.5, 0.2, 0.4, 0.1, -0.2, 0.0, -0.3, -0.5, -0.1, -0.4, -0.6)
r <- rank(series); n <- length(r)
rvn <- sum(diff(r)^2) / sum((r - mean(r))^2)
keep("bartels_ratio", rvn)
keep("bartels_p", 2 * pnorm(-abs(rvn - 2) / sqrt(4 * (n - 2) * (5 * n^2 - 2 * n - 9) / (5 * n * (n + 1) * (n - 1)^2))))
keep("lag_one", acf(series, plot = FALSE)$acf[2])

# BCa of the ratio of geometric means, 90 %, 200,000 resamples.
set.seed(2)
data <- data.frame(value = log(c(s, t)), group = rep(1:2, c(length(s), length(t))))
ratio <- function(d, i) { d <- d[i, ]; mean(d$value[d$group == 1]) - mean(d$value[d$group == 2]) }
drawn <- boot(data, ratio, R = 200000, strata = data$group)
keep("bca_90", exp(boot.ci(drawn, conf = 0.90, type = "bca")$bca[4:5]))

# Fairness: Jain's index; interval of ln C^2 by Bonett's variance of ln s^2 with the delta method's terms for the mean.
flows <- c(943, 940, 912, 951, 870, 938, 925, 944, 903, 949)
jain <- function(x) sum(x)^2 / (length(x) * sum(x^2))
keep("jain", jain(flows))
n <- length(flows); u <- flows / mean(flows); c2 <- var(u)
k <- n * sum((u - mean(u, trim = 1 / (2 * sqrt(n - 4))))^4) / ((n - 1) * c2)^2
g <- mean((u - 1)^3) / c2^1.5
wide <- n / (n - z) * z * sqrt((k - (n - 3) / n) / (n - 1) + 4 * c2 / n - 4 * g * sqrt(c2) / n)
keep("jain_95", 1 / (1 + n / (n - z) * c2 * exp(c(wide, -wide))))

write.csv(data.frame(name = names(found), value = sprintf("%.15g", unlist(found))), "expected.csv", row.names = FALSE, quote = FALSE)
