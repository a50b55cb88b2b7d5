"""Tab-PE as its own tabular examples run it, from a checkout of microsoft/DPSDA.

As there: 1,000 rows, populations kept apart by label, the labels' shares taken from the rows
without noise (a leak of its example's, left as it is), five rounds of sampling and then ranking.
Bounds and labels are given, where its example reads them from the rows. A column that may be absent
becomes a list or gets the middle of its range, since Tab-PE knows no absent values.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
from exchange import arguments, chosen, finish, read

PACKAGES = ("torch", "numpy", "pandas")
# Its package imports these for images and text at once; the tabular example calls none of them.
NOT_FOR_TABLES = ("azure", "azure.identity", "clip", "cleanfid", "fld", "openai", "torchvision")
MARK, ABSENT = "v:", "absent"  # marked labels stay text on their way through its CSV file


def stand_in() -> None:
    """Let the package be imported without its parts for images and text."""

    class Finder:
        """Finds a stand-in for whatever is below one of the names."""

        def find_spec(self, name, path=None, target=None):
            from importlib.machinery import ModuleSpec

            if name.split(".")[0] in {n.split(".")[0] for n in NOT_FOR_TABLES}:
                return ModuleSpec(name, self, is_package=True)
            return None

        def create_module(self, spec):
            module = MagicMock(name=spec.name)
            module.__path__, module.__spec__ = [], spec
            return module

        def exec_module(self, module):
            """Nothing to run."""

    sys.meta_path.insert(0, Finder())


class Prepared:
    """The table as Tab-PE reads it: three lists of columns, one label, no absent value."""

    def __init__(self, frame: pd.DataFrame, schema: dict) -> None:
        self.schema, self.target = schema, schema["target"]
        columns = [c for c in schema["columns"] if c["name"] != self.target]
        listed = [c for c in columns if c.get("categories")]
        numbers = [c for c in columns if not c.get("categories")]
        self.kinds = {
            "cat_columns": [c["name"] for c in listed],
            "int_columns": [c["name"] for c in numbers if c["kind"] == "integer"],
            "float_columns": [c["name"] for c in numbers if c["kind"] != "integer"],
            "label_columns": [self.target],
        }
        self.columns = {c["name"]: c for c in columns}
        self.frame = frame.copy()
        for column in schema["columns"]:
            name = column["name"]
            if column.get("categories"):
                self.frame[name] = (MARK + frame[name]).fillna(ABSENT)
            else:
                middle = 0.5 * (column["low"] + column["high"])
                filled = frame[name].fillna(round(middle)).clip(column["low"], column["high"])
                self.frame[name] = filled

    def info(self, kind) -> dict:
        """What `TabularCSV.get_tab_info` says, from what is declared."""
        out = {}
        for name in self.kinds["cat_columns"]:
            column = self.columns[name]
            absent = [ABSENT] if column["missing"] else []
            labels = [MARK + label for label in column["categories"]]
            out[name] = {"categories": [*labels, *absent], "type": kind.CATEGORICAL}
        for names, which in (("int_columns", kind.INTEGER), ("float_columns", kind.FLOAT)):
            for name in self.kinds[names]:
                column = self.columns[name]
                out[name] = {"min": column["low"], "max": column["high"], "type": which}
        return out

    def back(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Its output in our columns, on their grids."""
        out = {}
        for column in self.schema["columns"]:
            values = frame[column["name"]]
            if column.get("categories"):
                values = values.astype(object).mask(values == ABSENT).str.removeprefix(MARK)
            elif column["step"]:
                steps = np.round((values.astype(float) - column["low"]) / column["step"])
                values = np.round(column["low"] + column["step"] * steps, 6)
            out[column["name"]] = values
        return pd.DataFrame(out)


def evolve(table: Prepared, options, settings: dict, folder: Path) -> pd.DataFrame:
    """Tab-PE's example with these settings; the last population's selected rows."""
    from pe.api import TabularAPI
    from pe.constant.data import VARIATION_API_FOLD_ID_COLUMN_NAME
    from pe.data import TabularColumnType, TabularCSV
    from pe.embedding import TabularEmbedding
    from pe.histogram import NearestNeighbors
    from pe.population import CompositePopulation, PEPopulation
    from pe.runner import PE

    table.frame.to_csv(folder / "table.csv", index=False)
    (folder / "metadata.json").write_text(json.dumps(table.kinds))
    private = TabularCSV(str(folder / "table.csv"), str(folder / "metadata.json"))
    info, rounds = table.info(TabularColumnType), int(settings["iterations"])
    api = TabularAPI(
        info=info,
        mutation_rate_init=0.5,
        mutation_rate_final=0.01,
        decay_type="polynomial",
        gamma=0.2,
        num_iterations=rounds,
    )
    nearest = NearestNeighbors(
        embedding=TabularEmbedding(info=info), mode="L2", lookahead_degree=0, backend="torch"
    )
    first = PEPopulation(api=api, keep_selected=False, selection_mode="sample",
                         initial_variation_api_fold=0, next_variation_api_fold=1,
                         histogram_threshold=0)  # fmt: skip
    later = PEPopulation(api=api, keep_selected=True, selection_mode="rank",
                         initial_variation_api_fold=3, next_variation_api_fold=3)  # fmt: skip
    population = CompositePopulation(populations=[first] * 5 + [later] * (rounds - 5))
    np.random.seed(options.seed)
    evolved = PE(priv_data=private, population=population, histogram=nearest).run(
        num_samples_schedule=[int(settings["rows"])] * rounds,
        delta=options.delta,
        epsilon=options.epsilon,
        save_checkpoint=False,
    )
    selected = evolved.filter({VARIATION_API_FOLD_ID_COLUMN_NAME: -1})
    names = list(selected.metadata["feature_columns"])
    out = pd.DataFrame(selected.data_frame["PE.TABULAR"].tolist(), columns=names)
    labels = [one.column_values[table.target] for one in selected.metadata.label_info]
    out[table.target] = [labels[i] for i in selected.data_frame["PE.LABEL_ID"]]
    return out


if __name__ == "__main__":
    options = arguments()
    sys.path.insert(0, str(options.checkout))
    stand_in()
    logging.disable(logging.INFO)
    pd.options.mode.copy_on_write = True
    settings = chosen(options, rows=1_000, iterations=30)
    frame, schema = read(options)
    table = Prepared(frame, schema)

    def synthesize():
        """Evolve a population and write it in our columns."""
        with tempfile.TemporaryDirectory() as folder:
            return table.back(evolve(table, options, settings, Path(folder)))

    finish(options, synthesize, settings, PACKAGES)
