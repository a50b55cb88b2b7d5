"""The outside report: nothing in it moves when the real table does, but through the release."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from core.encoding.codec import Codec
from core.figures.column import column_figure
from core.privacy.mechanisms.histograms import Histograms
from core.quality.report.outside import outside_report
from core.quality.report.types import ReleasedHistograms
from core.schema.column import SchemaError
from tests.models.tables import rows, schema
from tests.quality.conftest import score_of

PLAIN = schema().model_copy(update={"sensitive": {}})


def release_of(frame: pd.DataFrame, std: float, seed: int = 0) -> ReleasedHistograms:
    codec = Codec(PLAIN.domain())
    mechanism = Histograms.of(codec, [c.name for c in PLAIN.domain().modelled])
    exact = mechanism.statistic(codec.encode(frame).to("cpu"), torch.ones(len(frame))).numpy()
    noisy = exact + np.random.default_rng(seed).normal(0, std, len(exact))
    return ReleasedHistograms(n=len(frame), noise_std=std, counts=mechanism.split(noisy.tolist()))


def test_without_a_release_nothing_real_is_shown():
    report = outside_report(rows(300, 1), PLAIN)
    assert report.view == "outside" and report.complete and report.rows_real == 0
    assert report.scores == [] and report.attacks == [] and report.pairs is None
    assert report.utility is None and report.dimension_prediction == []
    for picture in report.columns.values():
        assert picture.real == [] and picture.missing_real is None and picture.tvd is None
        assert sum(picture.synthetic) + picture.missing_synthetic == pytest.approx(1)
    assert report.pca.real == [] and report.associations.real == []
    assert "Nothing on this page was computed from real rows." in report.notes


def test_a_table_that_lacks_a_column_is_refused_by_its_name():
    with pytest.raises(SchemaError, match="lacks columns of the schema: age"):
        outside_report(rows(50, 1).drop(columns=["age"]), PLAIN)


def test_bins_come_from_the_declaration():
    young = rows(200, 2).assign(age=20)
    edges = [outside_report(frame, PLAIN).columns["age"].edges for frame in (young, rows(200, 3))]
    assert edges[0] == edges[1] and edges[0][0] <= 0 and edges[0][-1] >= 99


def test_bought_shares_are_the_real_ones_up_to_their_noise():
    real, made = rows(4000, 4), rows(4000, 5)
    report = outside_report(made, PLAIN, released=release_of(real, std=20))
    picture = report.columns["ill"]
    assert picture.labels == ["False", "True"]
    assert picture.noise == pytest.approx(1.96 * 20 / 4000)
    assert picture.real[1] == pytest.approx(real["ill"].mean(), abs=5 * 20 / 4000)
    assert report.columns["cost"].missing_real == pytest.approx(
        real["cost"].isna().mean(), abs=5 * 20 / 4000
    )
    score = score_of(report, "tvd_1way")
    assert score.value < 3 * score.ceiling  # tables of one kind: mostly noise
    far = outside_report(made.assign(age=5, ill=True), PLAIN, released=release_of(real, std=20))
    assert score_of(far, "tvd_1way").value > 0.3


def test_negative_counts_are_cut_and_floor_is_of_equal_tables():
    real = rows(2000, 6)
    report = outside_report(real, PLAIN, released=release_of(real, std=60))
    assert all(share >= 0 for p in report.columns.values() for share in p.real)
    score = score_of(report, "tvd_1way")
    assert score.value == pytest.approx(score.ceiling, rel=0.35)
    bins = np.mean([len(c) for c in release_of(real, 60).counts.values()])
    assert score.ceiling == pytest.approx(0.5 * bins * 60 * math.sqrt(2 / math.pi) / 2000)


def test_hidden_columns_are_not_overlaid():
    whole = release_of(rows(500, 7), std=5)
    bought = {name: whole.counts[name] for name in ("cost", "ill")}
    report = outside_report(
        rows(500, 8), schema(), released=whole.model_copy(update={"counts": bought})
    )
    assert report.columns["age"].real == [] and report.columns["ill"].real
    with pytest.raises(ValueError, match="at least one"):
        outside_report(rows(5, 1).head(0), PLAIN)


def test_weighted_shares_are_called_shifted_with_right_noise():
    real, made = rows(6000, 4), rows(6000, 5)
    weights = np.where(real["age"] > 40, 1.0, 0.3)
    codec = Codec(PLAIN.domain())
    mechanism = Histograms.of(codec, ["cost", "ill", "ward"])
    exact = mechanism.statistic(codec.encode(real).to("cpu"), torch.from_numpy(weights)).numpy()
    expected = weights[real["ill"].to_numpy(bool)].sum() / weights.sum()
    inside = 0
    for seed in range(200):
        noisy = exact + np.random.default_rng(seed).normal(0, 40, len(exact))
        counts = mechanism.split(noisy.tolist())
        released = ReleasedHistograms(n=6000, noise_std=40, counts=counts, shifted=True)
        picture = outside_report(made.head(50), PLAIN, released=released).columns["ill"]
        assert picture.shifted and sum(picture.real) == pytest.approx(1.0, abs=0.2)
        inside += abs(picture.real[1] - expected) <= picture.noise
    assert inside >= 180  # of 200, where 95 % are promised
    report = outside_report(made, PLAIN, released=released)
    assert any("as the released table shifts them" in note for note in report.notes)
    assert not any(note.startswith("Real shares were released") for note in report.notes)
    figure = column_figure(report.model_dump(), "ill")
    names = {trace["name"] for trace in figure["data"]}
    assert "real, shifted like the table" in names and "real" not in names
    assert not report.columns["age"].shifted  # nothing of it is shown
