"""What several commands share: reading, refusing, printing."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping
from typing import Any

from core.privacy.plan import Guarantee
from core.schema.rounding_up import round_up
from core.services.limits import HIDDEN
from core.services.synthesis.options import SynthesisOptions, options_of, settings_of

OF_FILES = {  # options that say what is read and written, not what is made
    "command", "escape_formulas", "json", "key", "linked", "module", "out", "query", "quiet",
    "schema", "table", "to", "traceback",
}  # fmt: skip


def synthesis_options(options: argparse.Namespace) -> SynthesisOptions:
    """What `plan` or `synth` was asked, but for files and printing."""
    given: Mapping[str, Any] = {k: v for k, v in vars(options).items() if k not in OF_FILES}
    settings = settings_of(options.settings)
    return options_of(
        {**given, "settings": settings},
        table=options.table.name,
        declared=options.schema is not None,
    )


def lmdp_words(lmdp: dict[str, Any] | None) -> list[str]:
    """What is said of tagged columns, one line a group; nothing without tags."""
    if lmdp is None:
        return []
    lines = [f"α-LMDP: {sentence}" for sentence in lmdp["attack"]]
    if not lmdp["verdicts"]:
        how = HIDDEN[lmdp["hiding"]][0]
        return [f"α-LMDP: {how}, not tested (no certificate was paid for)", *lines]
    for result in lmdp["verdicts"]:
        if "count" in result:
            evidence = (
                f"noisy count {result['count']:.0f} of {result['groups']} groups, more than "
                f"{result['threshold']:.1f} needed"
            )
        elif "p_two_sample" in result:
            evidence = f"p {result['p_two_sample']:.3f} two-sample, {result['p_stein']:.3f} Stein"
        else:
            evidence = result["test"]
        granted = "granted" if result["granted"] else "REFUSED"
        columns = ", ".join(result["columns"])
        lines.append(f"α-LMDP {granted} for {columns} ({result['kind']}: {evidence})")
    return lines


def claim_of(guarantee: Guarantee) -> dict[str, Any]:
    """The claim for the JSON line; an infinite ε is the text "Infinity"."""
    numbers = guarantee.model_dump(mode="json", include={"epsilon", "epsilon_replace", "delta"})
    return numbers | {"method": str(guarantee.method), "private": guarantee.private}


def claim_words(claim: dict[str, Any]) -> str:
    """The claim in one line."""
    if not claim["private"]:
        return "no differential privacy"
    return (
        f"ε {round_up(claim['epsilon'], '.4g'):.4g} (zero-out), "
        f"{round_up(claim['epsilon_replace'], '.4g'):.4g} (replace-one) "
        f"at δ {round_up(claim['delta'], '.3g'):.3g}, {claim['method']}"
    )


def domain_words(options: argparse.Namespace) -> str:
    """How the domain becomes known, and that the claim hangs on it."""
    learned = f"; {', '.join(options.learn)} learned with noise" if options.learn else ""
    if options.learned_by is not None:
        learned += f"; what was still to be learned is used as run {options.learned_by} learned it"
    if options.schema is not None:
        return f"declared public (schema {options.schema.name}){learned}; ε is conditional on it"
    if options.declare_public:
        return f"declared public (inferred, --declare-public){learned}; ε is conditional on it"
    if not math.isfinite(options.epsilon):
        return "inferred; no ε is conditional on it"
    return f"learned with noise; kinds, formats and steps are taken as proposed{learned}"


def print_json(value: dict[str, Any]) -> None:
    """One object on one line, for programs."""
    print(json.dumps(value, ensure_ascii=False), flush=True)
