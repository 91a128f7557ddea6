# Expected values of tests/known/test_anova_known.py, by R. From this folder: Rscript session.R > session.txt 2>&1
# Makes the data (but loss.csv, which is the printed table of Drescher's study), and expected.csv: data, what, of, name, value.
suppressMessages(library(car))
options(digits = 12, contrasts = c("contr.sum", "contr.poly"), width = 120)
cat(R.version.string, "; car", as.character(packageVersion("car")), "\n")
rows <- list()
keep <- function(data, what, of, name, value) {
  rows[[length(rows) + 1]] <<- data.frame(data, what, of, name, value = sprintf("%.15g", as.numeric(value)))
}
table_of <- function(data, what, found) {
  for (term in rownames(found)) for (column in colnames(found))
    if (!is.na(found[term, column])) keep(data, what, trimws(term), column, found[term, column])
  cat("\n", data, what, "\n"); print(found)
}
test_of <- function(data, what, found) {
  keep(data, what, "", "statistic", found$statistic); keep(data, what, "", "p", found$p.value)
  for (name in names(found$parameter)) keep(data, what, "", name, found$parameter[[name]])
  cat("\n", data, what, "\n"); print(found)
}
assumptions <- function(data, model, cells, y) {
  levene <- leveneTest(y, cells, center = median)
  keep(data, "levene", "", "statistic", levene[1, "F value"]); keep(data, "levene", "", "p", levene[1, "Pr(>F)"])
  print(levene)
  if (all(tapply(y, cells, var) > 0)) test_of(data, "bartlett", bartlett.test(y, cells))
  test_of(data, "shapiro", shapiro.test(residuals(model)))
}
one_way <- function(data, y, group) {
  model <- aov(y ~ group)
  table_of(data, "I", as.data.frame(summary(model)[[1]]))
  assumptions(data, model, group, y)
  test_of(data, "kruskal", kruskal.test(y, group))
  if (all(tapply(y, group, var) > 0)) test_of(data, "welch", oneway.test(y ~ group))
  tukey <- TukeyHSD(model)$group
  table_of(data, "tukey", tukey)
  # Games & Howell (1976), by R's ptukey and qtukey.
  m <- tapply(y, group, mean); v <- tapply(y, group, var) / table(group); d <- table(group) - 1; k <- length(m)
  if (all(v > 0)) for (i in 1:(k - 1)) for (j in (i + 1):k) {
    s <- sqrt((v[i] + v[j]) / 2); f <- (v[i] + v[j])^2 / (v[i]^2 / d[i] + v[j]^2 / d[j]); b <- m[j] - m[i]
    of <- paste(names(m)[j], names(m)[i], sep = "-")
    for (each in list(c("diff", b), c("lwr", b - qtukey(0.95, k, f) * s), c("upr", b + qtukey(0.95, k, f) * s),
                      c("p adj", ptukey(abs(b) / s, k, f, lower.tail = FALSE)))) keep(data, "games-howell", of, each[1], each[2])
  }
  # Neighbours: plain t, and Bonferroni and Sidak over them, of the pooled variance.
  s2 <- deviance(model) / df.residual(model); n <- table(group)
  for (i in 2:k) {
    of <- paste(names(m)[i], names(m)[i - 1], sep = "-"); s <- sqrt(s2 * (1 / n[i] + 1 / n[i - 1])); b <- m[i] - m[i - 1]
    p <- 2 * pt(-abs(b / s), df.residual(model))
    for (each in list(c("t", 0.05), c("bonferroni", 0.05 / (k - 1)), c("sidak", 1 - 0.95^(1 / (k - 1))))) {
      half <- qt(1 - as.numeric(each[2]) / 2, df.residual(model)) * s
      keep(data, each[1], of, "lwr", b - half); keep(data, each[1], of, "upr", b + half)
    }
    keep(data, "t", of, "p", p); keep(data, "bonferroni", of, "p", min(1, (k - 1) * p))
    keep(data, "sidak", of, "p", 1 - (1 - p)^(k - 1))
  }
}
several <- function(data, formula, frame) {
  model <- lm(formula, frame)
  table_of(data, "I", anova(model)); table_of(data, "II", Anova(model, type = 2)); table_of(data, "III", Anova(model, type = 3))
  for (type in 2:3) table_of(data, paste0("robust ", c("", "II", "III")[type]), as.data.frame(suppressMessages(Anova(model, type = type, white.adjust = "hc3"))))
  factors <- all.vars(formula)[-1]
  assumptions(data, model, interaction(frame[factors]), frame[[all.vars(formula)[1]]])
  # Means of a factor over all cells of the others, each cell alike, with their standard errors and differences of levels.
  grid <- do.call(expand.grid, lapply(frame[factors], function(x) factor(levels(x), levels(x))))
  X <- model.matrix(delete.response(terms(model)), grid)
  for (f in factors) {
    L <- sapply(levels(frame[[f]]), function(l) colMeans(X[grid[[f]] == l, , drop = FALSE]))
    m <- drop(coef(model) %*% L)
    for (l in colnames(L)) { keep(data, "mean", paste0(f, ":", l), "estimate", m[l]); keep(data, "mean", paste0(f, ":", l), "se", sqrt(t(L[, l]) %*% vcov(model) %*% L[, l])) }
    k <- ncol(L)
    for (i in 1:(k - 1)) for (j in (i + 1):k) {
      c <- L[, j] - L[, i]; s <- sqrt(drop(t(c) %*% vcov(model) %*% c)); b <- drop(c %*% coef(model)); df <- df.residual(model)
      of <- paste0(f, ":", colnames(L)[j], "-", colnames(L)[i]); half <- qtukey(0.95, k, df) / sqrt(2) * s
      keep(data, "tukey", of, "diff", b); keep(data, "tukey", of, "lwr", b - half); keep(data, "tukey", of, "upr", b + half)
      keep(data, "tukey", of, "p adj", ptukey(abs(b) / s * sqrt(2), k, df, lower.tail = FALSE))
    }
  }
}

