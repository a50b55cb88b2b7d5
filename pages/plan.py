"""Plan: choose a model and ε, see what will be spent and on what, then start."""

from __future__ import annotations

import math

import streamlit as st

from core.figures import dimension_wise as figures
from core.models.card import Card
from core.privacy.accounting.accountant import attacker_best_guess
from core.privacy.plan import Plan, default_delta
from core.runs.accounts.account import DEFAULT_LIMIT
from core.runs.execution.noisy_scores import DEFAULT_SHARE
from core.runs.execution.review_histograms import shown_columns
from core.runs.storage.records import TableRecord
from core.services import estimate, planning, selection, service
from core.services.plan_advice import phase_words
from core.table.schema import SchemaError
from pages.parts import (
    declared_domains,
    guard,
    lmdp_settings,
    model_choice,
    routes,
    run_details,
    shared,
)

EPSILONS = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 8.0, 10.0)
REVIEW_SHARES = (0.0, 0.02, 0.05, 0.1, 0.2)
MEANING = (
    (0.5, "Very strong: what a single person contributed is all but invisible."),
    (1.0, "Strong: the usual choice for data about people."),
    (3.0, "Moderate: fine for less sensitive data or large tables."),
    (8.0, "Weak: single unusual people may leave traces."),
    (math.inf, "Very weak: treat the result almost as you would the real table."),
)


def render() -> None:
    """The page."""
    guard.require("steward")
    shared.header("Plan", "Choose how to make the synthetic table and what it may cost in privacy.")
    table = shared.chosen_table() or _newest()
    if table is None:
        shared.nothing_yet("There is no table to plan for yet.", "Bring in a table", "tables")
        return
    if not shared.store().attested(table.id):
        st.info(
            "First confirm on the Tables page that this table's bounds and category names may be "
            "public. ε does not protect them.",
            icon=":material/fact_check:",
        )
        declared_domains.dangers(table)
        if st.button("Look at the table", type="primary", icon=":material/arrow_back:"):
            routes.go("tables", table=table.id)
        return
    left, right = st.columns([3, 2], gap="large")
    with left:
        model = model_choice.choose()
        epsilon = _epsilon(table)
        tagged = lmdp_settings.choose(table, model.card, epsilon)
        review = _review_share(epsilon)
        score = _score_share(table, epsilon)
        details = run_details.choose(table, model)
    with right:
        st.subheader("What will happen", anchor=False)
        try:
            request = planning.PlanRequest(
                model=model.card.id,
                epsilon=epsilon,
                delta=details.delta,
                settings=details.settings,
                alpha=tagged.alpha,
                shift=tagged.shift,
                certificate=tagged.certificate,
                attempts=tagged.attempts,
                review=review,
                score=score,
            )
            plan = planning.make_plan(table.schema, table.training_n, request)
        except ValueError as error:
            st.error(f"{error}", icon=":material/error:")
            if st.button("Back to the table", icon=":material/arrow_back:"):
                routes.go("tables", table=table.id)
            return
        _summary(table, model.card, plan)
        _start(table, plan, details)


def _newest() -> TableRecord | None:
    tables = shared.store().tables()
    if not tables:
        return None
    by_id = {table.id: table for table in tables}
    labels = shared.told_apart({table.id: table.name for table in tables})
    picked = st.selectbox("Table", list(by_id), format_func=labels.__getitem__)
    return by_id[picked]


def _epsilon(table: TableRecord) -> float:
    """ε with its meaning, or ∞ after an explicit switch."""
    st.subheader("Privacy", anchor=False)
    off = st.toggle(
        "No differential privacy (ε = ∞)",
        help="For tests with data that is public anyway. Every file is marked as not private.",
    )
    if off:
        st.error(
            "Nothing is protected. Anyone may learn from the result who is in the table and what "
            "their values are.",
            icon=":material/warning:",
        )
        return math.inf
    epsilon = st.select_slider(
        "ε: how much anyone may learn about one person (lower is more private)",
        EPSILONS,
        value=1.0,
    )
    words = next(text for limit, text in MEANING if epsilon <= limit)
    guess = attacker_best_guess(epsilon, default_delta(table.training_n))
    st.markdown(
        f"{words}  \nSomeone who would bet 50 : 50 on whether a person's record was used can, "
        f"after seeing the result, be right at most **{guess:.0%}** of the time."
    )
    return float(epsilon)


def _review_share(epsilon: float) -> float | None:
    """What people outside the house may see of real shares, as a share of the budget."""
    if not math.isfinite(epsilon):
        return None
    share = st.select_slider(
        "For people outside: real shares with noise, out of the same ε",
        REVIEW_SHARES,
        value=0.0,
        format_func=lambda share: f"{share:.0%} of the budget" if share else "none",
        key="review_share",
        help="Without it a report for outside shows synthetic rows alone. With it, each column's "
        "real shares are released once, with noise, and may be shown to anyone.",
    )
    return share or None


