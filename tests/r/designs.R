# Figures of R's packages sampling and survey that tests/unit/test_survey.py compares with.
# Run: Rscript tests/r/designs.R > tests/r/designs.json
suppressMessages({ library(sampling); library(survey) })

put <- function(x) paste0("[", paste(sprintf("%.17g", as.numeric(x)), collapse = ", "), "]")
pik <- c(0.9, 0.75, 0.5, 0.35, 0.3, 0.2, 0.6, 0.4)            # sums to 4
y <- c(31, 25, 20, 11, 12, 6, 18, 17)
chosen <- c(1, 3, 7, 8)                                        # one sample, counted from 1

joint <- UPmaxentropypi2(pik)
sampford <- UPsampfordpi2(pik)
systematic <- UPsystematicpi2(pik)
part <- joint[chosen, chosen]
frame <- data.frame(y = y[chosen], p = pik[chosen])
survey <- svydesign(ids = ~1, probs = ~p, data = frame, pps = ppsmat(part), variance = "YG")
estimated <- svytotal(~y, survey)

set.seed(1)
n <- 40000
x <- cbind(pik, pik * c(3, 1, 4, 1, 5, 9, 2, 6))
together <- matrix(0, 8, 8)
for (i in 1:n) {
  s <- samplecube(x, pik, order = 1, comment = FALSE, method = 2)
  s <- round(s)
  together <- together + outer(s, s)
}

cat("{\n",
  "\"made_by\": \"R ", paste(R.version$major, R.version$minor, sep = "."), ", sampling ",
  as.character(packageVersion("sampling")), ", survey ", as.character(packageVersion("survey")), "\",\n",
  "\"marginals\": ", put(pik), ",\n", "\"y\": ", put(y), ",\n",
  "\"sample\": ", put(chosen - 1), ",\n",
  "\"max_entropy_pairs\": ", put(joint), ",\n",
  "\"sampford_pairs\": ", put(sampford), ",\n",
  "\"systematic_pairs\": ", put(systematic), ",\n",
  "\"total\": ", put(HTestimator(y[chosen], pik[chosen])), ",\n",
  "\"mean\": ", put(HTestimator(y[chosen], pik[chosen]) / 8), ",\n",
  "\"sen_yates_grundy\": ", put(varHT(y[chosen], part, 2)), ",\n",
  "\"survey_total\": ", put(coef(estimated)), ",\n",
  "\"survey_yates_grundy\": ", put(SE(estimated)^2), ",\n",
  "\"deville\": ", put(varest(y[chosen], pik = pik[chosen])), ",\n",
  "\"cube_draws\": ", n, ",\n",
  "\"cube_balance\": ", put(c(3, 1, 4, 1, 5, 9, 2, 6)), ",\n",
  "\"cube_pairs\": ", put(together / n), "\n}\n", sep = "")
