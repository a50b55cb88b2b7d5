"""The frontier compares fairly: bins lose no more than they must, truths are told, losses said."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest

from benchmarks import fitting, frontier
from benchmarks.declared_columns import listed, number, whole
from benchmarks.fitting import Fit, FitError
from benchmarks.frontier_figures import (
    FIGURES,
    _blocks,
    _broken,
    _patient,
    judged,
    lost_associations,
)
from benchmarks.frontier_page import curves, markdown
from benchmarks.named_tables import load
from benchmarks.peers.exchange import BINS, TableCodes
from core.quality.aligned_tables import Features
from core.quality.metrics.association import associations

pytestmark = pytest.mark.slow


def shuffled(frame: pd.DataFrame) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({name: rng.permutation(frame[name]) for name in frame})


# -- what peers read ------------------------------------------------------------------------------


@pytest.fixture
def cells():
    rng = np.random.default_rng(0)
    n = 4_000
    gain = np.where(rng.random(n) < 0.9, 0.0, np.exp(9 * rng.random(n))).round()
    return pd.DataFrame(
        {
            "gain": gain.astype("int64"),
            "year": rng.integers(1900, 2001, n),
            "few": rng.integers(-3, 4, n),
            "share": rng.random(n),
            "colour": np.where(rng.random(n) < 0.2, None, "red"),
            "height": np.where(rng.random(n) < 0.3, np.nan, rng.normal(170, 10, n).round(1)),
        }
    )


def codes_of(*columns, log_bins=()):
    return TableCodes({"columns": [c.model_dump(mode="json") for c in columns]}, log_bins)


DECLARED = (
    whole("gain", 0, 100_000, scale="log"),
    whole("year", 1900, 2000),
    whole("few", -3, 3),
    number("share", 0.0, 1.0),
    listed("colour", ("blue", "red")).model_copy(update={"missing": True}),
    number("height", 100.0, 220.0, step=0.1, missing=True),
)


def test_what_is_decoded_has_the_codes_it_came_from(cells):
    table = codes_of(*DECLARED)
    codes = table.encode(cells)
    back = table.decode(codes, np.random.default_rng(1))
    pd.testing.assert_frame_equal(table.encode(back), codes)
    for column in DECLARED:
        size, values = table.sizes[column.name], codes[column.name]
        assert 0 <= values.min() and values.max() < size <= BINS + column.missing
        if column.low is not None:
            assert back[column.name].dropna().between(column.low, column.high).all()
    assert (back.isna() == cells.isna()).all(axis=None)


def test_exact_values_survive_where_there_is_a_bin_for_each(cells):
    table = codes_of(*DECLARED)
    back = table.decode(table.encode(cells), np.random.default_rng(1))
    assert (back["few"] == cells["few"]).all()
    assert ((back["gain"] == 0) == (cells["gain"] == 0)).all()  # zeros are not smeared
    assert (back["gain"] == back["gain"].round()).all()
    assert not (back["year"] == cells["year"]).all()  # 101 years in 32 bins
    assert back["year"].nunique() > 90  # drawn from all of a bin's years


def test_a_column_is_log_spaced_where_somebody_says_so(cells):
    plain = codes_of(whole("gain", 0, 100_000)).encode(cells)["gain"]
    log = codes_of(whole("gain", 0, 100_000), log_bins=["gain"]).encode(cells)["gain"]
    assert log.nunique() > 3 * plain.nunique()


def test_tab_pe_gets_its_own_table_back(cells, monkeypatch):
    folder = str(frontier.Path(fitting.__file__).parent / "peers")
    monkeypatch.syspath_prepend(folder)
    import tabpe  # beside its `exchange`, as in its own environment

    whole_table = cells.assign(label=np.where(cells["few"] > 0, "1", "0"))
    columns = [*DECLARED, listed("label", ("0", "1"))]
    schema = {"columns": [c.model_dump(mode="json") for c in columns], "target": "label"}
    table = tabpe.Prepared(whole_table, schema)
    assert not table.frame.isna().any(axis=None)
    back = table.back(table.frame)
    present = whole_table["height"].notna()  # absent numbers got the middle, which its glue says
    assert (back.loc[present, "height"] == whole_table.loc[present, "height"]).all()
    rest = [name for name in whole_table if name != "height"]
    pd.testing.assert_frame_equal(back[rest], whole_table[rest], check_dtype=False)
    for name in ("tabpe", "exchange"):
        del sys.modules[name]  # other tests import the latter under its full name


# -- what is measured -----------------------------------------------------------------------------


def test_lost_associations_by_hand():
    real = np.array([[1.0, 0.9, -0.5], [0.9, 1.0, 0.2], [-0.5, 0.2, 1.0]])
    fake = np.array([[1.0, 0.4, 0.5], [0.4, 1.0, 0.0], [0.5, 0.0, 1.0]])
    lost = lost_associations(real, fake)
    assert lost["association_worst"] == pytest.approx(1.0)  # -0.5 turned to 0.5
    assert lost["association_mean"] == pytest.approx((0.5 + 1.0) / 2)  # .2 is not strong
    assert lost_associations(real, real)["association_worst"] == 0.0
    assert lost_associations(np.eye(3), fake)["association_mean"] is None


def test_broken_truths_are_counted():
    table = load("tuning_codes", rows=400)
    keys = {"broken_determines", "broken_sum", "broken_at_most"}
    assert _broken(table, table.test) == dict.fromkeys(keys, 0.0)
    apart = judged(table, shuffled(table.train), ten=True)
    assert {*keys, "auroc_ten", "c2st", "tvd_3way", "auroc_trees"} <= set(apart) <= set(FIGURES)
    assert min(apart[key] for key in keys) > 0.2
    assert apart["association_worst"] > 0.8  # the kind follows from the code
    assert apart["tvd_1way"] == 0.0 < apart["tvd_2way"] < apart["tvd_3way"]


def test_blocks_kept_and_lost():
    table = load("tuning_blocks", rows=1_500)

    def figures(frame):
        features, parts = Features.fit(table.schema, table.train, frame)
        strengths = [associations(part) for part in parts]
        return _blocks(table, *strengths, names=features.names, rows=len(frame))

    same, apart = figures(table.test), figures(shuffled(table.test))
    assert same["strong_kept"] == 1.0
    assert apart["strong_kept"] == 0.0
    assert same["strong_ratio"] > 0.9 > 0.2 > apart["strong_ratio"]
    for one in (same, apart):
        assert one["spurious"] == pytest.approx(1.0, abs=0.1)


# -- what is said ---------------------------------------------------------------------------------


def run(tool, *, epsilon=1.0, seed=0, table="t", settings=(), **figures):
    request = {"table": table, "rows": None, "tool": tool, "epsilon": epsilon, "delta": 1e-5}
    return request | {"seed": seed, "settings": list(settings), "figures": figures}


def page(*runs, ceilings=None):
    return markdown({str(i): one for i, one in enumerate(runs)}, ceilings or {}, ("aim", "mst"))


def test_losses_are_said_for_both_directions():
    text = page(
        run("pearl", auroc=0.9, tvd_2way=0.04, c2st=0.9, seconds=80),
        run("aim", auroc=0.8, tvd_2way=0.02, c2st=0.9, seconds=800),
        run("mst", auroc=0.7, tvd_2way=0.05, c2st=1.0, seconds=100),
        ceilings={"t": {"auroc": 0.95}},
    )
    rows = {line.split(" | ")[0].strip("| "): line for line in text.splitlines() if "|" in line}
    assert "1.12 × pearl / aim" in rows["AUROC, 4 classifiers ↑"]
    assert "0.9500" in rows["AUROC, 4 classifiers ↑"]
    assert "2 × pearl / aim, **ours loses**" in rows["2-way TVD ↓"]
    assert text.count("ours loses") == 1  # level is no loss
    assert "pearl: level or ahead in 2 of 3 figures; loses in 2-way TVD" in text
    assert "0.0400 against 0.0200 (aim)" in text
    assert "seconds" not in text.split("loses in")[1]  # a cost is no utility


def test_seeds_are_averaged_and_failures_named():
    failed = run("mst", auroc=0.1) | {"failed": "Traceback\nMemoryError: too large"}
    del failed["figures"]
    text = page(run("pearl", auroc=0.8), run("pearl", seed=1, auroc=0.9), failed)
    assert "0.8500 ± 0.0500" in text
    assert "mst, seed 0, failed: MemoryError: too large" in text
    assert "loses" not in text.partition("failed")[0].replace("ours loses", "loses")


def test_means_over_tables_leave_out_what_not_all_have():
    both = [run("pearl", table=t, auroc=0.8) for t in "ab"]
    peers = [run("aim", table=t, auroc=a) for t, a in zip("ab", (0.7, 0.95), strict=True)]
    alone = run("pearl", table="c", auroc=0.1)  # nobody to compare with
    text = page(*both, *peers, run("mst", table="a", auroc=0.99), alone)
    mean = text.partition("## Mean over a, b, ε = 1")[2]
    assert "0.8250" in mean and "0.8000" in mean
    assert "mst" not in mean
    assert "pearl: level or ahead in 0 of 1 figures" in mean


def test_changed_settings_are_a_tool_of_their_own():
    text = page(run("aim", auroc=0.8), run("aim", settings=("last=100",), auroc=0.7))
    assert "| aim | aim (last=100) |" in text


def test_curves_are_drawn_over_epsilon(tmp_path):
    runs = [run(t, epsilon=e, auroc=0.8, c2st=0.9) for t in ("pearl", "aim") for e in (0.2, 1, 4)]
    stored = {str(i): one for i, one in enumerate(runs)}
    for name in ("a.html", "b.html"):
        curves(stored, {"t": {"auroc": 0.95}}, ("aim",), tmp_path / name)
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert text == (tmp_path / "b.html").read_text(encoding="utf-8")  # no change, no difference
    assert "pearl" in text and "t: AUROC, 4 classifiers" in text


# -- how it is run --------------------------------------------------------------------------------


@pytest.fixture
def fits(monkeypatch):
    """Fits that return the test rows, and the list of those asked for."""
    calls = []

    def fake(tool, table, **how):
        calls.append((tool, table.name, how["epsilon"], how["seed"]))
        if tool == "ppem":
            raise FitError("no room")
        return Fit(table.test, seconds=1.0, memory_mb=2.0, versions={"commit": "abc"})

    monkeypatch.setattr(frontier, "fit_and_sample", fake)
    monkeypatch.setattr(frontier, "judged", lambda *_, **__: {"auroc": 0.5})
    monkeypatch.setattr(frontier, "ceiling", lambda _: {"auroc": 1.0})
    return calls


def start(tmp_path, *more, models="pearl"):
    base = ["--tables", "dependencies", "--rows", "100", "--models", models]
    return frontier.main([*base, "--out", str(tmp_path / "results" / "x"), *more])


def test_a_run_that_is_there_is_not_repeated(tmp_path, fits, capsys):
    assert start(tmp_path) == 0
    assert start(tmp_path, "--epsilon", "1,4", "--seeds", "2", "--json") == 0
    assert sorted(fits) == [("pearl", "dependencies", e, s) for e in (1, 4) for s in (0, 1)]
    printed = capsys.readouterr().out
    assert printed.count("- pearl: usual settings; commit abc") == 2  # once a page
    facts = json.loads(printed.splitlines()[-1])
    assert len(facts["runs"]) == 4
    assert facts == json.loads((tmp_path / "results" / "x.json").read_text(encoding="utf-8"))
    start(tmp_path, "--again")
    assert len(fits) == 5


def test_campaign_survives_failures_and_interruptions(tmp_path, fits, monkeypatch):
    start(tmp_path, models="ppem,pearl")
    assert [tool for tool, *_ in fits] == ["ppem", "pearl"]
    stored = frontier.Results(tmp_path / "results" / "x.json").runs
    assert [("failed" in one, "figures" in one) for one in stored.values()].count(
        (True, False)
    ) == 1

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(frontier, "fit_and_sample", stop)
    with pytest.raises(KeyboardInterrupt):
        start(tmp_path, "--epsilon", "4")
    assert frontier.Results(tmp_path / "results" / "x.json").runs == stored


def test_an_absent_peer_is_skipped_with_a_word(tmp_path, fits, capsys):
    start(tmp_path, "--peers", str(tmp_path), models="aim,pearl")
    assert [tool for tool, *_ in fits] == ["pearl"]
    assert f"aim is skipped: there is no {tmp_path / 'aim' / 'bin' / 'python'}" in (
        capsys.readouterr().err
    )
    assert "--peers" in fitting.absent("mst", None)


def test_families_of_tables_have_names(capsys):
    tables = frontier.parse(["--tables", "tuning,reported,adult", "--out", "x"]).tables
    assert set(tables) == {*frontier.TUNING, *frontier.REPORTED, *frontier.REAL}
    assert len(tables) == len(set(tables))
    with pytest.raises(SystemExit):
        frontier.parse(["--tables", "parity9", "--out", "x"])
    assert "no table is called 'parity9'" in capsys.readouterr().err


def test_kept_tables_are_judged_again_without_a_fit(tmp_path, fits, monkeypatch):
    keep = ("--keep", str(tmp_path / "keep"))
    start(tmp_path, *keep)
    monkeypatch.setattr(frontier, "judged", lambda *_, **__: {"auroc": 0.75})
    start(tmp_path, *keep, "--judge")
    [only] = frontier.Results(tmp_path / "results" / "x.json").runs.values()
    assert only["figures"] == {"auroc": 0.75, "seconds": 1.0, "memory_mb": 2.0}
    assert len(fits) == 1


def test_memory_is_the_programs_own(tmp_path):
    """What this process holds does not count; what the program held before its end does."""
    ballast = np.ones(40_000_000)  # 320 MB here
    grow = "b = bytearray(range(256)) * 500_000; import time; time.sleep(0.5); del b; print('{}')"
    printed, seconds, memory = fitting._run([sys.executable, "-c", grow], tmp_path, 1, None)
    assert printed == "{}\n" and 0.5 < seconds < 30
    assert 128 < memory < 200
    assert ballast.sum() > 0


def test_a_program_that_fails_or_takes_too_long_is_said(tmp_path):
    with pytest.raises(FitError, match="what went wrong"):
        fitting._run([sys.executable, "-c", "exit('what went wrong')"], tmp_path, 1, None)
    with pytest.raises(FitError, match="ended after 0.3 s"):
        fitting._run([sys.executable, "-c", "while True: pass"], tmp_path, 1, 0.3)


def test_one_of_ours_runs_in_a_process_of_its_own():
    table = load("tuning_small", rows=200)
    fit = fitting.fit_and_sample(
        "p3gm", table, epsilon=1.0, delta=1e-5, seed=0, settings=("steps=20",)
    )
    assert tuple(fit.frame.columns) == table.schema.names
    assert len(fit.frame) == 200
    assert fit.settings == {"steps": "20"}
    assert fit.memory_mb > 50 and fit.seconds > 0


def test_patient_trees_see_the_parity_that_usual_ones_give_up():
    table = load("parity3", rows=11_000)  # usual trees stop early beyond 10,000
    features, (real, test) = Features.fit(table.schema, table.train, table.test)
    seen = _patient(table, features, real, test, seed=0)["auroc_patient"]
    blind = _patient(table, *shuffled_parts(table), seed=0)["auroc_patient"]
    assert seen > 0.9 > 0.6 > blind
    assert _patient(load("tuning_small", rows=50), features, real, test, seed=0) == {}


def shuffled_parts(table):
    features, (fake, test) = Features.fit(table.schema, shuffled(table.train), table.test)
    return features, fake, test
