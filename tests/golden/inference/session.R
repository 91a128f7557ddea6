# Expected values of tests/known/test_inference_known.py, by R. From this folder: Rscript session.R > session.txt 2>&1
# Debian: r-base-core r-cran-nlme r-cran-lme4 r-cran-lmertest r-cran-hmisc r-cran-coda. Makes blocks.csv, times.csv, series.csv
# (the data) and expected.csv: what, name, value.
suppressMessages({library(nlme); library(lme4); library(lmerTest); library(Hmisc); library(coda)})
options(digits = 12, width = 120)
for (name in c("nlme", "lme4", "lmerTest", "Hmisc", "coda"))
  cat(name, as.character(packageVersion(name)), "\n")
cat(R.version.string, "\n")
rows <- list()
keep <- function(what, name, value) {
  rows[[length(rows) + 1]] <<- data.frame(what, name, value = sprintf("%.15g", as.numeric(value)))
}
set.seed(20261)

# Two testbeds in 3 cells and 6 blocks: rates, whose logarithms share the state of their block.
blocks <- expand.grid(testbed = c("real", "virtual"), cell = c("500B", "1MiB", "16MiB"), block = 0:5)
shift <- rnorm(6, 0, 0.3)
middle <- c("500B" = 7, "1MiB" = 5, "16MiB" = 2)
effect <- c("500B" = -0.4, "1MiB" = -0.1, "16MiB" = 0.05)
blocks$rate <- exp(middle[as.character(blocks$cell)] + shift[blocks$block + 1] + rnorm(36, 0, 0.08) +
  ifelse(blocks$testbed == "virtual", effect[as.character(blocks$cell)], 0))
blocks$rate <- signif(blocks$rate, 6)
write.csv(blocks, "blocks.csv", row.names = FALSE, quote = FALSE)
for (cell in levels(blocks$cell)) {
  own <- blocks[blocks$cell == cell, ]
  one <- log(own$rate[own$testbed == "virtual"]); two <- log(own$rate[own$testbed == "real"])
  for (level in c(0.90, 0.95)) {
    pairs <- t.test(one, two, paired = TRUE, conf.level = level)
    keep(paste0("paired-", cell), paste0("low", 100 * level), exp(pairs$conf.int[1]))
    keep(paste0("paired-", cell), paste0("high", 100 * level), exp(pairs$conf.int[2]))
    welch <- t.test(one, two, conf.level = level)
    keep(paste0("welch-", cell), paste0("low", 100 * level), exp(welch$conf.int[1]))
    keep(paste0("welch-", cell), paste0("high", 100 * level), exp(welch$conf.int[2]))
  }
  # The mixed model with a random intercept for each block is the paired test, where the blocks are complete.
  mixed <- lme(log(rate) ~ testbed, random = ~ 1 | block, data = own)
  keep(paste0("lme-", cell), "effect", fixef(mixed)[[2]])
  keep(paste0("lme-", cell), "error", summary(mixed)$tTable[2, "Std.Error"])
  keep(paste0("lme-", cell), "df", summary(mixed)$tTable[2, "DF"])
  cat("\n", cell, "\n"); print(summary(mixed)$tTable)
}
# One ratio over all cells: the testbed's effect beside that of cells, blocks, and blocks' own testbeds (its error is between
# blocks, since a block's testbed may have a state of its own), by lme4 with Satterthwaite's degrees of freedom.
pooled <- lmer(log(rate) ~ testbed + cell + (1 | block) + (1 | block:testbed), data = blocks)
cat("\npooled\n"); print(summary(pooled))
keep("lmer-pooled", "effect", fixef(pooled)[["testbedvirtual"]])
# The same by the mean differences of blocks.
differences <- with(blocks, tapply(ifelse(testbed == "virtual", 1, -1) * log(rate), block, sum)) / 3
of_blocks <- t.test(differences, conf.level = 0.90)
keep("pooled-blocks", "low90", exp(of_blocks$conf.int[1])); keep("pooled-blocks", "high90", exp(of_blocks$conf.int[2]))
keep("pooled-blocks", "ratio", exp(mean(differences)))

# Counts of rare events.
for (case in list(c(3, 10, 12, 10), c(0, 5, 7, 5), c(2, 4000, 9, 6000), c(5, 20, 0, 20))) {
  name <- paste(case, collapse = " ")
  for (level in c(0.90, 0.95)) {
    test <- poisson.test(case[c(1, 3)], case[c(2, 4)], conf.level = level)
    keep(paste0("poisson-", name), paste0("low", 100 * level), test$conf.int[1])
    keep(paste0("poisson-", name), paste0("high", 100 * level), test$conf.int[2])
  }
}
for (n in c(3, 5, 10, 20)) keep(paste0("none of ", n), "high", binom.test(0, n, alternative = "less")$conf.int[2])

# Quantiles of single requests.
times <- signif(c(rlnorm(2000, -6, 0.7), rnorm(40, 0.2, 0.004)), 6)
write.csv(data.frame(seconds = times), "times.csv", row.names = FALSE, quote = FALSE)
shares <- c(0.1, 0.25, 0.5, 0.9, 0.99)
for (at in seq_along(shares)) keep("hdquantile", shares[at], hdquantile(times, shares)[[at]])

# The error of the mean of a series whose neighbours resemble each other.
series <- sapply(c(0, 0.6, 0.9), function(r) as.numeric(arima.sim(list(ar = if (r) r else numeric(0)), 100)) + 50)
series <- signif(series, 8)
write.csv(data.frame(none = series[, 1], some = series[, 2], much = series[, 3]), "series.csv", row.names = FALSE, quote = FALSE)
for (at in 1:3) {
  found <- spectrum0.ar(mcmc(series[, at]))
  keep(paste0("spectrum0.ar-", c("none", "some", "much")[at]), "error", sqrt(found$spec / 100))
  keep(paste0("spectrum0.ar-", c("none", "some", "much")[at]), "order", found$order)
}
expected <- do.call(rbind, rows)
write.csv(expected, "expected.csv", row.names = FALSE, quote = FALSE)
