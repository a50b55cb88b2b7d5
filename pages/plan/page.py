"""Plan: choose a model and ε, see what will be spent and on what, then start."""

from __future__ import annotations

import streamlit as st

from core.models.card import Card
from core.privacy.plan import Guarantee, Plan
from core.runs.accounts import spending
from core.runs.records import TableRecord
from core.runs.request import DEFAULT_SHIFT, RunRequest
from core.schema.rounding_up import round_up
from core.services import planning, recipe, runs
from core.services.estimates import domain_forecast, forecast
from core.services.plan_advice import phase_words
from pages.ledger import account_view
from pages.plan import budget_choice, forecast_view, lmdp_settings, model_choice, run_details
from pages.review import my_analysis
from pages.server import guard, routes
from pages.shared import glossary, shown_code
from pages.shared import widgets as shared
from pages.shared.language import number, said, say
from pages.shared.plain import plain
from pages.shared.workspace_store import store
from pages.tables import domain_source, linking, person_settings, schema_editor


def render() -> None:
    """The page."""
    guard.require("steward")
    shared.header(say("Plan"), say("Weigh privacy against quality."))
    table = shared.chosen_table() or shared.picked_table()
    if table is None:
        shared.empty_page(say("There is no table to plan for yet."), say("Add a table"), "tables")
        return
    if not _settled(table):
        return
    left, right = st.columns([2, 3], gap="large")
    expected, tags, options = st.container(), st.container(), st.container()
    with options:
        usual = forecast.advise_for(table.schema, n=table.training_n, epsilon=budget_choice.USUAL)
        model = model_choice.choose(usual.model)
        rest = st.expander(say("Options"), icon=":material/tune:", key="options")
    with rest:
        off = st.toggle(
            say("No differential privacy (ε = ∞)"),
            help=say("For tests with public data. Every file is marked as not private."),
        )
    with left:
        _table(table)
        epsilon = budget_choice.epsilon(off)
    with tags:
        tagged = lmdp_settings.choose(table, model.card, epsilon)
    with rest:
        review = budget_choice.review_share(epsilon)
        score = budget_choice.score_share(table, epsilon, tagged.get("shift", DEFAULT_SHIFT))
        details = run_details.choose(table, model, epsilon)
    with left:
        try:
            request = RunRequest(
                model=model.card.id,
                epsilon=epsilon,
                review=review,
                score=score,
                **details,
                **tagged,
            )
            plan = planning.make_plan(table.schema, table.training_n, request)
        except ValueError as error:
            st.error(plain(said(error)), icon=":material/error:")
            if st.button(say("Back to the table"), icon=":material/arrow_back:"):
                routes.go("tables", table=table.id)
            return
        claim = spending.promised_claim(plan, table.schema)
        advice = forecast.advise_for(table.schema, n=table.training_n, epsilon=epsilon)
        model_choice.advise(model, advice, histories=table.schema.walked)
        for sentence in claim.conditions:  # before a run, what of it was spent on learning earlier
            st.caption(plain(said(sentence)))
        limit = budget_choice.first_limit(table) if plan.budget.private else None
    with expected:
        forecast_view.show(table, plan, claim, right)
    with options:
        _details(table, model.card, plan, claim, request)
    with shared.action_bar():
        _start(table, plan, request, limit)


def _settled(table: TableRecord) -> bool:
    """Whether a plan can be made of what is declared; the page then says what comes before."""
    if not store().attested(table.id):
        st.info(
            say("First confirm on the Tables page what is known of this table's columns."),
            icon=":material/fact_check:",
        )
    elif not person_settings.answered(table):
        st.warning(said(person_settings.UNANSWERED), icon=":material/group:")
    else:
        return True
    routes.button(say("Go to the table"), "tables", primary=True, table=table.id)
    return False


def _details(
    table: TableRecord, card: Card, plan: Plan, claim: Guarantee, request: RunRequest
) -> None:
    """What is spent on what, for those who want to know; made once it is opened.

    Before it stand the questions that a run's rows shall answer.
    """
    my_analysis.pins(table.id, planning.proposed_domain(table.schema), (), key=f"plan_{table.id}")
    opened = st.expander(
        say("Details: δ, phases, noise, code"),
        icon=":material/account_tree:",
        key="details",
        on_change="rerun",
    )
    if not opened.open:
        return
    with opened:
        left, right = st.columns([2, 3], gap="large")
        with left:
            _claim(claim, plan)
            lmdp_settings.summary(plan)
            account_view.before_release(table)
            _released(plan)
            if any(not stage.private for stage in card.stages) and "steps" in plan.settings:
                n = plan.settings["steps"]
                steps = say("Then {n:,} training steps that use no private data.", n=n)
                st.markdown(f":material/model_training: {steps}")
            domain_source.declared_public(table)
        with right:
            shared.stages(plan)
            _learned(table, plan)
        code = recipe.run_code(
            table.name, request, account_id=table.account_id, schema=table.schema
        )
        shown_code.show({say("This run"): code}, schema=table.schema, table_id=table.id)