loss <- read.csv("loss.csv")
one_way("loss", loss$loss, factor(loss$receivers))

set.seed(20190221)
spread <- data.frame(testbed = rep(c("a", "b", "c", "d"), c(7, 9, 5, 12)))
spread$rate <- round(c(a = 100, b = 104, c = 118, d = 103)[spread$testbed] + c(a = 1, b = 4, c = 15, d = 2)[spread$testbed] * rnorm(nrow(spread)), 3)
write.csv(spread, "spread.csv", row.names = FALSE, quote = FALSE)
one_way("spread", spread$rate, factor(spread$testbed))

two <- expand.grid(replicate = 1:6, payload = c("500B", "1MiB", "16MiB"), testbed = c("container", "e1000", "virtio", "physical"))
two <- two[runif(nrow(two)) < 0.7 | two$replicate <= 2, ]
two$rate <- round(50 + 3 * as.integer(two$testbed) - 4 * as.integer(two$payload) + 1.5 * (two$testbed == "e1000") * as.integer(two$payload) + 2 * rnorm(nrow(two)), 3)
write.csv(two, "two_factors.csv", row.names = FALSE, quote = FALSE)
two$testbed <- factor(two$testbed); two$payload <- factor(two$payload, c("500B", "1MiB", "16MiB"))
print(xtabs(~ testbed + payload, two))
several("two_factors", rate ~ testbed * payload, two)

three <- expand.grid(replicate = 1:4, nic = c("e1000", "virtio"), payload = c("500B", "1MiB", "16MiB"), offload = c("off", "on"))
three <- three[runif(nrow(three)) < 0.75 | three$replicate == 1, ]
three$rate <- round(20 + 2 * (three$nic == "virtio") - as.integer(three$payload) * (1 + (three$offload == "on")) + rnorm(nrow(three)), 4)
write.csv(three, "three_factors.csv", row.names = FALSE, quote = FALSE)
three$nic <- factor(three$nic); three$offload <- factor(three$offload); three$payload <- factor(three$payload, c("500B", "1MiB", "16MiB"))
several("three_factors", rate ~ nic * payload * offload, three)
several("three_factors_main", rate ~ nic + payload + offload, three)

signs <- expand.grid(replicate = 1:3, a = c("low", "high"), b = c("low", "high"), c = c("low", "high"))
sign_of <- function(x) ifelse(x == "high", 1, -1)
signs$y <- round(40 + 5 * sign_of(signs$a) - 2 * sign_of(signs$b) + sign_of(signs$a) * sign_of(signs$c) + rnorm(nrow(signs)), 3)
write.csv(signs, "signs.csv", row.names = FALSE, quote = FALSE)
model <- lm(y ~ A * B * C, data.frame(y = signs$y, A = sign_of(signs$a), B = sign_of(signs$b), C = sign_of(signs$c)))
table_of("signs", "effects", cbind(summary(model)$coefficients, confint(model)))
table_of("signs", "I", anova(model))
print(sessionInfo())
write.csv(do.call(rbind, rows), "expected.csv", row.names = FALSE)
