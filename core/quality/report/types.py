"""The report as stored in report.json, and the histograms a plan released for it.

Imports pydantic only, so that pages may read it cheaply.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from core.message import Message, Text
from core.quality.metrics.noisy import Total

Goal = Literal["higher", "lower"]
View = Literal["inside", "outside"]  # who may see it


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Score(_Value):
    """One number of the report with everything a page needs to label it.

    Attributes:
      value: the measured number; None when it cannot be computed, `note` says why.
      spread: standard deviation over repetitions, where there are any.
      half_width: of a 95 % interval by bootstrap, where a point could mislead.
      ceiling: the same number measured on real data, where that means something.
      before: the same number of what the model draws by itself, where rows are chosen afterwards.
      dealt: the same number of real events that are dealt to people at random.
    """

    key: str
    title: Text
    value: float | None
    unit: Text
    goal: Goal
    low: float
    high: float
    meaning: Text
    source: str
    spread: float | None = None
    half_width: float | None = None
    ceiling: float | None = None
    before: float | None = None
    dealt: float | None = None
    note: Text = ""


class ColumnPicture(_Value):
    """One column in both tables. Shares are of all rows, so bars and missing share add up to 1.

    Attributes:
      labels: at most 20 labels by falling real share (in order for an ordered column), then the
        rest.
      edges: bin edges, one more than there are shares; dates in seconds. Bins may have zero width:
        an atom such as the exact 0 of an amount. Those of a number with a `step` lie half of it
        before the first value of their bin.
      real, synthetic: share of rows per label or bin, in [0, 1]; `real` is empty where nothing of
        the real table may be shown.
      missing_real, missing_synthetic: share of rows without a value.
      outside: share of synthetic rows beyond the real range.
      tvd: 1-way total variation distance; None where `real` is empty.
      noise: half of a 95 % interval around each noisy real share; None for exact shares.
      shifted: whether real shares are shown as the released table shifts them.
    """

    kind: str
    scale: Literal["linear", "log"] = "linear"
    labels: list[str] | None = None
    edges: list[float] | None = None
    step: float = 0.0
    real: list[float]
    synthetic: list[float]
    missing_real: float | None
    missing_synthetic: float
    outside: float = 0.0
    tvd: float | None
    noise: float | None = None
    shifted: bool = False


class Projection(_Value):
    """Both tables on the first two principal axes of the real one (outside: of the synthetic one).

    Attributes:
      real, synthetic, before: at most 1,500 points [x, y] each; `real` is empty outside.
      explained: shares of the real variance on each axis; drivers: the columns it rests on most.
      wscore, spread: Wasserstein score on this plane, mean and standard deviation over seeds.
    """

    real: list[tuple[float, float]]
    synthetic: list[tuple[float, float]]
    explained: tuple[float, float]
    drivers: list[list[str]] = []
    before: list[tuple[float, float]] = []
    wscore: float | None = None
    spread: float | None = None


class Density(_Value):
    """Shares of rows [cells of y][cells of x] on a grid over the first two principal axes."""

    x: list[float]
    y: list[float]
    real: list[list[float]]
    synthetic: list[list[float]]


MISSING = Message("(missing)")  # the label of a column's missing values, beside those of people


class ProbabilityPoint(_Value):
    """Share of rows with a label, real against synthetic."""

    column: str
    label: str
    real: float
    synthetic: float


class PredictionPoint(_Value):
    """How well a column is predicted from the others on real test rows.

    Attributes:
      metric: "AUROC" (two labels), "F1" (longer lists) or "R²" (numbers).
      real, synthetic: score when trained on that table; None when it cannot be measured.
      baseline: score of guessing without looking at the other columns.
      predictable: whether real-trained prediction beats guessing; others are left out of the gap.
      half_width: of a 95 % interval of the difference, by bootstrap of test rows.
    """

    column: str
    metric: str
    real: float | None
    synthetic: float | None
    baseline: float
    predictable: bool
    half_width: float | None = None
    note: Text = ""


class PairTable(_Value):
    """2-way TVD of every pair; the diagonal holds 1-way distances."""

    columns: list[str]
    tvd: list[list[float]]


class UtilityRow(_Value):
    """One classifier or regressor, trained on each table and tested on the same real rows."""

    model: str
    metric: str
    real: float
    synthetic: float
    baseline: float


class GroupCheck(_Value):
    """Two tests of one group of tagged columns, on real rows without noise.

    Attributes:
      two_sample, p_two_sample: MMD² between real and synthetic rows, and its p-value.
      stein, p_stein: the Stein discrepancy of real rows under a score fitted to synthetic ones.
      differs: whether both tests reject at `alpha`.
    """

    group: str
    columns: tuple[str, ...]
    alpha: float
    records: int
    two_sample: float
    p_two_sample: float
    stein: float
    p_stein: float
    differs: bool


class Attack(_Value):
    """One attack on the people in the table, beside what it reaches without their data.

    Attributes:
      value: how well it works on rows that were learnt from.
      baseline: on rows that were not, or by chance; at the same shares of the target's values.
      lead_needed: by how much the value must be above the baseline for `exposed`; None where no
        lead would do, since too few real rows differ in whether it works on them.
      p: how often a release without a leak shows so clear a lead by any of the run's attacks.
      exposed: whether `p` is at most 1 %.
      records, strangers: real rows of either kind that were tried.
      accused, found: shares of strangers and of rows learnt from that a rule made of it accuses.
    """

    key: str
    title: Text
    meaning: Text
    unit: Text
    value: float
    baseline: float
    lead_needed: float | None
    p: float
    exposed: bool
    records: int
    strangers: int
    accused: float | None = None
    found: float | None = None


class AssociationTable(_Value):
    """How strongly columns belong together, [m, m]; see `core.quality.metrics.association`.

    `luck` is how strongly columns that do not belong together may seem to; it and `real` are empty
    outside.
    """

    columns: list[str]
    real: list[list[float]]
    synthetic: list[list[float]]
    luck: list[list[float]] = Field(default_factory=list)


class ReleasedHistograms(_Value):
    """Histograms of n real records as a plan released them.

    Attributes:
      counts: by column, in the bins of `core.privacy.mechanisms.histograms`, "missing" last.
      shifted: whether a record counts as much as the shift of tagged columns keeps of such ones.
    """

    n: int
    noise_std: float
    counts: dict[str, list[float]]
    shifted: bool = False

    @property
    def total(self) -> Total:
        """What the counts of each column add up to."""
        if not self.shifted:
            return Total(float(self.n), 0.0)
        return Total.of(list(self.counts.values()), self.noise_std)


class BrokenRule(_Value):
    """A rule that every real row keeps and so many synthetic ones break."""

    text: str
    columns: tuple[str, ...]
    rows: int


class Yardstick(_Value):
    """NIST's k-marginal score, by the groups of one column; see `core.quality.metrics.yardstick`.

    Attributes:
      score, real: of the synthetic table, and of as many rows drawn from the real one, in points.
      as_close_as: the share of real rows of which a random part scores as the synthetic table.
      groups: names, scores and those of the rows drawn from the real table, the lowest first.
    """

    group: str | None
    score: float
    real: float
    as_close_as: float
    groups: list[tuple[str, float, float]]


class GroupFigures(_Value):
    """Headline figures of the rows of one group, (real, synthetic) each; None where unmeasured.

    Attributes:
      share: of all rows.
      single, pairs: mean distance of columns and of pairs within the group; the first of as many
        rows drawn from the real table, the second of the synthetic ones.
      rate: share of rows with the outcome, or the mean of a numeric target.
      chance: half a 95 % interval of the difference of rates, for all groups together.
      score: AUROC or R² on real test rows of the group, after training on either table.
      found: share of the group's outcomes that such models find.
      found_chance: half a 95 % interval of the difference of both, for all groups together.
    """

    name: Text
    share: tuple[float, float]
    single: tuple[float, float]
    pairs: tuple[float, float]
    rate: tuple[float, float] | None = None
    chance: float | None = None
    score: tuple[float, float] | None = None
    found: tuple[float, float] | None = None
    found_chance: float | None = None


class Grouping(_Value):
    """Figures by the groups of one or two columns; see `core.quality.metrics.groups`.

    Attributes:
      outcome: what `rate` counts, "target = label", or the numeric target; None without a target.
      score: "AUROC" or "R²".
      unseen: groups with too few real rows for figures of their own, or beyond the largest.
      sentences: which groups are farthest from the real ones, beyond chance.
    """

    columns: tuple[str, ...]
    outcome: str | None
    score: str
    groups: list[GroupFigures]
    unseen: int
    sentences: list[Text]


class StateHistory(_Value):
    """How events with one label, or one fifth of numbers, follow on one another.

    Attributes:
      real, synthetic: shares of what comes next, [labels][labels + 1], the end of a history last.
      times: since the first event; real_not_yet, synthetic_not_yet: shares of people who have not
        had a label until then, [labels][times].
      runs: of how many events in a row are alike.
    """

    column: str
    labels: list[str]
    real: list[list[float]]
    synthetic: list[list[float]]
    times: list[float]
    real_not_yet: list[list[float]]
    synthetic_not_yet: list[list[float]]
    runs: ColumnPicture


class Histories(_Value):
    """How events of people follow on one another; nothing of real ones is in it outside.

    Attributes:
      file: whose events they are; "" where there is one.
      days: whether times are dates.
      pictures: "events" of a person, "gaps" between them, "first" event.
      states: by column, the most telling first.
      people: of ten synthetic people, times since the first event and labels of the first column.
    """

    file: Text
    days: bool
    pictures: dict[str, ColumnPicture]
    states: list[StateHistory]
    people: list[list[tuple[float, str]]]


class SignificantSet(_Value):
    """Columns that went together in a private scan; `core.models.events.Interaction`, as stored."""

    columns: tuple[str, ...]
    score: float
    target: bool = False


class Report(_Value):
    """Everything the Review page shows. Empty parts are not measured yet (`complete` is False).

    `view` is "inside" when it was made from real rows without noise, "outside" when nothing in it
    was but what a plan paid for. `coverage` says what of the columns the table shows, `covered`
    whether that is all but a little.
    """

    view: View = "inside"
    complete: bool = False
    rows_real: int
    rows_synthetic: int
    target: str | None = None
    coverage: list[Text] = Field(default_factory=list)
    covered: bool = True
    scores: list[Score] = Field(default_factory=list)
    columns: dict[str, ColumnPicture] = Field(default_factory=dict)
    pca: Projection | None = None
    density: Density | None = None
    dimension_probability: list[ProbabilityPoint] = Field(default_factory=list)
    dimension_prediction: list[PredictionPoint] = Field(default_factory=list)
    pairs: PairTable | None = None
    utility: list[UtilityRow] | None = None
    protection: list[GroupCheck] = Field(default_factory=list)
    attacks: list[Attack] = Field(default_factory=list)
    associations: AssociationTable | None = None
    broken_rules: list[BrokenRule] = Field(default_factory=list)
    significant_sets: list[SignificantSet] = Field(default_factory=list)  # of the fit
    intervals: dict[str, Any] = Field(default_factory=dict)  # outside, how far figures may be off
    yardsticks: list[Yardstick] = Field(default_factory=list)
    groupings: list[Grouping] = Field(default_factory=list)
    histories: list[Histories] = Field(default_factory=list)  # of each file with an order
    notes: list[Text] = Field(default_factory=list)