def _learned(table: TableRecord, plan: Plan) -> None:
    """What the run will keep of each column whose domain it learns, from public numbers."""
    lines = domain_forecast.learned_forecast(plan, table.schema)
    if not lines:
        return
    name, share, words = say("column or rule"), say("share of ε"), say("what to expect")
    rows = [{name: line.name, share: line.share, words: said(line.words)} for line in lines]
    shared.number_table(rows, (share,), ".2%")
    st.caption(say("Calculated from public numbers; no row was read."))


def _table(table: TableRecord) -> None:
    """Which table this is, how much of it is trained on, and what is to be predicted."""
    spared, person = table.schema.holdout, table.schema.person
    target = plain(table.schema.target) if table.schema.target else say("none")
    # how many people there are in all is nobody's business but the count of those trained on
    grouped = person is not None and person.grouped
    out = f"{spared:.0%}" if grouped else f"{table.n - table.training_n:,}"
    use = say(" for training, {out} kept out for review", out=number(out)) if spared else ""
    st.caption(
        say(
            "{table}: {n:,} {records!t}{use}, target {target}.",
            table=plain(table.name),
            n=table.training_n,
            records=table.records,
            use=use,
            target=target,
        )
    )
    linking.unit(table)


def _released(plan: Plan) -> None:
    with st.expander(say("What is released, in words"), icon=":material/list:"):
        if plan.guarantee.private:
            st.caption(
                say(
                    "Under replace-one, the same run has ε = {replaced:.2f}.",
                    replaced=round_up(plan.guarantee.epsilon_replace, ".2f"),
                ),
                help=glossary.entry("zero-out", "replace-one"),
            )
        for phase in plan.phases:
            what = f"{plain(said(phase.what))} {said(phase_words(phase, plan))}"
            st.markdown(f"**{said(phase.title)}** — {what}")


def _claim(claim: Guarantee, plan: Plan) -> None:
    """What the certificate will claim, with what earlier runs learned of the domain."""
    if not claim.private:
        shared.NOT_PRIVATE.show()
        return
    one, two = st.columns(2)
    one.metric("ε", number(spending.epsilon_text(claim)), help=glossary.entry("ε", "zero-out"))
    two.metric("δ", f"{round_up(claim.delta, '.3g'):.3g}", help=glossary.entry("δ"))
    if plan.unit is not None:
        st.caption(
            f":material/person: {say('The guarantee holds {unit!t}.', unit=plan.unit.words)}"
        )


def _start(table: TableRecord, plan: Plan, request: RunRequest, limit: float | None) -> None:
    """The button that spends; `limit` is of the account that it opens, None without a choice."""
    planned = say("Planning reads no rows and spends nothing.")
    st.caption(
        f":material/lock_open: {planned} {shared.spending_sentences(table.account_id)}",
        width="content",
    )
    label, confirmation, ready = _consent(table, plan)
    allowed, shift_words = lmdp_settings.confirm(table, plan)
    same, unit_words = account_view.confirm_unit(table, plan)
    if not allowed:
        label = say(
            "Not possible: conflicts with what earlier releases about these people hide or show"
        )
    elif not same:
        label = say("Not possible: earlier releases protect another unit")
    if limit is not None and limit < plan.guarantee.epsilon:
        allowed = False
        label = say("Not possible: the limit of ε = {limit:g} is below this run's ε", limit=limit)
    if st.button(
        label,
        type="primary",
        icon=":material/play_arrow:",
        disabled=not (ready and allowed and same),
        # what another tab changed meanwhile was not what this press was for
        key=schema_editor.schema_key(f"train_{plan.digest}_{label}", table),
    ):
        with shared.plain_errors():
            budget_choice.open_account(table, limit)
            run = runs.start(
                store(),
                shared.launcher(),
                table.id,
                plan,
                request.model_copy(
                    update={
                        "without_privacy": confirmation,
                        "shift_words": shift_words,
                        "unit_words": unit_words,
                    }
                ),
                schema=table.schema,
            )
            routes.go("training", run=run.id)


def _consent(table: TableRecord, plan: Plan) -> tuple[str, str, bool]:
    """The button's label, what was typed to allow a run without privacy, and whether it may go."""
    if plan.budget.private:
        spends = say(
            "Train: spends ε = {epsilon:g} of this table's budget", epsilon=plan.budget.epsilon
        )
        return spends, "", True
    words = say("not private")
    typed = st.text_input(
        say("Type “{words}” to confirm", words=words),
        placeholder=words,
        key=f"confirm_not_private_{table.id}",
    )
    return say("Train without differential privacy"), typed, typed.strip().lower() == words
