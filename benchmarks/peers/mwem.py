"""MWEM+PGM: a checkout of ryan112358/private-pgm, as many rounds as columns, all pairs of columns.

The model may grow to `max_model_size` MB, as in its script, whose settings are those below.
"""

from __future__ import annotations

import importlib.util
import sys
from itertools import combinations

import numpy as np
from exchange import TableCodes, arguments, chosen, finish, read

PACKAGES = ("jax", "numpy", "pandas")

if __name__ == "__main__":
    options = arguments()
    folder = options.checkout / "mechanisms"
    sys.path[:0] = [str(folder), str(options.checkout / "src")]
    settings = chosen(options, max_model_size=25.0, max_cells=10_000)
    frame, schema = read(options)
    codes = TableCodes(schema, options.log_bins)

    from mbi import Dataset, Domain

    # its file's name is no module's
    found = importlib.util.spec_from_file_location("mwem_pgm", folder / "mwem+pgm.py")
    mwem_pgm = importlib.util.module_from_spec(found)
    found.loader.exec_module(mwem_pgm)

    def synthesize():
        """Fit and draw as many rows as it estimates that there are."""
        np.random.seed(options.seed)
        domain = Domain.fromdict(codes.sizes)
        pairs = [p for p in combinations(domain, 2) if domain.size(p) <= settings["max_cells"]]
        drawn = mwem_pgm.mwem_pgm(
            Dataset(codes.encode(frame), domain),
            options.epsilon,
            options.delta,
            workload=pairs,
            maxsize_mb=settings["max_model_size"],
        )
        return codes.decode(drawn.df, np.random.default_rng(options.seed))

    finish(options, synthesize, settings, PACKAGES)
