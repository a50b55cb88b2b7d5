"""Plan: choose a model and ε, see what will be spent and on what, then start."""

from __future__ import annotations

import streamlit as st

from core.figures.budget import budget_figure
from core.models.card import Card
from core.privacy.plan import Plan
from core.runs.accounts.account import DEFAULT_LIMIT, table_account
from core.runs.storage.records import TableRecord
from core.services import planning, purchases, recipe, runs
from core.services.plan_advice import phase_words
from pages.parts import (
    budget_choice,
    declared_domains,
    first_limit,
    foretold,
    glossary,
    guard,
    lmdp_settings,
    model_choice,
    routes,
    run_details,
    shared,
    shown_code,
    visible,
)
from pages.parts.plain import plain


def render() -> None:
    """The page."""
    guard.require("steward")
    shared.header("Plan", "Choose how to make the synthetic table and what it may cost in privacy.")
    table = shared.chosen_table() or _newest()
    if table is None:
        shared.nothing_yet("There is no table to plan for yet.", "Bring in a table", "tables")
        return
    if not shared.store().attested(table.id):
        _not_declared(table)
        return
    left, right = st.columns([3, 2], gap="large")
    with left:
        model = model_choice.choose(foretold.advised(table, budget_choice.USUAL).model)
        why = st.container()
        epsilon = budget_choice.epsilon(table)
        why.caption(f":material/recommend: {foretold.advised(table, epsilon).sentence}")
        tagged = lmdp_settings.choose(table, model.card, epsilon)
        review = budget_choice.review_share(epsilon)
        score = budget_choice.score_share(table, epsilon)
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
            st.error(plain(error), icon=":material/error:")
            if st.button("Back to the table", icon=":material/arrow_back:"):
                routes.go("tables", table=table.id)
            return
        _summary(table, model.card, plan)
        limit = first_limit.choose(table) if plan.budget.private else None
        code = recipe.run_code(
            table.name,
            request,
            rows=details.rows,
            seed=details.seed,
            device=details.device,
            people=table.people,
        )
        shown_code.show({"This run": code}, schema=table.schema, table_id=table.id)
    with shared.way_on():
        _start(table, plan, details, limit)


def _not_declared(table: TableRecord) -> None:
    """What comes before a plan: bounds and names that somebody declares public."""
    st.info(
        "First confirm on the Tables page that this table's bounds and category names may be "
        "public. ε does not protect them.",
        icon=":material/fact_check:",
    )
    declared_domains.dangers(table)
    if st.button("Look at the table", type="primary", icon=":material/arrow_back:"):
        routes.go("tables", table=table.id)


def _newest() -> TableRecord | None:
    tables = visible.tables(shared.store())
    if not tables:
        return None
    by_id = {table.id: table for table in tables}
    labels = shared.told_apart({table.id: table.name for table in tables})
    picked = st.selectbox("Table", list(by_id), format_func=labels.__getitem__)
    return by_id[picked]


def _summary(table: TableRecord, card: Card, plan: Plan) -> None:
    """The plan, its picture, and the ledger before it."""
    target = plain(table.schema.target or "none")
    spared, person = table.schema.holdout, table.schema.person
    # how many people there are in all is nobody's business but the count of those trained on
    grouped = person is not None and person.grouped
    out = f"{spared:.0%}" if grouped else f"{table.n - table.training_n:,}"
    use = f" to train on, {out} kept out for review" if spared else ""
    who = f"{table.training_n:,} {table.records}{use}"
    st.caption(f"{plain(table.name)}: {who}, target {target}.")
    _numbers(plan)
    foretold.show(table, card, plan)
    before = purchases.paid_before(shared.store(), table) if plan.budget.private else 0.0
    if before:
        total = before + plan.guarantee.epsilon
        st.caption(
            f":material/shopping_cart: Bounds and lists were bought for ε {before:.3g}; the "
            f"certificate will claim both together, ε {total:.3g}."
        )
    shared.picture(
        budget_figure(plan.model_dump(mode="json")),
        key="budget",
        alt="Share of the budget that each private phase takes.",
    )
    shared.stages(plan, key="stages")
    with st.expander("What is released, in words", icon=":material/list:"):
        if plan.guarantee.private:
            replaced = plan.guarantee.epsilon_replace
            st.caption(
                f"Counted as replace-one the same run has ε = {replaced:.2f}.",
                help=glossary.entry("zero-out", "replace-one"),
            )
        for phase in plan.phases:
            st.markdown(f"**{phase.title}** — {plain(phase.what)} {phase_words(phase, plan)}")
    if any(not stage.private for stage in card.stages) and "steps" in plan.settings:
        st.markdown(
            f":material/model_training: Then {plan.settings['steps']:,} training steps that touch "
            "no private data."
        )
    declared_domains.render(table)
    lmdp_settings.summary(plan)
    _ledger(table)


def _numbers(plan: Plan) -> None:
    claim = plan.guarantee
    if not claim.private:
        shared.NOT_PRIVATE.show()
        return
    one, two = st.columns(2)
    one.metric("ε", f"{claim.epsilon:.2f}", help=glossary.entry("ε", "zero-out"))
    two.metric("δ", f"{claim.delta:.0e}", help=glossary.entry("δ"))
    if plan.unit is not None:
        st.caption(f":material/person: This holds {plan.unit.words}.")


def _ledger(table: TableRecord) -> None:
    """What the ledger says of these people before this run."""
    account = table_account(shared.store(), table.id)
    spent = [e for e in account.entries if e.kind == "release"]
    if account.limit is None or account.left is None:
        fresh = (
            f"The first one opens their account with a limit of ε {DEFAULT_LIMIT:g} for all "
            "releases together, unless another one is set before it. It cannot be set after."
        )
        st.caption(
            f":material/receipt_long: Earlier releases about these people in the ledger: "
            f"{len(spent)}. " + ("No limit was set before the first one." if spent else fresh)
        )
        return
    st.caption(
        f":material/receipt_long: Limit ε {account.limit:g} for these people: "
        f"{account.left.share:.0%} of it is left before this run, "
        f"{account.left.words(account.delta or 1e-6)} for one release."
    )


def _start(
    table: TableRecord, plan: Plan, details: run_details.RunDetails, limit: float | None
) -> None:
    """The button that spends.

    Args:
      table: to train on.
      plan: what it will spend.
      details: how the run is made.
      limit: of the account that it opens, None where there is nothing to choose.
    """
    st.caption(":material/lock_open: Nothing private has been touched yet.", width="content")
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
    if limit is not None and limit < plan.guarantee.epsilon:
        allowed, label = False, f"Not possible: the limit of ε {limit:g} is below this run's ε"
    if st.button(
        label, type="primary", icon=":material/play_arrow:", disabled=not (ready and allowed)
    ):
        with shared.plain_errors():
            first_limit.settle(table, limit)
            run = runs.start(
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
