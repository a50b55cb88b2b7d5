"""A graphics card that is none: the processor computes, and what a real one refuses is refused.

Tensors that were made on "cuda" or moved there carry a mark. An operation on marked and unmarked
tensors, NumPy on a marked one, and a processor's generator drawing onto the card fail as they would
with a driver. A limit on the size of one tensor stands for memory that runs out. What a real card
rounds otherwise, and how fast it is, nobody learns here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

CUDA, CPU = torch.device("cuda:0"), torch.device("cpu")
# what takes tensors of two devices on a real card too
BETWEEN = {"copy_", "to", "cpu", "__getitem__", "__setitem__", "__set__"} | {
    "_has_compatible_shallow_copy_type"
}
_make = torch.nn.Parameter.__new__


class TwoDevicesError(AssertionError):
    """What a driver would refuse."""


def on_card(x: Tensor) -> bool:
    """Whether a tensor lies on the card."""
    return bool(x.__dict__.get("on_card", False))


def tensors(value: Any) -> Iterator[Tensor]:
    """All tensors in arguments or results."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from tensors(one)


class Card(TorchFunctionMode):
    """While the block lasts there is a card.

    Args:
      room: numbers of the largest tensor that it can make.

    Attributes:
      made: how many tensors were made on it.
      refused: how often its memory ran out.
    """

    def __init__(self, room: float = float("inf")) -> None:
        super().__init__()
        self.room, self.made, self.refused = room, 0, 0

    def __enter__(self) -> Card:
        def parameter(kind: Any, data: Any = None, requires_grad: bool = True) -> Any:
            made = _make(kind, data, requires_grad)
            made.__dict__["on_card"] = data is not None and on_card(data)
            return made

        torch.nn.Parameter.__new__ = parameter
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        torch.nn.Parameter.__new__ = _make

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs, name = dict(kwargs or {}), func.__name__
        if name in ("device", "_parse_to"):  # of names alone
            return func(*args, **kwargs)
        if name == "__get__" and func.__self__ in (Tensor.device, Tensor.is_cuda):
            here = on_card(args[0])
            return (CUDA if here else CPU) if func.__self__ is Tensor.device else here
        args, kwargs, asked = _without_devices(args, kwargs)
        inputs = [*tensors(args), *tensors(kwargs)]
        if name == "to" and len(inputs) > 1:
            asked = on_card(inputs[1])
        asked = False if name == "cpu" else asked
        self._check(name, inputs, kwargs, asked)
        here = any(map(on_card, inputs)) if asked is None else asked
        result = func(*args, **kwargs)
        if name in ("to", "cpu") and here != on_card(args[0]) and result is args[0]:
            result = result.clone()
        if name == "__set__" and func.__self__ is Tensor.data:
            args[0].__dict__["on_card"] = any(map(on_card, tensors(args[1:])))
        self._mark(tensors(result), here, {id(x) for x in inputs})
        return result

    def _check(
        self, name: str, inputs: list[Tensor], kwargs: dict[str, Any], asked: bool | None
    ) -> None:
        if asked and isinstance(kwargs.get("generator"), torch.Generator):
            raise TwoDevicesError(f"{name}: a generator of the processor draws on the card")
        marks = {on_card(x) for x in inputs if on_card(x) or x.dim() > 0}
        if len(marks) > 1 and name not in BETWEEN:
            there = [f"{tuple(x.shape)} {'card' if on_card(x) else 'processor'}" for x in inputs]
            raise TwoDevicesError(f"{name}: tensors of two devices: {', '.join(there)}")
        if name in ("numpy", "__array__") and True in marks:
            raise TwoDevicesError(f"{name}: of a tensor on the card")

    def _mark(self, results: Iterator[Tensor], here: bool, known: set[int]) -> None:
        for x in results:
            if id(x) in known:
                continue  # changed in place: where it was
            x.__dict__["on_card"] = here
            self.made += here
            if here and x.numel() > self.room:
                self.refused += 1
                raise torch.OutOfMemoryError("CUDA out of memory (simulated)")


def _without_devices(args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any], bool | None]:
    """The arguments for the processor, and whether they asked for the card; None for neither."""
    asked: bool | None = None

    def plain(value: Any) -> Any:
        nonlocal asked
        device = isinstance(value, torch.device)
        named = isinstance(value, str) and value.split(":")[0] in ("cuda", "cpu")
        if not (device or named):
            return value
        asked = str(value).startswith("cuda")
        return CPU if device else "cpu"

    return tuple(map(plain, args)), {name: plain(one) for name, one in kwargs.items()}, asked
