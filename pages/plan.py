"""Plan: choose a model and ε, see what will be spent and on what, then start."""

from __future__ import annotations

import math

import streamlit as st

from core.figures.budget import budget_figure
from core.models.card import Card
from core.privacy.accounting.accountant import attacker_best_guess
from core.privacy.plan import Phase, Plan, default_delta
from core.runs.accounts.account import DEFAULT_LIMIT, table_account
from core.runs.execution import noisy_scores
from core.runs.execution.review_histograms import shown_columns
from core.runs.storage.records import TableRecord
from core.services import planning, runs
from core.table.schema import SchemaError
from pages.parts import domains, guard, models, protection, routes, shared

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
        domains.dangers(table)
        if st.button("Look at the table", type="primary", icon=":material/arrow_back:"):
            routes.go("tables", table=table.id)
        return
    left, right = st.columns([3, 2], gap="large")
    with left:
        choice = models.choose()
        epsilon = _epsilon(table)
        hidden = protection.choices(table, choice.card, epsilon) | _outside(epsilon)
        hidden |= _comparable(table, epsilon)
        extra = _details(table, choice)
    with right:
        _summary(table, choice.card, epsilon, extra | {"hidden": hidden})


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


def _outside(epsilon: float) -> dict[str, float]:
    """What people outside the house may see of real shares, and what that costs."""
    if not math.isfinite(epsilon):
        return {}
    share = st.select_slider(
        "For people outside: real shares with noise, out of the same ε",
        REVIEW_SHARES,
        value=0.0,
        format_func=lambda one: f"{one:.0%} of the budget" if one else "none",
        key="review_share",
        help="Without it a report for outside shows synthetic rows alone. With it, each column's "
        "real shares are released once, with noise, and may be shown to anyone.",
    )
    return {"review": float(share)} if share else {}


def _comparable(table: TableRecord, epsilon: float) -> dict[str, float]:
    """Whether this run may be compared with others without looking, and what that costs."""
    try:
        domain = table.schema.domain()
    except SchemaError:  # the summary says what is wrong
        return {}
    if not math.isfinite(epsilon) or not shown_columns(domain):
        return {}
    key = noisy_scores.cells_key(domain, table.training_n)
    if noisy_scores.released_cells(shared.store(), table.id, key) is not None:
        st.caption(
            ":material/casino: An earlier run has bought noisy counts of these columns: this one "
            "can be compared by them without looking at real data, at no cost."
        )
        return {}
    wanted = st.toggle(
        "Let this run be compared with others without looking at real data",
        key="score",
        help=f"About {noisy_scores.DEFAULT_SHARE:.0%} of the budget buys noisy counts, once for "
        "this table. Runs are scored by them, and the best can be picked by its score: the "
        "certificate then says that ε covers the choice.",
    )
    return {"score": noisy_scores.DEFAULT_SHARE} if wanted else {}


def _details(table: TableRecord, choice: models.Choice) -> dict[str, object]:
    """Folded choices: rows, name, device, δ and the model's own settings."""
    extra: dict[str, object] = {}
    with st.expander("Rows, name and device", icon=":material/settings:"):
        extra["rows"] = st.number_input(
            "Synthetic rows",
            1,
            10_000_000,
            table.training_n,
            help="More can be made later, for free.",
        )
        extra["name"] = st.text_input("Name of this run (optional)", max_chars=80)
        extra["device"] = st.radio(
            "Device",
            ["auto", "cpu", "cuda"],
            format_func={
                "auto": "GPU if there is one, else processor",
                "cpu": "Processor",
                "cuda": "GPU",
            }.__getitem__,
        )
        extra["seed"] = st.number_input(
            "Seed (optional)",
            min_value=0,
            value=None,
            step=1,
            help="Fixes starting weights and draws, never the privacy noise: two runs with one "
            "seed still differ, because repeatable noise would reveal the data.",
        )
    with st.expander("Advanced", icon=":material/science:"):
        extra["delta"] = st.number_input(
            "δ: chance that the promise fails altogether",
            min_value=1e-12,
            max_value=1.0 / table.training_n * 0.999,
            value=default_delta(table.training_n),
            format="%.1e",
            help="Must be below 1/n. The default is the smaller of one in a million and 1/(10 n).",
        )
        settings = dict(choice.settings)
        for one in choice.more:
            value = models.setting(choice.card, one)
            if value != one.default:  # a model may know a better default for some plans
                settings[one.name] = value
        extra["settings"] = settings
    return extra


