"""ReportFigure: a picture of a report as it declares itself, and all of them in order.

A module of this folder that holds a `FIGURE`, or several `FIGURES`, is shown by the Review page,
where runs are compared and in the HTML export; so a new figure is one file. Pictures of something
else than a whole report (a column, a plan, several runs) have none and are called by name.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from core.figures.elements import Dumped, Figure
from core.message import Message
from core.quality.report.types import View

Tab = Literal["pairs", "plane", "predictions", "histories"]


@dataclass(frozen=True, kw_only=True)
class ReportFigure:
    """A declared figure.

    Attributes:
      id: in comments, links and the HTML export.
      order: figures are shown by rising order.
      name: a few words within a sentence.
      tab: of the Review page, where it stands.
      views: who may see it; "outside" only where it shows nothing but what a plan paid for.
      draw: a report as `Report.model_dump(mode="json")` → its figure; None where nothing is
        measured yet, or there is nothing to draw.
      describe: a report that has the figure → it in a sentence, for those who cannot see it.
      headed: whether the Review page gives it its heading, and nothing where it is not drawn.
      compared: whether several runs can stand side by side by it.
    """

    id: str
    order: int
    title: Message
    name: Message
    tab: Tab
    views: tuple[View, ...] = ("inside",)
    draw: Callable[[Dumped], Figure | None]
    describe: Callable[[Dumped], Message]
    headed: bool = False
    compared: bool = True

    def drawn(self, report: Dumped) -> Figure | None:
        """The figure, or None where this report's view may not show it or it is not measured."""
        return self.draw(report) if report["view"] in self.views else None


def report_figures() -> tuple[ReportFigure, ...]:
    """Every declared figure, by rising order."""
    folder = importlib.import_module("core.figures")
    modules = [
        importlib.import_module(f"core.figures.{module.name}")
        for module in pkgutil.iter_modules(folder.__path__)
    ]
    figures = [module.FIGURE for module in modules if hasattr(module, "FIGURE")]
    figures += [one for module in modules for one in getattr(module, "FIGURES", ())]
    return tuple(sorted(figures, key=lambda figure: figure.order))
