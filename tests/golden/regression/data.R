# Makes study.csv: what a study of NICs under contention might give, with unequal variances, blocks and two outliers.
set.seed(20170821)
cells <- expand.grid(pairs = c(1, 5, 10, 20, 30, 40), nic = c("e1000", "virtio", "container"), gre = c("off", "on"))
data <- do.call(rbind, lapply(1:7, function(block) cbind(cells, block = paste0("b", block))))
data$cluster <- sample(c("C1", "C2", "C3"), nrow(data), replace = TRUE, prob = c(0.5, 0.3, 0.2))
data$load <- round(0.02 * data$pairs + rgamma(nrow(data), 2, 4), 3)
of_block <- setNames(rnorm(7, 0, 0.08), paste0("b", 1:7))
eta <- 2.1 - 0.034 * (data$pairs - 1) + c(e1000 = 0, virtio = -0.07, container = -0.18)[as.character(data$nic)] +
  c(e1000 = 0, virtio = 0.017, container = 0.024)[as.character(data$nic)] * (data$pairs - 1) -
  0.08 * (data$gre == "on") + c(C1 = 0, C2 = -0.066, C3 = -0.036)[data$cluster] - 0.05 * data$load + of_block[data$block]
data$rate <- exp(eta + rnorm(nrow(data), 0, 0.03 + 0.002 * data$pairs))
data$rate[c(33, 170)] <- data$rate[c(33, 170)] * c(1.9, 0.55)
data$rate <- signif(data$rate, 6)
write.csv(data[c("rate", "pairs", "load", "nic", "gre", "cluster", "block")], "study.csv", row.names = FALSE, quote = FALSE)
