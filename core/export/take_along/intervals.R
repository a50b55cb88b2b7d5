# How far a figure of this synthetic table may be off. Needs base R alone.
#
#   source("intervals.R")
#   interval(function(rows) mean(rows$readmitted == "yes"))
#
# The estimate is that of synthetic.csv. The replicas are tables that the same method made of rows of
# its own model, so figures vary between them as they vary by sampling, noise and model together. With
# k replicas the interval is s +- t(k - 1) * sd * sqrt(1 + 1/k). It covers no bias of the method.

interval <- function(statistic, folder = ".", level = 0.95) {
  read <- function(path) read.csv(path, check.names = FALSE)
  estimate <- statistic(read(file.path(folder, "synthetic.csv")))
  paths <- list.files(folder, pattern = "^replica-.*\\.csv$", full.names = TRUE)
  values <- vapply(paths, function(path) statistic(read(path)), numeric(1))
  k <- length(values)
  half <- qt(0.5 + level / 2, k - 1) * sd(values) * sqrt(1 + 1 / k)
  c(estimate = estimate, low = estimate - half, high = estimate + half)
}
