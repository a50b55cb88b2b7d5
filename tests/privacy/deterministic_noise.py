"""Noise that a test can repeat."""

import numpy as np


class DeterministicNoise:
    """A `NoiseSource`; what it protects is not private and is marked so."""

    private = False

    def __init__(self, seed: int):
        self._generator = np.random.Generator(np.random.PCG64(seed))

    def generator(self) -> np.random.Generator:
        """The one seeded generator, moved on by every draw."""
        return self._generator
