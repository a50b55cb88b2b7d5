"""A small picture of one real column, for the Tables page."""

from __future__ import annotations

from collections.abc import Sequence

from core.figures import elements as look
from core.figures.elements import Dumped, Figure, Trace
from core.message import Message


def profile_figure(column: Dumped) -> Figure:
    """The picture, by what a profile counted.

    Args:
      column: `ColumnProfile.model_dump(mode="json")`: edges or labels, counts, other, missing.
    """
    counts, gaps, kind = list(column["counts"]), column["missing"], column["kind"]
    values = sum(counts) + column["other"]
    # Identifiers and text count values; everything else counts rows, of which gaps are a share.
    rows = values if kind in ("identifier", "text") else values / max(1.0 - gaps, 1e-12)
    shares = [count / rows for count in counts] if values else []
    layout: Trace = {"showlegend": False, "height": 190, "margin": dict.fromkeys("lrtb", 8)}
    if column["edges"] is not None:
        names: list[str] = [*look.spans(column["edges"], kind)]
        at = list(range(len(names)))
        ticks = look.edge_ticks(column["edges"], kind, most=5)
        if gaps:
            names, shares, at = [*names, look.MISSING_VALUES], [*shares, gaps], [*at, len(at) + 1]
            ticks["tickvals"].append(at[-1])
            ticks["ticktext"].append(look.MISSING_VALUES)
        trace = _small_bars(shares, names, missing=bool(gaps)) | {"x": at, "y": shares}
        layout |= {
            "bargap": 0.04,
            "xaxis": look.axis("", showgrid=False, **ticks),
            "yaxis": look.axis("", tickformat=".0~%", rangemode="tozero"),
        }
        return look.figure([trace], layout)
    ours = kind in ("identifier", "text")  # words of the product, which a profile keeps in English
    labels = [Message(label) if ours else label for label in column["labels"] or ()]
    if column["other"]:
        labels, shares = [*labels, Message("other")], [*shares, column["other"] / rows]
    if gaps:
        labels, shares = [*labels, look.MISSING_VALUES], [*shares, gaps]
    at = list(range(len(labels)))
    trace = _small_bars(shares, labels, missing=bool(gaps)) | {"x": shares, "y": at}
    layout |= {
        "height": 60 + 20 * max(len(labels), 1),
        "bargap": 0.25,
        "xaxis": look.axis("", tickformat=".0~%", rangemode="tozero"),
        "yaxis": look.axis("", autorange="reversed", showgrid=False, **look.name_ticks(labels)),
    }
    return look.figure([trace | {"orientation": "h"}], layout)


def _small_bars(shares: Sequence[float], names: Sequence[str], *, missing: bool) -> Trace:
    """Blue bars; the last one grey and hatched when it stands for missing values."""
    last = len(shares) - 1 if missing else -1
    return {
        "type": "bar",
        "marker": {
            "color": [look.LINE if i == last else look.BLUE for i in range(len(shares))],
            "pattern": {
                "shape": ["/" if i == last else "" for i in range(len(shares))],
                "fillmode": "overlay",
            },
            "line": {"width": 0},
        },
        "hovertext": [
            Message("<b>{name}</b>: {share}", name=name, share=look.share(part))
            for name, part in zip(names, shares, strict=True)
        ],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
