"""AIM, converged: many iterations in its last fit, which is post-processing and costs no budget.

From a checkout of ryan112358/private-pgm. Its script runs every fit for the same number of
iterations; here fits between rounds take `between` and the last one `last`. The workload is all
pairs of columns of at most `max_cells` cells, as in its script.
"""

from __future__ import annotations

import sys
from itertools import combinations
from types import SimpleNamespace

import numpy as np
from exchange import TableCodes, arguments, chosen, finish, read

PACKAGES = ("jax", "numpy", "pandas")

if __name__ == "__main__":
    options = arguments()
    sys.path[:0] = [str(options.checkout / "mechanisms"), str(options.checkout / "src")]
    settings = chosen(options, max_model_size=4.0, between=200, last=3_000, max_cells=10_000)
    frame, schema = read(options)
    codes = TableCodes(schema, options.log_bins)

    import aim
    from mbi import Dataset, Domain, estimation

    def mirror_descent(domain, measurements, *, iters, **more):
        """The last fit is the one that AIM asks for without a callback."""
        between = "callback_fn" in more
        return estimation.mirror_descent(
            domain,
            measurements,
            iters=iters if between else int(settings["last"]),
            **{"callback_fn": lambda *_: None} | more,
        )

    def synthesize():
        """Fit and draw as many rows as AIM estimates that there are."""
        aim.estimation = SimpleNamespace(mirror_descent=mirror_descent)
        domain = Domain.fromdict(codes.sizes)
        data = Dataset(codes.encode(frame), domain)
        pairs = [p for p in combinations(domain, 2) if domain.size(p) <= settings["max_cells"]]
        mechanism = aim.AIM(
            options.epsilon,
            options.delta,
            prng=np.random.RandomState(options.seed),
            max_model_size=settings["max_model_size"],
            max_iters=int(settings["between"]),
        )
        np.random.seed(options.seed)
        _, drawn = mechanism.run(data, [(pair, 1.0) for pair in pairs])
        return codes.decode(drawn.df, np.random.default_rng(options.seed))

    finish(options, synthesize, settings, PACKAGES)
