# Known answers for `analyse regression`. Run in this folder:
#   Rscript data.R && R --no-save --quiet < session.R > session.Rout
# It needs Debian's r-base-core, r-cran-car, r-cran-mass, r-cran-lmtest, r-cran-sandwich, r-cran-nlme, r-cran-lme4.
suppressMessages({library(MASS); library(car); library(lmtest); library(sandwich); library(nlme); library(lme4)})
data <- read.csv("study.csv", stringsAsFactors = TRUE)
data$nic <- relevel(data$nic, "e1000")
expected <- list()
keep <- function(what, values, names = base::names(values)) {
  if (is.null(names)) names <- seq_along(values)
  expected[[length(expected) + 1]] <<- data.frame(what, name = as.character(names), value = sprintf("%.17g", as.numeric(values)))
  print(setNames(as.numeric(values), names), digits = 12)
}

## lm
right <- ~ pairs1 + I(pairs1^2) + nic + cluster + gre + load + pairs1:nic + pairs1:gre
data$pairs1 <- data$pairs - 1
fit <- lm(update(right, log(rate) ~ .), data)
summary(fit)
table <- coef(summary(fit))
keep("lm.estimate", table[, 1]); keep("lm.error", table[, 2]); keep("lm.t", table[, 3]); keep("lm.p", table[, 4])
keep("lm.low", confint(fit)[, 1]); keep("lm.high", confint(fit)[, 2])
keep("lm", with(summary(fit), c(sigma = sigma, r2 = r.squared, adjusted = adj.r.squared, F = fstatistic[[1]],
  F_df = fstatistic[[2]], F_p = pf(fstatistic[[1]], fstatistic[[2]], fstatistic[[3]], lower.tail = FALSE))))
X <- model.matrix(fit)
keep("kappa", kappa(sweep(X, 2, sqrt(colSums(X^2)), "/"), exact = TRUE), "kappa")

## car::vif, before interactions and the square
first <- lm(log(rate) ~ pairs1 + nic + cluster + gre + load, data)
found <- vif(first)
found
keep("gvif", found[, 1]); keep("gvif.scaled", found[, 3])

## MASS::boxcox, with the covariates
response <- lm(update(right, rate ~ .), data, y = TRUE, qr = TRUE)
profile <- function(lambda) sapply(lambda, function(each) boxcox(response, lambda = each, plotit = FALSE)$y)
grid <- c(-2, -1, -0.5, 0, 0.5, 1, 2)
keep("boxcox.profile", profile(grid) - profile(1), grid)
best <- optimize(profile, c(-3, 3), maximum = TRUE, tol = 1e-10)
level <- best$objective - qchisq(0.95, 1) / 2
keep("boxcox", c(best = best$maximum, low = uniroot(function(l) profile(l) - level, c(-3, best$maximum), tol = 1e-9)$root,
  high = uniroot(function(l) profile(l) - level, c(best$maximum, 3), tol = 1e-9)$root))

## lmtest::bptest: Koenker's form of Breusch-Pagan; White's test is the same on squares and products
found <- bptest(fit); found
keep("breusch-pagan", c(found$statistic, found$parameter, found$p.value), c("statistic", "df", "p"))
Z <- X[, -1]
products <- do.call(cbind, lapply(1:ncol(Z), function(i) Z[, i] * Z[, i:ncol(Z)]))
aux <- lm(residuals(fit)^2 ~ Z + products)
statistic <- nobs(fit) * summary(aux)$r.squared
keep("white", c(statistic = statistic, df = aux$rank - 1, p = pchisq(statistic, aux$rank - 1, lower.tail = FALSE)))

## sandwich
keep("hc3", sqrt(diag(vcovHC(fit, type = "HC3"))))
keep("clustered", sqrt(diag(vcovCL(fit, cluster = ~ block, type = "HC1"))))

