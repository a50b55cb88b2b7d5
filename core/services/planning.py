"""make_plan: what a run would do to a table and what it would cost.

Reads no data and needs no tensors.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence

from pydantic import ValidationError

from core.encoding.layout.layout import Layout
from core.inference.measured import PAYABLE
from core.inference.questions import QuestionError, check, question_words, read_words, words
from core.lmdp.level import GROUP, GROUP_LEVEL
from core.message import Message, ReportedError
from core.models.card import Card
from core.models.planning import DiscoverDomain, plan_fit
from core.models.registry import cards, synthesizer
from core.models.step import Step, planned_phases
from core.privacy.discovery.open_domain import (
    OpenDomain,
    open_domain,
    planned_schema,
    refuse_tagged,
)
from core.privacy.plan import Budget, Phase, Plan, Protection, default_delta
from core.runs.execution.noisy_scores import ScoreCounts
from core.runs.execution.paid_release import Certify, MeasureQuestion, ReviewHistograms
from core.runs.request import PAY_SHARE, RunRequest
from core.schema.column import DomainColumn, DomainSource
from core.schema.schema import Domain, Schema
from core.schema.surrogates import check_room


def make_plan(schema: Schema, n: int, request: RunRequest) -> Plan:
    """The plan of a model for a schema and n records; touches no data.

    What nobody declared is learned first, with noise; without privacy it is taken as proposed.
    Histories are learned by models that can, see `as_learnable`.

    Args:
      n: number of records to train on (public), ≥ 1: `TableRecord.training_n`.

    Raises:
      ValueError: one plain line on what is wrong (SchemaError, or the model's own words).
      KeyError: no such model.
    """
    private, schema = math.isfinite(request.epsilon), as_learnable(schema, request.model)
    if schema.sensitive and schema.walked:
        raise ReportedError(
            "Distributions cannot be hidden where it is learned how a person's rows follow on "
            "one another. Turn one of the two off on the Tables page."
        )
    if schema.person is not None and schema.person.files[1:] and not schema.walked:
        raise ReportedError(
            "Several linked tables need a model that learns how a person's rows follow on one "
            "another: {models}.",
            models=", ".join(card.name for card in cards() if synthesizer(card.id).histories),
        )
    wanted = open_domain(schema) if private else OpenDomain()
    refuse_tagged(schema, wanted.names)
    tried = planned_schema(schema, private=private)
    check_room(tried.columns, n, schema.person)
    layout = Layout(tried.domain())
    domain = layout.domain  # what models see is what they and the counts pay for
    try:
        delta = default_delta(n) if request.delta is None else request.delta
        budget = Budget(epsilon=request.epsilon, delta=delta)
        model = synthesizer(request.model)
        protection = _protection(domain, n, request, model.card)
        alpha = {"alpha": request.alpha} if protection and model.card.protects else {}
        plan = plan_fit(
            model,
            domain,
            n,
            budget,
            {**alpha, **request.settings},
            added=_added(domain, n, budget, protection, request, _asked(schema, layout, request)),
            attempts=request.attempts,
            unit=schema.person,
            discover=DiscoverDomain.of(wanted, budget) if wanted.names else None,
        )
    except ValidationError as error:
        raise ValueError(_plain(request.model, error)) from None
    return plan.model_copy(update={"protection": protection})


def as_learnable(schema: Schema, model: str) -> Schema:
    """The schema as a model learns it: a person's rows without their order, where it knows none."""
    person = schema.person
    if person is None or person.history is None or synthesizer(model).histories:
        return schema
    history = person.history.model_copy(update={"learned": False})
    return schema.model_copy(update={"person": person.model_copy(update={"history": history})})


def _protection(domain: Domain, n: int, request: RunRequest, card: Card) -> Protection | None:
    """What is promised of tagged columns; None without any.

    Raises:
      ValueError: nothing would hide them, the certificate cannot be had, or attempts would leak;
        one plain line.
    """
    private = math.isfinite(request.epsilon)
    certificate, attempts = request.certificate, request.attempts
    if not domain.sensitive:
        if certificate is not None or attempts > 1:
            raise ReportedError("A certificate and attempts need tagged columns; none is tagged.")
        return None
    _check_shift(request, card)
    if attempts > 1 and private and certificate is None:
        raise ReportedError(
            "Beginning anew until the check passes would reveal what the check saw. Ask for a "
            "private certificate, or allow one attempt."
        )
    if private and certificate is not None and n < GROUP:
        raise ReportedError(
            "A private certificate needs {group} records at least and the table has "
            "{n}. Choose the inside check.",
            group=GROUP,
            n=n,
        )
    return Protection(
        groups=domain.sensitive,
        alpha=request.alpha,
        shift=request.shift,
        certificate=certificate if private else None,
    )


def _check_shift(request: RunRequest, card: Card) -> None:
    """Refuse to call tagged columns hidden where nothing would hide them."""
    shift = request.shift
    if shift > GROUP_LEVEL:
        return
    if shift > 0.0:
        raise ReportedError(
            "A shift of {shift:g} hides nothing: {group} records notice a table that is not "
            "shifted at all in up to {group_level:.0%} of tries. Choose a stronger one.",
            shift=shift,
            group=GROUP,
            group_level=GROUP_LEVEL,
        )
    if not card.protects:
        able = " or ".join(one.name for one in cards() if one.protects)
        raise ReportedError(
            "Without a shift {name} hides nothing: the tagged columns would come "
            "out as they are. Choose a shift, train {able}, or remove the tags.",
            name=card.name,
            able=able,
        )
    if request.review or request.score:
        raise ReportedError(
            "Counts of real rows would undo what training hides, because no shift covers them. "
            "Choose a shift, or leave out pictures for people outside and noisy scores."
        )


def _added(
    domain: Domain,
    n: int,
    budget: Budget,
    protection: Protection | None,
    request: RunRequest,
    questions: Sequence[str],
) -> tuple[Phase, ...]:
    """The private accesses beside the model's own; none where no privacy is claimed."""
    if not budget.private:
        return ()
    bought = ((ReviewHistograms, request.review), (ScoreCounts, request.score))
    steps: list[Step] = [kind(budget, share, request.attempts) for kind, share in bought if share]
    certified = [Certify(protection, budget)] if protection else []
    measured = [MeasureQuestion(budget, PAY_SHARE, text=text) for text in questions]
    return planned_phases([*steps, *measured, *certified], domain, n)


def _asked(schema: Schema, layout: Layout, request: RunRequest) -> tuple[str, ...]:
    """The questions that are paid for, each once; refuses one that cannot be."""
    proposed, output, texts = proposed_domain(schema), layout.output, []
    seen = {c.name for c in layout.domain.columns if c in output.columns}
    possible = PAYABLE[output.person is not None :]  # rows of people are not counted
    for text in request.pay:
        check(question := read_words(text, proposed), proposed)
        same = seen.issuperset(question.columns(proposed))
        if question.statistic not in possible or not same or output.sensitive or layout.files:
            raise QuestionError(
                "Cannot be measured with noise: {what}. Possible are shares, means, differences of "
                "two groups, and counts where nobody has several rows; of columns that rules leave "
                "alone, in a table that hides no distribution and whose rows have no order.",
                what=words(question),
            )
        texts.append(shlex.join(question_words(question)))
    return tuple(dict.fromkeys(texts))


def proposed_domain(schema: Schema) -> Domain:
    """What can be asked of a table before a run has learned anything; for the steward alone."""
    kept = [column for column in schema.columns if column.modelled]
    source = {"source": DomainSource.DECLARED}
    columns = [DomainColumn(**column.fields() | source) for column in kept]
    known = tuple(column for column in columns if column.declared)
    target = schema.target if schema.target in {column.name for column in known} else None
    return Domain(columns=known, target=target)


def _plain(model: str, error: ValidationError) -> str:
    """What was wrong with a setting, in one line."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return Message("{model} has no setting called '{where}'", model=model, where=where)
    return f"{where}: {first['msg'].lower()}, not {first['input']!r}"
