# R --version: see the first line of shapiro.csv. Run: Rscript shapiro.R > shapiro.csv
# Each branch of the algorithm: n = 3; one corrected weight (4, 5); two (from 6); p by n (to 11) and by ln n (from 12).
cat("#", R.version.string, "\n")
cat("shape,n,w,p\n")
shapes <- list(square = function(i, n) i^2, root = function(i, n) sqrt(i), log = function(i, n) log(i),
               sine = function(i, n) sin(i), modulo = function(i, n) (7 * i) %% 11 + i / n, far = function(i, n) 1e6 + cos(3 * i))
for (shape in names(shapes)) for (n in c(3, 4, 5, 6, 7, 10, 11, 12, 13, 30, 51, 500, 5000)) {
  found <- shapiro.test(shapes[[shape]](1:n, n))
  cat(sprintf("%s,%d,%.15g,%.15g\n", shape, n, found$statistic, found$p.value))
}
