"""What `frontier.py` shows: ratios against the best peer, where ours lose, and curves over ε."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from plotly.subplots import make_subplots

from benchmarks.frontier_figures import FIGURES, Values

__all__ = ["curves", "heading", "markdown", "table_words"]

REAL_ROWS = "real rows"
CURVES = ("auroc", "auroc_trees", "tvd_2way", "c2st")
Runs = dict[str, dict[str, Any]]
Means = dict[str, dict[str, float]]  # by tool, then by figure


def heading(facts: dict[str, Any]) -> str:
    """What every page begins with: how figures are made, where, and what each tool was.

    Args:
      facts: as `frontier.Results.facts` says them.
    """
    machine, runs = facts["machine"], facts["runs"]
    judged = ", ".join(f"{name} {number}" for name, number in machine["judged with"].items())
    days = sorted({run["date"] for run in runs.values()})
    commits: dict[str, set[str]] = defaultdict(set)  # by what else is known of a tool
    for run in runs.values():
        if "versions" in run:
            versions = {name: x for name, x in run["versions"].items() if name != "commit"}
            facts_of_tool = (_pairs(run["used"]) or "usual settings", _pairs(versions))
            words = f"- {_tool(run)}: {'; '.join(filter(None, facts_of_tool))}"
            commits[words].add(run["versions"]["commit"])
    tools = [f"{words}; commit {', '.join(sorted(ids))}" for words, ids in commits.items()]
    lines = [
        "# Frontier",
        "",
        facts["protocol"],
        "",
        f"{machine['cores']} cores, {machine['system']}, Python {machine['python']}, {judged}; "
        f"{' to '.join(dict.fromkeys((days[0], days[-1]))) if days else 'no run'}. Seconds are of "
        "whole processes that shared the machine with other work: upper bounds. Each run's load, "
        "settings and versions are in the JSON file.",
        "",
        *sorted(tools),
    ]
    return "\n".join(lines) + "\n\n"


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(values.items()))


def markdown(runs: Runs, ceilings: dict[str, Values], peers: tuple[str, ...]) -> str:
    """A section for every table and ε, and the means over tables.

    Args:
      runs: as stored.
      ceilings: of learning from real rows, by table.
      peers: the names of tools that are not ours.
    """
    parts = []
    settings = _settings(runs)
    for (table, epsilon), group in settings.items():
        parts.append(_section(table, epsilon, group, ceilings.get(table, {}), peers))
    for epsilon in sorted({epsilon for _, epsilon in settings}):
        groups = {t: _means(group) for (t, e), group in settings.items() if e == epsilon}
        both = {t: means for t, means in groups.items() if _both(means, peers)}
        if len(both) > 1:
            parts.append(_over_tables(epsilon, both, peers))
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _settings(runs: Runs) -> dict[tuple[str, float], list[dict[str, Any]]]:
    """Runs by table and ε."""
    groups = defaultdict(list)
    for run in runs.values():
        groups[table_words(run), run["epsilon"]].append(run)
    return dict(sorted(groups.items()))


def table_words(run: dict[str, Any]) -> str:
    """A run's table, with its rows where they are not the table's own number."""
    size = "" if run["rows"] is None else f", {run['rows']:,} rows"
    return str(run["table"]) + size


def _tool(run: dict[str, Any]) -> str:
    """A tool with its settings, where they are not the usual ones."""
    changed = f" ({', '.join(run['settings'])})" if run["settings"] else ""
    return run["tool"] + changed


def _values(group: list[dict[str, Any]]) -> dict[str, dict[str, list[float]]]:
    """All seeds' figures, by tool and figure."""
    out: dict[str, dict[str, list[float]]] = {}
    for run in group:
        for key, value in run.get("figures", {}).items():
            if value is not None:
                out.setdefault(_tool(run), {}).setdefault(key, []).append(value)
    return out


def _means(group: list[dict[str, Any]]) -> Means:
    return {
        tool: {key: float(np.mean(values)) for key, values in figures.items()}
        for tool, figures in _values(group).items()
    }