def _score_share(table: TableRecord, epsilon: float) -> float | None:
    """Whether this run may be compared without looking, as a share of the budget."""
    try:
        domain = table.schema.domain()
    except SchemaError:  # the plan says what is wrong
        return None
    if not math.isfinite(epsilon) or not shown_columns(domain):
        return None
    if selection.bought(shared.store(), table.id, domain, table.training_n):
        st.caption(
            ":material/casino: An earlier run has bought noisy counts of these columns: this one "
            "can be compared by them without looking at real data, at no cost."
        )
        return None
    wanted = st.toggle(
        "Let this run be compared with others without looking at real data",
        key="score",
        help=f"About {DEFAULT_SHARE:.0%} of the budget buys noisy counts, once for this "
        "table. Runs are scored by them, and the best can be picked by its score: the certificate "
        "then says that ε covers the choice.",
    )
    return DEFAULT_SHARE if wanted else None


def _summary(table: TableRecord, card: Card, plan: Plan) -> None:
    """The plan, its picture, and the ledger before it."""
    target = table.schema.target or "none"
    spared = table.n - table.training_n
    use = f" to train on, {spared:,} kept out for review" if spared else ""
    st.caption(f"{table.name}: {table.training_n:,} rows{use}, target {target}.")
    _numbers(plan)
    shared.picture(
        figures.budget_figure(plan.model_dump(mode="json")),
        key="budget",
        alt="Share of the budget that each private phase takes.",
    )
    shared.stages(plan, key="stages")
    with st.expander("What is released, in words", icon=":material/list:"):
        for phase in plan.phases:
            st.markdown(f"**{phase.title}** — {phase.what} {phase_words(phase, plan.n)}")
    if any(not stage.private for stage in card.stages) and "steps" in plan.settings:
        st.markdown(
            f":material/model_training: Then {plan.settings['steps']:,} training steps that touch "
            "no private data."
        )
    declared_domains.render(table)
    lmdp_settings.summary(plan)
    seconds = estimate.expected_seconds(shared.store(), table.id, plan)
    st.markdown(
        f":material/timer: {shared.duration(seconds)} on this machine, going by earlier runs."
        if seconds is not None
        else ":material/timer: No earlier run to judge by; the time left shows once it trains."
    )
    _ledger(table)


def _numbers(plan: Plan) -> None:
    claim = plan.guarantee
    if not claim.private:
        shared.NOT_PRIVATE.show()
        return
    one, two, three = st.columns(3)
    one.metric(
        "ε",
        f"{claim.epsilon:.2f}",
        help="Zero-out: one record contributes nothing. Lower is safer.",
    )
    two.metric(
        "ε, replace-one",
        f"{claim.epsilon_replace:.2f}",
        help="The same run, when neighbours differ by swapping one record for any other.",
    )
    three.metric("δ", f"{claim.delta:.0e}", help="Chance that the promise fails altogether.")


def _ledger(table: TableRecord) -> None:
    """What the ledger says of these people before this run."""
    account = service.account(shared.store(), table.id)
    spent = [e for e in account.entries if e.kind == "release"]
    if account.limit is None or account.left is None:
        fresh = (
            f"The first one opens their account with a limit of ε {DEFAULT_LIMIT:g} for all "
            "releases together. Another limit can be set on the Ledger page before it, not after."
        )
        st.caption(
            f":material/receipt_long: Earlier releases about these people in the ledger: "
            f"{len(spent)}. " + ("No limit was set before the first one." if spent else fresh)
        )
        return
    st.caption(
        f":material/receipt_long: Limit ε {account.limit:g} for these people: "
        f"{account.left.share:.0%} of it is left before this run."
    )


def _start(table: TableRecord, plan: Plan, details: run_details.RunDetails) -> None:
    """The button that spends."""
    st.info("Nothing private has been touched yet.", icon=":material/lock_open:")
    confirmation = ""
    if plan.budget.private:
        label = f"Train — spends ε = {plan.budget.epsilon:g} of this table's budget"
        ready = True
    else:
        confirmation = st.text_input(
            "Type “not private” to confirm", placeholder="not private", key="confirm_not_private"
        )
        ready = confirmation.strip().lower() == "not private"
        label = "Train without differential privacy"
    allowed, shift_words = lmdp_settings.confirm(table, plan)
    if not allowed:
        label = "Not possible after what these people's earlier releases hide or show"
    if st.button(
        label, type="primary", icon=":material/play_arrow:", disabled=not (ready and allowed)
    ):
        with shared.plain_errors():
            run = service.start(
                shared.store(),
                shared.launcher(),
                table_id=table.id,
                plan=plan,
                rows=details.rows,
                seed=details.seed,
                device=details.device,
                name=details.name,
                confirmation=confirmation,
                shift_words=shift_words,
            )
            routes.go("training", run=run.id)


if __name__ == "__main__":
    routes.front_door()  # a server that has run no page yet runs this file by itself
