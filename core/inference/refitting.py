"""Making replicas: a run's mechanism, carried out on rows of its own model.

What is read here are rows that the model drew. So nothing costs ε, and no ledger hears of it: the
table's meter counts releases of made-up rows and is thrown away.

All of the mechanism is done anew, choices too: which cells a column has, which pairs are counted.
Only bounds, lists and mappings stay as the run learned them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from core.encoding.codec import Codec, Codes
from core.encoding.layout.layout import Layout
from core.encoding.person_rows import encoded_records, number_people
from core.inference.replicas import MOST_ROWS, Replica
from core.models.events import OnEvent
from core.models.layout_rows import laid_out
from core.models.saved_model import SavedModel
from core.models.step import FitContext
from core.models.synthesizer import Synthesizer
from core.privacy.discovery.lists import ListCounts
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.noise import NoiseSource
from core.privacy.plan import Plan
from core.schema.schema import Schema


@dataclass(frozen=True, kw_only=True)
class Refitting:
    """What replicas of a run are made of.

    Attributes:
      fitted: the run's model; the truth of every replica.
      plan: of the run.
      schema: of the run, with what it learned.
      rows: of the synthetic table.
      list_counts: that were released with learned lists.
      noise: where it comes from; None for the secure generator.
    """

    model: Synthesizer[Any]
    fitted: SavedModel
    plan: Plan
    schema: Schema
    rows: int
    list_counts: Mapping[str, ListCounts] = field(default_factory=dict)
    noise: NoiseSource | None = None

    def replica(self, seed: int, on_event: OnEvent) -> Replica:
        """One of them; tables of more than `MOST_ROWS` are taken as if they had so many.

        Args:
          seed: of what is drawn; noise has none.
          on_event: told how the fit goes; may end it.

        Raises:
          FitCancelled, FitPaused: the observer's signal was followed.
        """
        n = min(self.plan.n, MOST_ROWS)
        source = self._source(n, seed)
        plan = self.plan_for(n, n / self.plan.n)
        return Replica(source, self.released(source, plan, seed, on_event))

    def released(
        self, source: pd.DataFrame, plan: Plan, seed: int, on_event: OnEvent
    ) -> pd.DataFrame:
        """Rows of a model that is fitted to these, in a plan for as many records."""
        seeds = np.random.SeedSequence(seed).generate_state(2, np.uint64) >> np.uint64(2)
        fit, again = (int(one) for one in seeds)
        layout = Layout(self.schema.domain())
        codes, people = encoded_records(source, layout, self.schema.person)
        table = PrivateTable(codes, layout.domain, plan, people=people, noise_source=self.noise)
        with tempfile.TemporaryDirectory(prefix="replica-") as folder:
            context = FitContext(
                on_event=on_event,
                folder=Path(folder),
                seed=fit,
                start=self.fitted.base,
                list_counts=self._counted_again(Codec(layout.domain), codes, plan.n, fit),
            )
            fitted = SavedModel.of(self.model.fit(table, plan, context))
        return laid_out(fitted, layout).sample(min(self.rows, MOST_ROWS), again)

    def _source(self, n: int, seed: int) -> pd.DataFrame:
        """Rows of n records of the model: rows, histories, or people with their rows."""
        population, person = self.fitted.population(), self.schema.person
        if person is None or not person.grouped or person.walked:
            return population.sample(n, seed)
        number, rows = np.zeros(0, dtype=np.int64), n
        while len(number) < n * person.rows and (not len(number) or number.max() < n):
            rows *= 2
            source = population.sample(min(rows, n * person.rows), seed)
            number = number_people(source[list(person.columns)])[0]
        return source[number < n].reset_index(drop=True)

    def plan_for(self, n: int, part: float = 1.0) -> Plan:
        """The run's plan for n records, with a part of its noise and the model's cheaper settings.

        With fewer records than the run had, sampling errors are larger than its own, never smaller.
        """
        settings = self.model.configure(self.plan.settings, private=self.plan.budget.private)
        cheaper = self.model.replica_settings(settings, self.fitted.base).model_dump()
        phases = tuple(
            phase.model_copy(update={"noise_multiplier": phase.noise_multiplier * part})
            for phase in self.plan.phases
        )
        return self.plan.model_copy(update={"n": n, "settings": cheaper, "phases": phases})

    def _counted_again(
        self, codec: Codec, codes: Codes, n: int, seed: int
    ) -> dict[str, ListCounts]:
        """Counts of learned lists and ranges among rows of the model, with noise as before."""
        random, counted = np.random.default_rng(seed), {}
        for block in codec.blocks:
            kept = self.list_counts.get(block.column.name)
            if kept is None:
                continue
            states = codes.states[:, block.index]
            if kept.edges is None:
                counts = np.bincount(states, minlength=len(kept.counts))
            elif block.number is None:
                continue  # laid out otherwise
            else:
                numbers = block.numbers(states, codes.values[:, block.number].astype(np.float64))
                counts = np.histogram(numbers[states == 0], kept.edges)[0]
            std = kept.std * (n / self.plan.n)
            noise = random.standard_normal(len(std)) * std
            released = counts * (n / len(codes)) + noise
            counted[block.column.name] = ListCounts(released, std, kept.edges)
        return counted
