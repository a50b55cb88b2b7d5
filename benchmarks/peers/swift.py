"""SWIFT, or with `aim=1` AIM, from a checkout of google/dpsynth, on the same codes as AIM and MST.

A tenth of the budget goes to single columns, as its own tables do. It recommends cliques of 1e7
cells and 10,000 iterations, which take hours on two cores; `max_clique_size` and `iterations` say
what was used.
"""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
from exchange import TableCodes, arguments, chosen, finish, read

PACKAGES = ("jax", "mbi", "dp-accounting", "numpy", "pandas")

if __name__ == "__main__":
    options = arguments()
    sys.path.insert(0, str(options.checkout))
    settings = chosen(options, aim=0, iterations=2_000, max_clique_size=1e5, max_model_size=4)
    frame, schema = read(options)
    codes = TableCodes(schema, options.log_bins)

    import dp_accounting

    # its search begins at no budget at all, which dp-accounting 0.6 passes on
    dp_accounting.calibrate_dp_mechanism = partial(
        dp_accounting.calibrate_dp_mechanism,
        bracket_interval=dp_accounting.ExplicitBracketInterval(1e-6, options.epsilon + 1.0),
    )
    from dpsynth import CategoricalAttribute, TabularConfig
    from dpsynth.discrete_mechanisms import AIMConfig, SWIFTConfig

    def synthesize():
        """Fit and draw as many rows as it estimates that there are."""
        mechanism = SWIFTConfig(
            max_clique_size=settings["max_clique_size"], pgm_iters=settings["iterations"]
        )
        if settings["aim"]:
            mechanism = AIMConfig(
                max_model_size=settings["max_model_size"], pgm_iters=settings["iterations"]
            )
        domains = {
            name: CategoricalAttribute(possible_values=list(range(size)))
            for name, size in codes.sizes.items()
        }
        config = TabularConfig(domains=domains, discrete_mechanism=mechanism)
        fitted = config.calibrate(epsilon=options.epsilon, delta=options.delta)
        rng = np.random.default_rng(options.seed)
        drawn = fitted(rng, codes.encode(frame)).synthetic_data
        return codes.decode(drawn, np.random.default_rng(options.seed))

    finish(options, synthesize, settings, PACKAGES)
