"""The picture of one column in both tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.figures import elements as look
from core.figures.elements import Dumped, Figure, Trace
from core.inference.report_intervals import figures_words
from core.message import Message, joined

AS_SHIFTED = Message("real, shifted like the table")
NAMED = 6  # shares that a sentence names
REAL_FILL = "rgba(0,114,178,0.45)"
SYNTHETIC_FILL = "rgba(213,94,0,0.25)"


def column_figure(report: Dumped, name: str) -> Figure:
    """One column, real against synthetic: share of rows per bin or label, missing apart.

    Raises:
      KeyError: the report holds no column of that name.
    """
    picture = report["columns"][name] | {"intervals": _intervals(report, name)}
    if picture["labels"] is not None:
        labels = list(picture["labels"])
        return look.figure(*_state_bars(labels, picture, picture["real"], picture["synthetic"]))
    return _histogram(picture)


def describe_column(report: Dumped, name: str) -> Message:
    """The figure in words.

    Raises:
      KeyError: the report holds no column of that name.
    """
    picture = report["columns"][name]
    ends = interval_words(report, name)
    if picture["missing_real"] is None:
        shown = Message("{name}: shares of synthetic rows. Nothing real is shown.", name=name)
        return joined([shown, *ends])
    distance = Message(
        "{name}: the distance between real and synthetic is {distance:.3f} (0: equal).",
        name=name,
        distance=picture["tvd"],
    )
    return joined(
        [distance, *ends, *_noted(picture), *_largest_difference(picture), *_missing(picture)]
    )


def _intervals(report: Dumped, name: str) -> Trace:
    """How far the column's synthetic figures may be off; empty where that is not known."""
    return dict((report.get("intervals") or {}).get("columns", {}).get(name, {}))


def interval_words(report: Dumped, name: str) -> list[Message]:
    """How far a column's means and shares may be off from the real ones, in a sentence."""
    told = figures_words(_intervals(report, name))[:NAMED]
    if not told:
        return []
    return [Message("In the real table (95%): {figures}.", figures=joined(told, ", "))]


def _noted(picture: Trace) -> Iterator[Message]:
    """How real shares were measured, where that is not exactly."""
    if picture.get("shifted"):
        yield Message("Real shares are shown as the released table shifts them, with noise.")
    elif picture.get("noise"):
        yield Message("Real shares were measured with noise.")


def _largest_difference(picture: Trace) -> Iterator[Message]:
    labels = [Message("“{label}”", label=label) for label in picture["labels"] or []]
    names = labels or look.spans(picture["edges"] or [], picture["kind"])
    if names:
        gaps = [abs(a - b) for a, b in zip(picture["real"], picture["synthetic"], strict=True)]
        i = gaps.index(max(gaps))
        yield Message(
            "The largest difference is at {name}: {real} of real and {synthetic} of synthetic "
            "rows.",
            name=names[i],
            real=look.share(picture["real"][i]),
            synthetic=look.share(picture["synthetic"][i]),
        )


def _missing(picture: Trace) -> Iterator[Message]:
    if picture["missing_real"] or picture["missing_synthetic"]:
        yield Message(
            "Missing in {real} of real and {synthetic} of synthetic rows.",
            real=look.share(picture["missing_real"]),
            synthetic=look.share(picture["missing_synthetic"]),
        )


def _state_bars(
    labels: Sequence[str], picture: Trace, real: Sequence[float], synthetic: Sequence[float]
) -> tuple[list[Trace], Trace]:
    """Two horizontal bars per label, "missing" last; one where nothing real may be shown."""
    named = _real_name(picture)
    shown: dict[Message, list[float]] = {named: list(real)}
    synthetic = list(synthetic)
    if not picture["real"] and picture["missing_real"] is None:
        shown = {}
    if picture["missing_real"] or picture["missing_synthetic"]:
        labels = [*labels, look.MISSING_VALUES]
        if shown:
            shown[named].append(picture["missing_real"])
        synthetic.append(picture["missing_synthetic"])
    shown[look.SYNTHETIC] = synthetic
    hover = _hovers(labels, shown.get(named, []), synthetic, picture)
    at = list(range(len(labels)))
    layout: Trace = {
        "barmode": "group",
        "bargap": 0.25,
        "xaxis": look.axis(Message("share of rows"), tickformat=".0%", rangemode="tozero"),
        "yaxis": look.axis("", autorange="reversed", showgrid=False, **look.name_ticks(labels)),
        "height": 110 + 30 * len(labels),
        "hovermode": "closest",
    }
    data = [look.bars(name, at, values, hover) for name, values in shown.items()]
    if shown.get(named) and picture.get("noise"):
        data[0]["error_x"] = _whiskers(picture["noise"])
    if halves := picture.get("intervals", {}).get("shares"):
        both = [*halves, picture["intervals"]["missing"]][: len(synthetic)]
        data[-1]["error_x"] = _whiskers(0.0) | {"type": "data", "array": both}
    return data, layout


def _real_name(picture: Trace) -> Message:
    """What real shares are called: not real where they are shifted as the released table is."""
    return AS_SHIFTED if picture.get("shifted") else look.REAL


def _whiskers(noise: float) -> Trace:
    """The 95 % interval of the noise that a real share was released with."""
    return {"type": "constant", "value": noise, "color": look.LINE, "thickness": 1, "width": 3}


def _hovers(
    names: Sequence[str], real: Sequence[float], synthetic: Sequence[float], picture: Trace
) -> list[Message]:
    noise, named = picture.get("noise"), _real_name(picture)
    about = (
        Message("")
        if noise is None
        else Message(" (± {noise}, with noise)", noise=look.share(noise))
    )
    hovers = []
    for i, name in enumerate(names):
        rows = [look.bold(name)]
        if real:
            part = Message("{name}: {share} of rows", name=named, share=look.share(real[i]))
            rows.append(joined([part, about], ""))
        rows.append(
            Message("{name}: {share} of rows", name=look.SYNTHETIC, share=look.share(synthetic[i]))
        )
        hovers.append(look.lines(*rows))
    return hovers


