# R --version: see the first line of abc.csv. Run: Rscript abc.R > abc.csv  (package boot, which comes with R)
# eps: the step of its derivatives; by its default, 0.001 divided by the values, second differences of many are rounding.
# The interval of a ratio of means by abc.ci, at 90 %: of geometric means where all values are positive, else of arithmetic ones.
library(boot)
cat("#", R.version.string, "boot", as.character(packageVersion("boot")), "\n")
cat("one,two,n,m,paired,low,high\n")
shapes <- list(exponential = function(i, n) exp(4 * i / n), root = function(i, n) sqrt(i),
               zeros = function(i, n) ((7 * i) %% 11) * (i %% 3), steps = function(i, n) 1 + (5 * i) %% 13)
for (one in names(shapes)) for (two in c("root", "steps")) for (size in list(c(20, 20), c(30, 12), c(500, 700))) {
  n <- size[1]; m <- size[2]
  x <- shapes[[one]](1:n, n); y <- shapes[[two]](1:m, m)
  logarithms <- min(x) > 0
  f <- function(a, b) if (logarithms) a - b else a / b
  back <- if (logarithms) exp else identity
  if (logarithms) { x <- log(x); y <- log(y) }
  values <- c(x, y); group <- rep(1:2, size)
  mean_of <- function(w, of) sum(w[group == of] * values[group == of]) / sum(w[group == of])
  found <- abc.ci(values, function(data, w) f(mean_of(w, 1), mean_of(w, 2)), strata = group, conf = 0.9, eps = 1e-4)
  cat(sprintf("%s,%s,%d,%d,0,%.12g,%.12g\n", one, two, n, m, back(found[2]), back(found[3])))
  if (n == m) {
    pairs <- cbind(x, y)
    found <- abc.ci(pairs, function(data, w) f(sum(w * data[, 1]), sum(w * data[, 2])), conf = 0.9, eps = 1e-4)
    cat(sprintf("%s,%s,%d,%d,1,%.12g,%.12g\n", one, two, n, m, back(found[2]), back(found[3])))
  }
}