def _summary(table: TableRecord, card: Card, epsilon: float, extra: dict[str, object]) -> None:
    """The plan, its picture, the ledger before and after, and the button that spends."""
    st.subheader("What will happen", anchor=False)
    plan = None
    try:
        plan = planning.make_plan(
            table.schema,
            table.training_n,
            planning.PlanRequest(
                model=card.id,
                epsilon=epsilon,
                delta=float(str(extra["delta"])),
                settings=dict(extra["settings"]),  # type: ignore[call-overload]
                **dict(extra["hidden"]),
            ),  # type: ignore[call-overload]
        )
    except ValueError as error:
        st.error(f"{error}", icon=":material/error:")
        if st.button("Back to the table", icon=":material/arrow_back:"):
            routes.go("tables", table=table.id)
    if plan is None:
        return
    target = table.schema.target or "none"
    st.caption(f"{table.name}: {table.training_n:,} rows{_kept(table)}, target {target}.")
    _numbers(plan)
    st.plotly_chart(
        budget_figure(plan.model_dump(mode="json")),
        config={"displayModeBar": False},
        key="budget",
        alt="Share of the budget that each private phase takes.",
    )
    shared.stages(plan, key="stages")
    with st.expander("What is released, in words", icon=":material/list:"):
        for phase in plan.phases:
            st.markdown(f"**{phase.title}** — {phase.what} {_noise(phase, plan.n)}")
    if any(not stage.private for stage in card.stages) and "steps" in plan.settings:
        st.markdown(
            f":material/model_training: Then {plan.settings['steps']:,} training steps that touch "
            "no private data."
        )
    domains.declared_domains(table)
    protection.words(plan)
    seconds = runs.expected_seconds(shared.store(), table.id, plan)
    st.markdown(
        f":material/timer: {shared.duration(seconds)} on this machine, going by earlier runs."
        if seconds is not None
        else ":material/timer: No earlier run to judge by; the time left shows once it trains."
    )
    _ledger(table)
    _start(table, plan, extra)


def _kept(table: TableRecord) -> str:
    kept = table.n - table.training_n
    return f" to train on, {kept:,} kept out for review" if kept else ""


def _noise(phase: Phase, n: int) -> str:
    """How often a phase runs, on how much, with what noise."""
    times = "Once" if phase.count == 1 else f"{phase.count:,} times"
    on = "on all rows"
    if phase.sampling_rate is not None and phase.sampling_rate < 1:
        on = f"on random batches of about {phase.sampling_rate * n:,.0f} rows"
    if phase.rho is not None:
        chance = math.exp(math.sqrt(8.0 * phase.rho))
        return f"{times}, {on}. One record changes the odds of a choice {chance:.4f}-fold at most."
    if not phase.noise_multiplier:
        return f"{times}, {on}. No noise."
    return f"{times}, {on}. Noise: {phase.noise_multiplier:.2f} × what one record can change."


def _numbers(plan: Plan) -> None:
    claim = plan.guarantee
    if not claim.private:
        st.badge("No differential privacy", icon=":material/warning:", color="red")
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
    account = table_account(shared.store(), table.id)
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


def _start(table: TableRecord, plan: Plan, extra: dict[str, object]) -> None:
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
    allowed, shift_words = protection.confirm(table, plan)
    if not allowed:
        label = "Not possible after what these people's earlier releases hide or show"
    if st.button(
        label, type="primary", icon=":material/play_arrow:", disabled=not (ready and allowed)
    ):
        seed = extra["seed"]
        with shared.plain_errors():
            run = runs.start(
                shared.store(),
                shared.launcher(),
                table_id=table.id,
                plan=plan,
                rows=int(str(extra["rows"])),
                seed=None if seed is None else int(str(seed)),
                device=str(extra["device"]),
                name=str(extra["name"] or ""),
                confirmation=confirmation,
                shift_words=shift_words,
            )
            routes.go("training", run=run.id)


if __name__ == "__main__":
    routes.front_door()  # a server that has run no page yet runs this file by itself
