"""Figures in one sentence each, for screen readers and plain-text exports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.figures.elements import Trace, share, spans

__all__ = ["describe"]

Report = Mapping[str, Any]


def describe(kind: str, report: Report, name: str | None = None) -> str:
    """A figure in one sentence, for screen readers.

    Args:
      kind: "column" (with `name`), "pca", "density", "probability", "prediction", "pairs" or
        "associations".
      report: as for the figure.
      name: the column, for kind "column".

    Raises:
      KeyError: no such kind or column.
    """
    if kind == "column":
        return _describe_column(report["columns"][name], str(name))
    sentences = {
        "pca": _describe_pca,
        "probability": _describe_probability,
        "prediction": _describe_prediction,
        "pairs": _describe_pairs,
        "density": _describe_density,
        "associations": _describe_associations,
    }
    return sentences[kind](report)


def _describe_column(picture: Trace, name: str) -> str:
    names = picture["labels"] or spans(picture["edges"] or [], picture["kind"])
    if picture["missing_real"] is None:
        return f"{name}: shares of synthetic rows; nothing of the real table is shown."
    noisy = ", measured with noise" if picture.get("noise") else ""
    text = (
        f"{name}: distance between real and synthetic {picture['tvd']:.3f} (0 is the same{noisy})"
    )
    if names:
        gaps = [abs(a - b) for a, b in zip(picture["real"], picture["synthetic"], strict=True)]
        i = gaps.index(max(gaps))
        text += f"; the largest difference is at {names[i]}, {share(picture['real'][i])} of real "
        text += f"and {share(picture['synthetic'][i])} of synthetic rows"
    if picture["missing_real"] or picture["missing_synthetic"]:
        text += f"; missing in {share(picture['missing_real'])} of real and "
        text += f"{share(picture['missing_synthetic'])} of synthetic rows"
    return text + "."


def _describe_associations(report: Report) -> str:
    found = report["associations"]
    names = found["columns"]
    pairs = [(i, j) for i in range(len(names)) for j in range(i)]
    if not found["real"]:
        return "How strongly columns belong together in the synthetic table (0 none, 1 fully)."
    if not pairs:
        return "There is one column only."
    gap = {(i, j): abs(found["real"][i][j] - found["synthetic"][i][j]) for i, j in pairs}
    i, j = max(gap, key=lambda pair: gap[pair])
    return (
        f"How strongly columns belong together differs most for {names[j]} and {names[i]}: "
        f"{found['real'][i][j]:.2f} in the real and {found['synthetic'][i][j]:.2f} in the "
        "synthetic table (0 none, 1 fully)."
    )


def _describe_pca(report: Report) -> str:
    pca = report["pca"]
    if pca is not None and not pca["real"]:
        return "Synthetic rows on their own two principal axes."
    if pca is None or pca["wscore"] is None:
        return "Real and synthetic rows on two principal axes; the score is not measured yet."
    return (
        f"Real and synthetic rows on two principal axes that hold {sum(pca['explained']):.0%} of "
        f"the spread; Wasserstein score {pca['wscore']:.3f} (1 is the same)."
    )


def _describe_density(report: Report) -> str:
    found = report["density"]
    if found is None:
        return "Densities are not measured yet."
    cells = zip(found["real"], found["synthetic"], strict=True)
    gaps = [abs(a - b) for real, made in cells for a, b in zip(real, made, strict=True)]
    return (
        "Where the synthetic table has too few (blue) or too many (orange) rows on two principal "
        f"axes; the largest difference is {share(max(gaps))} of rows in one cell."
    )


def _describe_probability(report: Report) -> str:
    found = report["dimension_probability"]
    if not found:
        return "There is no label to compare."
    worst = max(found, key=lambda p: abs(p["real"] - p["synthetic"]))
    return (
        f"Shares of {len(found)} labels, real against synthetic; the largest difference is "
        f"{worst['column']}: {worst['label']}, {share(worst['real'])} of real and "
        f"{share(worst['synthetic'])} of synthetic rows."
    )


def _describe_prediction(report: Report) -> str:
    points = report["dimension_prediction"]
    # a synthetic column of one value alone teaches nothing: predictable, but without a score
    found = [p for p in points if p["predictable"] and p["synthetic"] is not None]
    if not found:
        return "No column can be predicted from the others, or it is not measured yet."
    worst = max(found, key=lambda p: abs(p["real"] - p["synthetic"]))
    return (
        f"Prediction of {len(found)} columns, learnt from real against synthetic rows; the largest "
        f"difference is {worst['column']}, {worst['metric']} {worst['real']:.2f} against "
        f"{worst['synthetic']:.2f}."
    )


def _describe_pairs(report: Report) -> str:
    pairs = report["pairs"]
    if pairs is None or len(pairs["columns"]) < 2:
        return "Distances of pairs of columns are not measured yet, or there is one column only."
    names = pairs["columns"]
    cells = [(pairs["tvd"][i][j], i, j) for i in range(len(names)) for j in range(i)]
    worst, i, j = max(cells)
    return (
        f"Distances of {len(cells)} pairs of columns between real and synthetic; the largest is "
        f"{worst:.3f}, {names[j]} with {names[i]} (0 is the same)."
    )
