"""The audit refutes models that are broken on purpose; honest twins are in test_audit.py."""

import pytest

from core.audit.audit import Sizes, Trial
from core.privacy.dpsgd.stream import SecretStream
from tests.audit.broken_audit import by_place

pytestmark = pytest.mark.slow

SEED = 11


@pytest.mark.parametrize("model", ["p3gm", "ppem"])
def test_draws_by_place_are_caught(model, monkeypatch):
    """One record more moves every later record's draw, which who knows the seed foretells."""
    trial = Trial(model, 1.0, seed=SEED, sizes=Sizes(records=512, repeats=150))
    monkeypatch.setattr(SecretStream, "draws", by_place(SEED))
    assert trial.leave_one_out().lower_bound > trial.budget.epsilon
