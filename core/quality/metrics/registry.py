"""What every number of the report is: name, unit, direction, range, a sentence, a source.

A page labels any `Score` from its own fields; nothing else needs to know a metric by name. A new
metric is one entry here and one line where it is measured.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.quality.report.types import Goal, Score

__all__ = ["METRICS", "Metric", "metric"]


@dataclass(frozen=True)
class Metric:
    """A declared metric.

    Attributes:
      key: name in report.json.
      title: a few words for people.
      unit: of the value; "" for a pure number.
      goal: "higher" or "lower" is closer to the real table.
      low, high: the range of possible values.
      meaning: one plain sentence.
      source: where the definition is from.
    """

    key: str
    title: str
    unit: str
    goal: Goal
    low: float
    high: float
    meaning: str
    source: str

    def score(
        self,
        value: float | None,
        *,
        spread: float | None = None,
        half_width: float | None = None,
        ceiling: float | None = None,
        note: str = "",
    ) -> Score:
        """A measurement with this declaration attached."""
        return Score(
            key=self.key,
            title=self.title,
            value=value,
            unit=self.unit,
            goal=self.goal,
            low=self.low,
            high=self.high,
            meaning=self.meaning,
            source=self.source,
            spread=spread,
            half_width=half_width,
            ceiling=ceiling,
            note=note,
        )


_AUTO_GAN = "DP-auto-GAN (ICLR 2020 submission)"

METRICS = (
    Metric(
        "tvd_1way",
        "Single columns: distance",
        "",
        "lower",
        0.0,
        1.0,
        "Total variation distance between a column's real and synthetic distribution, averaged "
        "over columns: 0 means the same shares, 1 means nothing in common.",
        "1-way marginals, as in P3GM (ICDE 2021); numbers in 16 equal-width bins",
    ),
    Metric(
        "tvd_2way",
        "Pairs of columns: distance",
        "",
        "lower",
        0.0,
        1.0,
        "Total variation distance between the joint distributions of two columns, averaged over "
        "all pairs: it sees whether columns still belong together.",
        "2-way marginals, as in P3GM (ICDE 2021); numbers in 16 equal-width bins",
    ),
    Metric(
        "tvd_3way",
        "Three columns at a time: distance",
        "",
        "lower",
        0.0,
        1.0,
        "Total variation distance between the joint distributions of three columns, averaged: "
        "it sees what pairs hide.",
        "3-way marginals, at most 200 of them; numbers in 16 equal-width bins",
    ),
    Metric(
        "nist",
        "Three columns at a time: NIST score",
        "points",
        "higher",
        0.0,
        1000.0,
        "The same as the score of the NIST challenge: 1000 points are the same table, 0 nothing "
        "in common.",
        "NIST Differential Privacy Synthetic Data Challenge 2019: 1000 · (1 − distance)",
    ),
    Metric(
        "range_error",
        "Counting rows in boxes: error",
        "",
        "lower",
        0.0,
        1.0,
        "A thousand questions of the kind: what share of rows is between 30 and 50 years old "
        "and works in one of these jobs? This is the mean error of the answers.",
        "PEARL (ICLR 2022): 1,000 range queries of three columns",
    ),
    Metric(
        "association_gap",
        "How columns belong together: difference",
        "",
        "lower",
        0.0,
        2.0,
        "How strongly two columns go together, in the real and in the synthetic table; this is the "
        "mean difference over all pairs.",
        "Pearson's r, correlation ratio η or Cramér's V, by the kinds of the two columns",
    ),
    Metric(
        "wscore_pca",
        "Shape in a plane (Wasserstein)",
        "",
        "higher",
        0.0,
        1.0,
        "How little the synthetic points must be moved to become the real ones, on the first two "
        "principal axes; differences under 0.015 mean nothing.",
        f"{_AUTO_GAN} §4: 1 − W₂ / (√v · largest distance), 2,000 rows a side, mean of 3 draws",
    ),
    Metric(
        "wscore_whole",
        "Shape overall (Wasserstein)",
        "",
        "higher",
        0.0,
        1.0,
        "How little the synthetic rows must be moved to become the real ones, over all columns; "
        "two samples of the same large table do not reach 1 either.",
        f"{_AUTO_GAN} §4: 1 − W₂ / largest distance, 2,000 rows a side, mean of 3 draws",
    ),
    Metric(
        "pca_3way",
        "Strongest directions: distance",
        "",
        "lower",
        0.0,
        1.0,
        "Total variation distance on the first three principal axes together, ten bins each: "
        "where rows crowd when all columns are looked at together.",
        "DP-auto-GAN (ICLR 2020 submission) §4, k-way PCA marginal with k = 3",
    ),
    Metric(
        "sliced",
        "Shape from all sides (sliced Wasserstein)",
        "",
        "higher",
        0.0,
        1.0,
        "How little the synthetic rows must be moved to become the real ones, seen from many "
        "random directions; it uses every row and so also serves millions.",
        "Bonneel et al. 2015: 1 − √d · SW₂ / largest distance, 64 directions",
    ),
    Metric(
        "mmd",
        "Any difference at all (MMD)",
        "",
        "lower",
        0.0,
        2.0,
        "Squared kernel distance between the two tables; 0 only when every distribution agrees.",
        "Gretton et al. 2012, as in PEARL (ICLR 2022); 1,000 rows a side, median bandwidth",
    ),
    Metric(
        "prediction_gap",
        "Predicting each column: gap",
        "",
        "lower",
        0.0,
        1.0,
        "Each column is predicted from the others on real rows, once learnt from real and once "
        "from synthetic rows; this is the mean difference of the two scores.",
        f"Dimension-wise prediction, {_AUTO_GAN} §5.2; AUROC for two labels, F1 for longer lists, "
        "R² for numbers",
    ),
    Metric(
        "tstr_auroc",
        "Learning the target: AUROC",
        "",
        "higher",
        0.0,
        1.0,
        "Four classifiers learn the target from synthetic rows and are tested on real rows: "
        "0.5 is guessing, 1 is perfect.",
        "Train on synthetic, test on real; P3GM (ICDE 2021) §VI",
    ),
    Metric(
        "tstr_auprc",
        "Learning the target: AUPRC",
        "",
        "higher",
        0.0,
        1.0,
        "The same classifiers, judged on how purely they find the rarer class; guessing scores "
        "that class's share.",
        "Train on synthetic, test on real; P3GM (ICDE 2021) §VI",
    ),
    Metric(
        "tstr_ten",
        "Learning the target, ten kinds: AUROC",
        "",
        "higher",
        0.0,
        1.0,
        "Ten kinds of classifiers learn the target from synthetic rows and are tested on real "
        "rows.",
        "PEARL (ICLR 2022) §6: ten scikit-learn classifiers",
    ),
    Metric(
        "tstr_r2",
        "Learning the target: R²",
        "",
        "higher",
        0.0,
        1.0,
        "Regressions learn the numeric target from synthetic rows and are tested on real rows: "
        "0 is guessing the mean, 1 is perfect.",
        "Train on synthetic, test on real",
    ),
    Metric(
        "pmse",
        "Told apart by a simple model (pMSE)",
        "",
        "lower",
        0.0,
        0.25,
        "A logistic regression tries to tell real from synthetic rows: 0 means it cannot, 0.25 "
        "that it always can (with equally many rows of each).",
        "Snoke et al. 2018",
    ),
    Metric(
        "pmse_ratio",
        "Told apart by a simple model (ratio)",
        "times",
        "lower",
        0.0,
        1e6,
        "The same number over what a resampling of the real table itself would show: 1 is ideal, "
        "2 is a second sample of as many people; in large tables every small difference counts.",
        "Snoke et al. 2018, pMSE ratio",
    ),
    Metric(
        "tree_auroc",
        "Told apart by trees: AUROC",
        "",
        "lower",
        0.5,
        1.0,
        "Boosted trees learn to tell real from synthetic rows and are tested on fresh ones: 0.5 "
        "is a coin. A hard test: hardly any private table passes it.",
        "Classifier two-sample test, Lopez-Paz and Oquab 2017",
    ),
)

_BY_KEY = {entry.key: entry for entry in METRICS}


def metric(key: str) -> Metric:
    """The declared metric of that key; KeyError when there is none."""
    return _BY_KEY[key]