def _is_peer(tool: str, peers: tuple[str, ...]) -> bool:
    return tool.split(" ")[0] in peers


def _section(
    table: str,
    epsilon: float,
    group: list[dict[str, Any]],
    real: Values,
    peers: tuple[str, ...],
) -> str:
    """One table at one ε: a row a figure, a column a tool, and who loses where."""
    values, means = _values(group), _means(group)
    seeds = max((len({run["seed"] for run in group if _tool(run) == tool}) for tool in means),
                default=0)  # fmt: skip
    spread = "; mean ± half the range over seeds" if seeds > 1 else ""
    lines = [f"## {table}, ε = {epsilon:g}{spread}", ""]
    lines += _table(means, values, real, peers)
    lines += ["", *_verdicts(means, peers)]
    for run in group:
        if "failed" in run:
            last = run["failed"].strip().splitlines()[-1]
            lines.append(f"- {_tool(run)}, seed {run['seed']}, failed: {last}")
    return "\n".join(lines)


def _table(
    means: Means,
    values: dict[str, dict[str, list[float]]],
    real: Values,
    peers: tuple[str, ...],
) -> list[str]:
    """The lines of a table of figures; the last column is the ratio of ours to the best peer."""
    tools = sorted(means, key=lambda tool: (_is_peer(tool, peers), tool))
    lines = [
        "| figure (↑ higher is better) | real rows | " + " | ".join(tools)
        + " | best of ours / best peer |",
        "|---" * (len(tools) + 3) + "|",
    ]  # fmt: skip
    for key, figure in FIGURES.items():
        if not any(key in means[tool] for tool in tools):
            continue
        cells = [_cell(values[tool].get(key), key) for tool in tools]
        top = real.get(key)
        ceiling_words = "–" if top is None else _number(top, key)
        arrow = "↑" if figure.higher else "↓"
        lines.append(
            f"| {figure.title} {arrow} | {ceiling_words} | "
            + " | ".join(cells)
            + f" | {_ratio(means, key, peers)} |"
        )
    return lines


def _cell(values: list[float] | None, key: str) -> str:
    if not values:
        return "–"
    half = 0.5 * (max(values) - min(values))
    spread = f" ± {_number(half, key)}" if len(values) > 1 else ""
    return _number(float(np.mean(values)), key) + spread


def _number(value: float, key: str) -> str:
    """Four decimals of a share or an area, whole seconds and megabytes."""
    if not FIGURES[key].utility:
        return f"{value:.0f}"
    return f"{value:.2f}" if key == "spurious" else f"{value:.4f}"


def _best(means: Means, key: str, tools: list[str]) -> tuple[str, float] | None:
    """The tool that does best in a figure, and how; None where none has it."""
    there = [(tool, means[tool][key]) for tool in tools if key in means[tool]]
    if not there:
        return None
    pick = max if FIGURES[key].higher else min
    return pick(there, key=lambda one: one[1])


def _ratio(means: Means, key: str, peers: tuple[str, ...]) -> str:
    """Best of ours over the best peer, with both names; it says so where ours loses."""
    ours = _best(means, key, [tool for tool in means if not _is_peer(tool, peers)])
    theirs = _best(means, key, [tool for tool in means if _is_peer(tool, peers)])
    if ours is None or theirs is None:
        return "–"
    times = "–" if theirs[1] == 0.0 else f"{ours[1] / theirs[1]:.3g} ×"
    names = f"{ours[0]} / {theirs[0]}"
    return f"{times} {names}" + (", **ours loses**" if _behind(ours[1], theirs[1], key) else "")


def _behind(ours: float, theirs: float, key: str) -> bool:
    return ours < theirs if FIGURES[key].higher else ours > theirs