## influence
rows <- c(1, 33, 100, 170, 252)
keep("leverage", hatvalues(fit)[rows]); keep("standardised", rstandard(fit)[rows]); keep("studentised", rstudent(fit)[rows])
keep("cook", cooks.distance(fit)[rows]); keep("dffits", dffits(fit)[rows])
found <- outlierTest(fit, cutoff = Inf, n.max = 1); found
keep("outlier", c(row = as.numeric(names(found$rstudent)), p = unname(found$bonf.p)))
keep("influential", c(count = sum(apply(influence.measures(fit)$is.inf[, c("dffit", "cook.d", "hat")], 1, any))))
found <- shapiro.test(residuals(fit)); found
keep("shapiro", c(W = found$statistic[[1]], p = found$p.value))

## MASS::rlm
huber <- rlm(formula(fit), data, acc = 1e-13, maxit = 1000)
table <- coef(summary(huber)); table
keep("huber.estimate", table[, 1]); keep("huber.error", table[, 2]); keep("huber", c(scale = huber$s))
tukey <- rlm(formula(fit), data, psi = psi.bisquare, init = coef(huber), acc = 1e-13, maxit = 1000)
table <- coef(summary(tukey)); table
keep("tukey.estimate", table[, 1]); keep("tukey.error", table[, 2]); keep("tukey", c(scale = tukey$s))

## nlme::lme and lme4::lmer
mixed <- lme(formula(fit), data, random = ~ 1 | block, control = lmeControl(tolerance = 1e-12, msTol = 1e-14))
summary(mixed)
table <- summary(mixed)$tTable
keep("lme.estimate", table[, 1]); keep("lme.error", table[, 2]); keep("lme.df", table[, 3]); keep("lme.p", table[, 5])
variances <- as.numeric(VarCorr(mixed)[, 1])
keep("lme", c(group = variances[1], residual = variances[2], icc = variances[1] / sum(variances), likelihood = as.numeric(logLik(mixed))))
plain <- gls(formula(fit), data)
ratio <- as.numeric(2 * (logLik(mixed) - logLik(plain)))
keep("lme.ratio", c(statistic = ratio, p = pchisq(ratio, 1, lower.tail = FALSE) / 2))
other <- lmer(update(right, log(rate) ~ . + (1 | block)), data, control = lmerControl(optCtrl = list(xtol_abs = 1e-12, ftol_abs = 1e-14)))
keep("lmer.estimate", fixef(other)); keep("lmer.error", sqrt(diag(as.matrix(vcov(other)))))
keep("lmer", c(group = as.numeric(VarCorr(other)$block), residual = sigma(other)^2))
# A column that is constant within blocks, for the degrees of freedom between them.
data$rack <- factor(ifelse(data$block %in% c("b1", "b2", "b3"), "one", "two"))
between <- lme(log(rate) ~ pairs1 + rack, data, random = ~ 1 | block)
keep("between.df", summary(between)$tTable[, 3]); keep("between.p", summary(between)$tTable[, 5])

## Percent effects at 40 pairs: the model with the pairs centred there says them as its own coefficients
at40 <- lm(log(rate) ~ I(pairs - 40) + I((pairs - 40)^2) + nic + cluster + gre + load + I(pairs - 40):nic + I(pairs - 40):gre, data)
interval <- confint(at40)
for (level in c("virtio", "container")) {
  name <- paste0("nic", level)
  keep(paste0("percent.", level), exp(c(estimate = coef(at40)[[name]], low = interval[name, 1], high = interval[name, 2])) - 1)
}

## Coding: which columns R makes of a formula
codings <- list(rate ~ 0 + nic:gre, rate ~ 0 + nic:gre + load, rate ~ 0 + nic, rate ~ nic + nic:pairs, rate ~ (nic + gre + pairs)^2 - gre:pairs, rate ~ pairs:nic - 1,
  rate ~ nic * gre * pairs, rate ~ gre + gre:nic:pairs, rate ~ 0 + gre + nic)
for (each in codings) {
  found <- lm(each, data)
  keep(paste0("coding ", deparse(each)), coef(found))
}
write.csv(do.call(rbind, expected), "expected.csv", row.names = FALSE)
sessionInfo()$R.version$version.string
sapply(c("MASS", "car", "lmtest", "sandwich", "nlme", "lme4"), function(name) as.character(packageVersion(name)))
