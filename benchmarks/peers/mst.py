"""MST with its own defaults, from a checkout of ryan112358/private-pgm (version in the report)."""

from __future__ import annotations

import sys

import numpy as np
from exchange import TableCodes, arguments, chosen, finish, read

PACKAGES = ("jax", "numpy", "pandas")

if __name__ == "__main__":
    options = arguments()
    sys.path[:0] = [str(options.checkout / "mechanisms"), str(options.checkout / "src")]
    settings = chosen(options)
    frame, schema = read(options)
    codes = TableCodes(schema, options.log_bins)

    # `mechanisms/mst.py` and this file share a name; this one is running as __main__.
    import mst
    from mbi import Dataset, Domain

    def synthesize():
        """Fit and draw as many rows as MST estimates that there are."""
        np.random.seed(options.seed)
        data = Dataset(codes.encode(frame), Domain.fromdict(codes.sizes))
        drawn = mst.MST(data, options.epsilon, options.delta)
        return codes.decode(drawn.df, np.random.default_rng(options.seed))

    finish(options, synthesize, settings, PACKAGES)
