"""RunRequest: what a steward asks of a run; page, command line, API, database and worker share it.

Each default stands here and nowhere else.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

DEFAULT_ALPHA = 0.05  # the usual level of a test
DEFAULT_SHIFT = 0.75  # share of groups of 128 records that notice
PAY_SHARE = 0.02  # of the budget, that each question gets

Texts = Annotated[
    tuple[str, ...], BeforeValidator(lambda given: (given,) if isinstance(given, str) else given)
]
Device = Literal["auto", "cpu", "cuda"]


class RunRequest(BaseModel):
    """What is asked of a run, beside the table.

    Attributes:
      epsilon: budget under zero-out, > 0; inf turns differential privacy off.
      delta: in (0, 1/n); `default_delta(n)` when None.
      alpha: level of the tests that protect tagged columns, in (0, ½).
      shift: how different tagged columns must be, see `Protection`.
      certificate: ε of each group's private certificate, out of the budget; None for none.
      attempts: how often the run may begin anew until its check passes; all are paid for.
      review: share of the budget that buys histograms for people outside, in (0, ½]; None for none.
      score: share that buys noisy counts to compare runs by, in (0, ½]; None for none.
      pay: questions whose figures are bought for people outside, in words of the command `ask`.
      rows: synthetic records, ≥ 1; as many as are trained on when None.
      seed: of data-free randomness, never of noise; None draws one.
      name: of the run, for people; may be empty.
      without_privacy: what was written to allow a run without differential privacy.
      shift_words: what was written to allow a release that betrays hidden distributions.
      unit_words: what was written to allow a release that protects another unit.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    model: str
    epsilon: float
    delta: float | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    alpha: float = DEFAULT_ALPHA
    shift: float = DEFAULT_SHIFT
    certificate: float | None = None
    attempts: int = 1
    review: float | None = None
    score: float | None = None
    pay: Texts = ()
    rows: int | None = None
    seed: int | None = None
    device: Device = "auto"
    name: str = ""
    without_privacy: str = ""
    shift_words: str = ""
    unit_words: str = ""
