"""What the steward declares of whole rows: whose they are, and what holds in every one of them.

Rows are read here only to count, for the steward alone, how many break a rule, and where the
steward declares public what they say of a rule's values.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from core.encoding.layout.layout import Layout
from core.encoding.layout.violations import count_violations, declared_from_batches
from core.proposing.rule_suggestions import MOST_ROWS, suggest_rules
from core.runs.records import TableRecord
from core.runs.storage.store import RunStore
from core.schema.column import changed
from core.schema.person import Person
from core.schema.rules.rules import AnyRule, Determines, Follows, parse_rule
from core.schema.schema import Schema
from core.services.recounting import BROKEN

TYPING_ERRORS = 0.02  # of the people with several rows, in whose rows a fixed value may differ
_FOUND = "rules found"  # of a table's profile: what holds in the rows


def change_person(store: RunStore, table: TableRecord, person: Person | None) -> TableRecord:
    """Say whose rows are protected together; a column that counts them comes out made up."""
    schema = changed(table.schema, person=person)
    counter = None if person is None else person.counter
    return _keep(store, table, schema if counter is None else schema.made_up(counter))


def change_rules(store: RunStore, table: TableRecord, rules: Sequence[AnyRule]) -> TableRecord:
    """Say what holds in every row, and count the rows that break it."""
    return _keep(store, table, changed(table.schema, rules=tuple(rules)))


def declare_values(store: RunStore, table: TableRecord, rule: AnyRule) -> TableRecord:
    """Declare public what the rows say of a rule's values: labels of codes, combinations."""
    settled = declared_from_batches(rule, store.batches(table.id, columns=list(rule.columns)))
    rules = tuple(settled if one == rule else one for one in table.schema.rules)
    return change_rules(store, table, rules)


def broken_rules(table: TableRecord) -> dict[str, int]:
    """How many rows break each settled rule, by its text; inside only."""
    return dict(table.profile.get(BROKEN, {}))


def look_for_rules(store: RunStore, table: TableRecord) -> TableRecord:
    """Note which rules the table's rows keep, for the steward alone; many rows are not read."""
    found = suggest_rules(table.schema.as_proposed(), _first_rows(store, table))
    profile = {**table.profile, _FOUND: [rule.text for rule in found]}
    return store.save_schema(table.id, table.schema, profile=profile)


def constant_columns(store: RunStore, table: TableRecord, keys: Sequence[str]) -> list[str]:
    """See `steady_columns`, for the steward alone; many rows are not read."""
    return steady_columns(_first_rows(store, table), keys)


def steady_columns(rows: pd.DataFrame, keys: Sequence[str]) -> list[str]:
    """Columns that never differ within a person, but for typing errors.

    None where no person has several rows.
    """
    known = rows.dropna(subset=list(keys))
    several = known[known.duplicated(list(keys), keep=False)]
    if several.empty:
        return []
    differ = (several.groupby(list(keys), observed=True).nunique(dropna=False) > 1).mean()
    return [str(name) for name, share in differ.items() if share <= TYPING_ERRORS]


def _first_rows(store: RunStore, table: TableRecord) -> pd.DataFrame:
    """As many rows as are looked at to suggest something."""
    rows = list[pd.DataFrame]()
    for batch in store.batches(table.id, schema=table.schema.as_proposed()):
        rows.append(batch)
        if sum(map(len, rows)) >= MOST_ROWS:
            break
    return pd.concat(rows, ignore_index=True)


def suggestions(table: TableRecord) -> tuple[AnyRule, ...] | None:
    """Rules that the rows keep beside those that stand; None until they were looked for."""
    if _FOUND not in table.profile:
        return None
    own = {rule.text for rule in table.schema.rules}
    return tuple(parse_rule(text) for text in table.profile[_FOUND] if text not in own)


def _keep(store: RunStore, table: TableRecord, schema: Schema) -> TableRecord:
    """The table with a schema whose rules can be kept, and the rows that break new ones counted."""
    settled = tuple(rule for rule in schema.rules if rule.settled)
    proposed = schema.as_proposed()

    def assumed(rule: AnyRule) -> AnyRule:
        """With some values: whether it can be kept at all does not hang on what the rows say."""
        if isinstance(rule, Determines):
            return rule.model_copy(update={"mapping": {}})
        first = tuple((proposed[name].categories or ("",))[0] for name in rule.columns)
        return rule.model_copy(update={"allowed": (first,)})

    rules = (*settled, *(assumed(rule) for rule in schema.rules if not rule.settled))
    proposed.model_copy(update={"rules": rules}).domain()
    domain = proposed.model_copy(update={"rules": settled}).domain()
    Layout(domain)  # says which rule cannot be kept
    known = table.profile.get(BROKEN, {}) if schema.columns == table.schema.columns else {}
    if schema.person != table.schema.person:
        known = {}
    same = [rule.text for rule in settled if rule in table.schema.rules]
    counts = {text: known[text] for text in same if text in known}
    if fresh := tuple(rule for rule in settled if rule.text not in counts):
        for several in (False, True):  # rules of several rows need all of them at once
            own = tuple(rule for rule in fresh if isinstance(rule, Follows) is several)
            domain = domain.model_copy(update={"rules": own})
            who = proposed.person.named if several and proposed.person is not None else ()
            named = dict.fromkeys((*(name for rule in own for name in rule.columns), *who))
            batches = store.batches(table.id, schema=proposed, columns=list(named)) if own else ()
            for batch in [pd.concat(batches)] if own and several else batches:
                for text, rows in count_violations(batch, domain).items():
                    counts[text] = counts.get(text, 0) + rows
    profile = {**table.profile, BROKEN: counts}
    return store.save_schema(table.id, schema, profile=profile)
