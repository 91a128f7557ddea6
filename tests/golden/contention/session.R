# Rscript session.R: writes the csv files beside it.  R 4.2.2; pROC of Debian 12; data are drawn here or are R's own.
suppressMessages(library(pROC))
set.seed(1964)
text <- function(v) paste(sprintf("%.17g", v), collapse = " ")
write_rows <- function(rows, file) write.csv(do.call(rbind, rows), file, row.names = FALSE, quote = FALSE)

# Monotone regression: isoreg has no weights, so a weight is that many copies of a value.
rows <- list()
for (case in 1:12) {
  n <- sample(3:20, 1); y <- round(cumsum(rnorm(n, 0.2)), 3); w <- sample(1:4, n, TRUE)
  if (case > 10) y <- round(y)
  plain <- isoreg(y)$yf
  weighted <- isoreg(rep(seq_len(n), w), rep(y, w))$yf[cumsum(w)]
  falling <- -isoreg(-y)$yf
  rows[[case]] <- data.frame(y = text(y), w = text(w), plain = text(plain), weighted = text(weighted), falling = text(falling))
}
write_rows(rows, "isotonic.csv")

rows <- list()
for (case in 1:6) {
  p <- round(c(runif(5 * case), rbeta(4, 1, 40)), 4)
  if (case == 1) p <- c(p, p[1:2])
  rows[[case]] <- data.frame(p = text(p), bh = text(p.adjust(p, "BH")), holm = text(p.adjust(p, "holm")))
}
write_rows(rows, "adjusted.csv")

rows <- list(); case <- 0
for (n in c(4, 6, 8, 12, 30, 49, 80)) for (ties in c(FALSE, TRUE)) {
  x <- rnorm(n); y <- x / 2 + rnorm(n)
  if (ties) { x <- round(x * 1.5); y <- round(y * 1.5) } else { x <- round(x, 6); y <- round(y, 6) }
  if (length(unique(x)) < 2 || length(unique(y)) < 2) next
  rho <- suppressWarnings(cor.test(x, y, method = "spearman"))
  # Spearman: exact without ties up to 9 pairs; beyond, and with ties, Student's t by exact = FALSE.
  asymptotic <- suppressWarnings(cor.test(x, y, method = "spearman", exact = FALSE))
  tau <- suppressWarnings(cor.test(x, y, method = "kendall"))
  case <- case + 1
  rows[[case]] <- data.frame(n, ties = as.integer(ties), x = text(x), y = text(y), rho = text(rho$estimate), p_rho = text(rho$p.value),
    p_rho_t = text(asymptotic$p.value), tau = text(tau$estimate), p_tau = text(tau$p.value))
}
write_rows(rows, "correlation.csv")

rows <- list()
for (case in 1:6) {
  high <- round(rnorm(5 + 7 * case, 1), if (case %% 2) 1 else 6); low <- round(rnorm(40 - 5 * case), if (case %% 2) 1 else 6)
  of <- roc(controls = low, cases = high, direction = "<", quiet = TRUE)
  # The interval on the logit, from pROC's area and DeLong variance.
  a <- as.numeric(auc(of)); se <- sqrt(var(of, method = "delong")); half <- qnorm(0.975) * se / (a * (1 - a))
  rows[[case]] <- data.frame(high = text(high), low = text(low), area = text(a), error = text(se),
    lower = text(plogis(qlogis(a) - half)), upper = text(plogis(qlogis(a) + half)))
}
write_rows(rows, "roc.csv")

# Logistic regression of R's infert; the ridge by optim on the penalised likelihood, none by glm.
d <- infert[, c("age", "parity", "induced", "spontaneous")]
write.csv(cbind(d, case = infert$case), "infert.csv", row.names = FALSE)
z <- scale(as.matrix(d)); y <- infert$case
plain <- coef(glm(y ~ z, family = binomial, control = list(epsilon = 1e-14)))
loss <- function(b) { e <- b[1] + z %*% b[-1]; sum(log1p(exp(e)) - y * e) + 5 * sum(b[-1]^2) / 2 }
slope <- function(b) { e <- b[1] + z %*% b[-1]; r <- plogis(e) - y; c(sum(r), t(z) %*% r + 5 * b[-1]) }
ridge <- optim(plain, loss, slope, method = "BFGS", control = list(reltol = 1e-16, maxit = 1000))$par
write_rows(list(data.frame(ridge = 0, coefficients = text(plain)), data.frame(ridge = 5, coefficients = text(ridge))), "logistic.csv")
