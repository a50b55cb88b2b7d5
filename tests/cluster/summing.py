"""A toy whose sum is released by the guarded table, and tells who computed of it."""

import os
from pathlib import Path

import torch
from torch import Tensor

from core.cluster import ray_summation
from core.models.step import FitContext
from core.privacy import summation
from core.privacy.guarded import PrivateTable
from core.privacy.mechanisms.additive import Mechanism, Rows
from core.privacy.plan import Plan
from tests.cluster import toy_node
from tests.runs import toy

MARKS = toy_node.MARKS  # a folder


class Marked(Mechanism):
    """How many records there are; who computes of it leaves a file with its number."""

    noise = "gaussian"
    sensitivity = 1.0

    def statistic(self, rows: Rows, mask: Tensor) -> Tensor:
        Path(os.environ[MARKS], str(os.getpid())).touch()
        return mask.double().sum().reshape(1)


class Summing(toy.Toy):
    def fit(self, table: PrivateTable, plan: Plan, context: FitContext) -> toy.ToyFitted:
        torch.set_num_threads(1)
        summation.BLOCK_CHUNKS = 1
        ray_summation.GRACE_SECONDS = 60.0
        noisy = table.release("sum", Marked())
        Path(os.environ[MARKS], "released").write_text(str(float(noisy[0])))
        return toy.ToyFitted(table.domain)
