# One-sided levels of each look under alpha spending of Pocock's type (Lan and DeMets 1983), by the package rpact.
# Rscript pocock.R > pocock.tsv
suppressMessages(library(rpact))
cat("# ", R.version.string, ", rpact ", as.character(packageVersion("rpact")), "\n", sep = "")
cat("alpha\tinformation\tlevels\n")
designs <- list(c(0.2, 0.4, 0.6, 0.8, 1), c(0.5, 1), c(0.1, 0.15, 0.7, 1), seq(1, 10) / 10)
for (alpha in c(0.05, 0.025, 0.001)) for (information in designs) {
  design <- getDesignGroupSequential(kMax = length(information), alpha = alpha, sided = 1, informationRates = information,
                                     typeOfDesign = "asP")
  cat(sprintf("%g\t%s\t%s\n", alpha, paste(sprintf("%.10g", information), collapse = " "),
    paste(sprintf("%.8f", design$stageLevels), collapse = " ")))
}