def _verdicts(means: Means, peers: tuple[str, ...]) -> list[str]:
    """For each of our models, in how many utility figures it is ahead, and where it loses."""
    others = [tool for tool in means if _is_peer(tool, peers)]
    lines = []
    for tool in sorted(set(means) - set(others)):
        compared, lost = 0, []
        for key, figure in FIGURES.items():
            best = _best(means, key, others)
            if best is None or key not in means[tool] or not figure.utility:
                continue
            compared += 1
            if _behind(means[tool][key], best[1], key):
                mine, theirs = _number(means[tool][key], key), _number(best[1], key)
                lost.append(f"{figure.title} {mine} against {theirs} ({best[0]})")
        if compared:
            where = f"; loses in {'; '.join(lost)}" if lost else ""
            ahead = compared - len(lost)
            lines.append(f"- {tool}: level or ahead in {ahead} of {compared} figures{where}")
    return lines


def _both(means: Means, peers: tuple[str, ...]) -> bool:
    """Whether one of ours and a peer are there to be compared."""
    return len({_is_peer(tool, peers) for tool in means}) == 2


def _over_tables(epsilon: float, groups: dict[str, Means], peers: tuple[str, ...]) -> str:
    """Means over tables, of the tools and figures that all of these tables have."""
    tools = sorted(set.intersection(*[set(group) for group in groups.values()]))
    every = [group[tool] for group in groups.values() for tool in tools]
    keys = [key for key in FIGURES if all(key in figures for figures in every)]
    means: Means = {
        tool: {key: float(np.mean([group[tool][key] for group in groups.values()])) for key in keys}
        for tool in tools
    }
    head = f"## Mean over {', '.join(groups)}, ε = {epsilon:g}"
    if not tools:
        return f"{head}\n\nNo tool ran on all of them."
    single = {tool: {key: [x] for key, x in figures.items()} for tool, figures in means.items()}
    return "\n".join([head, "", *_table(means, single, {}, peers), "", *_verdicts(means, peers)])


def curves(runs: Runs, ceilings: dict[str, Values], peers: tuple[str, ...], path: Path) -> None:
    """Draw figures over ε, a row of pictures a table; the page loads plotly.js from its network.

    Args:
      runs: as stored.
      ceilings: of learning from real rows, by table: a dotted line.
      peers: the names of tools that are not ours; their lines are dashed.
      path: of the HTML file.
    """
    settings = _settings(runs)
    tables = sorted({table for table, _ in settings})
    if not tables:
        return
    titles = [f"{table}: {FIGURES[key].title}" for table in tables for key in CURVES]
    figure = make_subplots(rows=len(tables), cols=len(CURVES), subplot_titles=titles)
    tools = sorted({_tool(run) for run in runs.values()})
    epsilons = sorted({epsilon for _, epsilon in settings})
    in_legend: set[str] = set()
    for i, (table, key) in enumerate((table, key) for table in tables for key in CURVES):
        lines: dict[str, dict[float, float]] = {tool: {} for tool in tools}
        for epsilon in epsilons:
            for tool, means in _means(settings.get((table, epsilon), [])).items():
                if key in means:
                    lines[tool][epsilon] = means[key]
        top = ceilings.get(table, {}).get(key)
        if top is not None:
            lines[REAL_ROWS] = dict.fromkeys(epsilons, top)
        for tool, points in lines.items():
            if points:
                dash = "dot" if tool == REAL_ROWS else "dash" if _is_peer(tool, peers) else "solid"
                colour = "#888888" if tool == REAL_ROWS else _colour(tools.index(tool))
                figure.add_scatter(
                    x=list(points),
                    y=list(points.values()),
                    name=tool,
                    mode="lines" if tool == REAL_ROWS else "lines+markers",
                    legendgroup=tool,
                    showlegend=tool not in in_legend,
                    line={"color": colour, "dash": dash},
                    row=i // len(CURVES) + 1,
                    col=i % len(CURVES) + 1,
                )
                in_legend.add(tool)
    figure.update_xaxes(
        type="log", title="ε", tickvals=epsilons, ticktext=[f"{e:g}" for e in epsilons]
    )
    figure.update_layout(height=320 * len(tables), width=380 * len(CURVES), template="simple_white")
    figure.write_html(path, include_plotlyjs="cdn", div_id="frontier")


def _colour(i: int) -> str:
    """The i-th of ten colours that are told apart by most eyes."""
    from plotly.colors import qualitative

    return str(qualitative.Safe[i % len(qualitative.Safe)])