def _edges(picture: Trace) -> list[float]:
    """Of bins, by the first value of each; those of whole numbers lie half a step before it."""
    edges, stepped = picture["edges"] or [], picture["kind"] == "number"
    moved = stepped and picture["scale"] == "linear" and edges[:1] != edges[1:]
    return [edge + picture.get("step", 0.0) / 2.0 for edge in edges] if moved else edges


def _histogram(picture: Trace) -> Figure:
    """Bins as filled steps (real) under an outline (synthetic), missing beside them on one scale.

    An atom such as the exact 0 of an amount would dwarf every bin, so it has a strip of its own.
    """
    edges, kind, real = _edges(picture), picture["kind"], picture["real"]
    atoms = [i for i in range(len(edges) - 1) if edges[i] == edges[i + 1]]
    whole = [i for i in range(len(edges) - 1) if i not in atoms]
    names, halves = look.spans(edges, kind), picture["intervals"].get("shares")
    of_atoms = {"shares": [halves[i] for i in atoms], "missing": 0.0} if halves else {}
    gaps = bool(picture["missing_real"] or picture["missing_synthetic"]) and bool(whole)
    states, state_layout = _state_bars(
        [names[i] for i in atoms],
        picture
        | {"intervals": of_atoms}
        | ({"missing_real": 0.0 if real else None, "missing_synthetic": 0.0} if gaps else {}),
        [real[i] for i in atoms] if real else [],
        [picture["synthetic"][i] for i in atoms],
    )
    if not whole:
        return look.figure(states, state_layout)
    ends = [edges[i] for i in whole] + [edges[whole[-1] + 1]]
    data = _steps(
        [real[i] for i in whole] if real else [],
        [picture["synthetic"][i] for i in whole],
        [names[i] for i in whole],
        picture,
        [*(halves[i] for i in whole), picture["intervals"]["missing"]] if halves else [],
    )
    ticks = look.edge_ticks(ends, kind, most=5 if gaps else 7)
    if gaps:
        at = len(whole) * 1.12 + 1
        _add_missing(data, picture, at)
        ticks["tickvals"].append(at)  # below the numbers, however long the last one is
        ticks["ticktext"].append(look.lines(Message(""), look.MISSING_VALUES))
    layout: Trace = {
        "bargap": 0.0,
        "xaxis": look.axis("", showgrid=False, tickangle=0, ticklabeloverflow="allow", **ticks),
        "margin": {"l": 10, "r": 30, "t": 36, "b": 10},
        "yaxis": look.axis(Message("share of rows"), tickformat=".1~%", rangemode="tozero"),
        "height": 340,
        "hovermode": "x",
    }
    if not atoms:
        return look.figure(data, layout)
    strip = min(0.4, 0.14 + 0.11 * len(atoms))  # of the figure's height
    for trace in states:
        trace |= {"xaxis": "x2", "yaxis": "y2", "showlegend": False}
    return look.figure(
        [*data, *states],
        layout
        | {
            "height": 340 + 50 * len(atoms),
            "barmode": "group",
            "yaxis": layout["yaxis"] | {"domain": [strip + 0.14, 1.0]},
            "xaxis2": state_layout["xaxis"] | {"anchor": "y2"},
            "yaxis2": state_layout["yaxis"] | {"anchor": "x2", "domain": [0.0, strip]},
        },
    )


def _add_missing(data: list[Trace], picture: Trace, at: float) -> None:
    """One more bar and outline, apart from the bins."""
    outline, filled = data[1], data[0]
    sides = picture["missing_real"], picture["missing_synthetic"]
    filled["x"].append(at)
    filled["y"].append(sides[0] if picture["real"] else sides[1])
    real = [sides[0]] if picture["real"] else []
    filled["hovertext"] += _hovers([look.MISSING_VALUES], real, [sides[1]], picture)
    outline["x"] += [None, at - 0.5, at - 0.5, at + 0.5, at + 0.5]
    outline["y"] += [None, 0.0, sides[1], sides[1], 0.0]


def _steps(
    real: Sequence[float],
    synthetic: Sequence[float],
    bins: Sequence[str],
    picture: Trace,
    halves: Sequence[float],
) -> list[Trace]:
    """Real bins as filled bars at 0, 1, 2, …; synthetic ones as an outline over them."""
    hover = _hovers(bins, real, synthetic, picture)
    at = [-0.5, *(x - 0.5 for x in range(len(bins))), len(bins) - 0.5, len(bins) - 0.5]
    outline: Trace = {
        "type": "scatter",
        "mode": "lines",
        "name": look.SYNTHETIC,
        "x": at,
        "y": [0.0, *synthetic, synthetic[-1], 0.0],
        "line": {"shape": "hv", "color": look.VERMILION, "width": 2},
        "hoverinfo": "skip",
    }
    filled: Trace = {
        "type": "bar",
        "name": _real_name(picture) if real else look.SYNTHETIC,
        "x": list(range(len(bins))),
        "y": list(real or synthetic),
        "marker": {"color": REAL_FILL if real else SYNTHETIC_FILL, "line": {"width": 0}},
        "showlegend": bool(real),
        "hovertext": hover,
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
    if real and picture.get("noise"):
        filled["error_y"] = _whiskers(picture["noise"])
    elif halves and not real:  # where bars stand for what was released, theirs is shown
        filled["error_y"] = _whiskers(0.0) | {"type": "data", "array": list(halves)}
    return [filled, outline]
