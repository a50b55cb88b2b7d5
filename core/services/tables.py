"""Tables: keep what a steward declares of one: kinds, bounds, categories, roles.

Rows are read here only where a change of kind needs a domain to propose, or where what a changed
column holds has to be counted again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import pandas as pd

from core.message import Message, from_json, to_say
from core.privacy.discovery.open_domain import as_learned
from core.proposing.kinds import infer_tally
from core.proposing.misfits import misfit_words
from core.proposing.profile import ColumnProfile
from core.proposing.rare import count_labels, danger, merged_below
from core.proposing.remarks import MOST_MISFITS, Remark, Urgency, note_remarks
from core.reading.tally import Tally
from core.reading.typed_cells import typed_tally
from core.runs.records import TableRecord
from core.runs.storage.store import RunStore
from core.schema.column import DomainSource, Kind, Provenance, SchemaColumn, SchemaError, changed
from core.schema.form import Form
from core.schema.schema import Groups, Schema, tagged_among
from core.schema.surrogates import check_room
from core.services.public_domains import learn_anew
from core.services.recounting import recounted, tallies, whole_bounds
from core.services.schema_grid import as_kind, schema_of, with_categories, with_list


def confirm_schema(store: RunStore, table_id: str, schema: Schema) -> TableRecord:
    """Keep the schema that the steward confirmed, and the profile that goes with it."""
    return recounted(store, store.table(table_id), schema)


def change_grid(
    store: RunStore,
    table: TableRecord,
    grid: pd.DataFrame,
    earlier: Mapping[tuple[str, Kind], SchemaColumn] | None = None,
) -> TableRecord:
    """Keep the edited grid; kinds that changed get a fresh domain and picture.

    Args:
      earlier: columns as they were declared, by name and kind: a kind that comes back brings its
        declaration along instead of a fresh one.
    """
    kinds = [Kind(kind) for kind in grid["kind"]]
    anew = {
        column.name: kind
        for column, kind in zip(table.schema.columns, kinds, strict=True)
        if kind is not column.kind
    }
    if anew:
        cells = tallies(store, table, list(anew))
        schema = table.schema
        for name, kind in anew.items():
            before = (earlier or {}).get((name, kind))
            column = schema[name]
            schema = schema.replace(
                whole_bounds(store, table, cells[name], as_kind(cells[name], column, kind))
                if before is None
                else _as_before(before, column)
            )
        return confirm_schema(store, table.id, _with_roles(schema))
    known = (Provenance.LEARNED, Provenance.REFERENCE)
    open_now = list(grid.loc[grid["keep"] == "learn", "column"])
    if again := [name for name in open_now if table.schema[name].provenance in known]:
        return learn_anew(store, table, again)
    schema = _with_roles(schema_of(grid, table.schema))
    if schema == table.schema:
        return table
    coded = [c.name for c in schema.columns if c.codes != table.schema[c.name].codes]
    if coded:
        cells = tallies(store, table, coded)
        for name in coded:
            column = _recoded(cells[name], schema[name], table.schema[name])
            schema = schema.replace(whole_bounds(store, table, cells[name], column))
        return confirm_schema(store, table.id, _with_roles(schema))
    return recounted(store, table, schema)


def _as_before(before: SchemaColumn, now: SchemaColumn) -> SchemaColumn:
    """A column's earlier declaration, with what was decided since whatever its kind."""
    absent = "" if now.form is None else now.form.absent
    form = (before.form or Form()).model_copy(update={"absent": absent})
    since: dict[str, object] = {"missing": now.missing, "form": None if form == Form() else form}
    if DomainSource.LEARNED not in (before.source, now.source):
        since["source"] = now.source
    return before.model_copy(update=since)


def _recoded(tally: Tally, column: SchemaColumn, before: SchemaColumn) -> SchemaColumn:
    """A column whose codes for "missing" changed; bounds that were proposed are proposed anew."""
    proposed = as_kind(tally, column, column.kind)
    if before.provenance is not Provenance.PROPOSED:  # what was a code may read as nothing now
        return column.model_copy(update={"missing": proposed.missing})
    anew = infer_tally(typed_tally(tally, column)[0], column.name, column.form)
    return anew if anew.kind is column.kind else proposed


def label_counts(store: RunStore, table: TableRecord, name: str) -> pd.DataFrame:
    """How many rows and people hold each label of a column; see `count_labels`; inside only."""
    person = table.schema.person
    people = () if person is None or name in person.columns else person.columns
    columns = list(dict.fromkeys((name, *people)))
    return count_labels(store.batches(table.id, columns=columns), name, people)


def change_list(
    store: RunStore, table: TableRecord, name: str, labels: Sequence[str]
) -> TableRecord:
    """Replace a column's categories; counts rare ones again.

    Args:
      labels: in order; those that were listed and are not any more become "OTHER".
    """
    return recounted(store, table, table.schema.replace(with_list(table.schema[name], labels)))


def merge_rare(store: RunStore, table: TableRecord, name: str, fewer: int) -> TableRecord:
    """List every label of a column that at least so many rows hold; others become "OTHER"."""
    column = merged_below(table.schema[name], label_counts(store, table, name), fewer)
    return recounted(store, table, table.schema.replace(with_list(column, column.categories or ())))


def change_categories(store: RunStore, table: TableRecord, name: str, text: str) -> TableRecord:
    """Replace a column's categories by those listed one a line; counts rare ones again."""
    column = with_categories(table.schema[name], text)
    return recounted(store, table, table.schema.replace(column))


def change_pattern(store: RunStore, table: TableRecord, name: str, pattern: str) -> TableRecord:
    """Say what made-up values of a column look like; an empty pattern leaves it to the product."""
    column = changed(table.schema[name], pattern=pattern.strip() or None)
    check_room([column], table.n)
    return store.save_schema(table.id, table.schema.replace(column))


def rare_words(table: TableRecord) -> dict[str, str]:
    """By column, how many listed values few rows hold, in words; inside only.

    Columns without such values, and those that are left out, are not named.
    """
    words: dict[str, str] = {}
    for one in _pictures(table):
        counts = one.rare_counts
        if counts.rare and table.schema[one.name].modelled:
            template = to_say("{rare:,} of {listed:,}")
            if counts.single:
                template = to_say("{rare:,} of {listed:,}, {single:,} of one row")
            words[one.name] = Message(template, **asdict(counts))
    return words


def misfit_doubts(table: TableRecord) -> dict[str, str]:
    """By column, how many cells do not fit the declaration, and what becomes of them; inside."""
    words = {
        one.name: misfit_words(table.schema[one.name], _misfit(one, table.schema), one.unreadable)
        for one in _pictures(table)
        if table.schema[one.name].modelled
    }
    return {name: text for name, text in words.items() if text}


def misfit_cells(table: TableRecord) -> int:
    """How many cells of all columns do not fit their declarations; inside only."""
    pictures = [one for one in _pictures(table) if table.schema[one.name].modelled]
    return sum(_misfit(one, table.schema) for one in pictures)


def _misfit(picture: ColumnProfile, schema: Schema) -> int:
    """Cells that do not fit; where a run learns what fits, those alone that do not read."""
    return picture.misfit if schema[picture.name].declared else picture.unreadable


def rows_without_key(table: TableRecord) -> dict[str, int]:
    """By column that says who a row is of, how many rows have nothing there; inside only."""
    missing = {one.name: round(one.missing * table.n) for one in _pictures(table)}
    return {name: missing[name] for name in table.schema.key_columns if missing.get(name)}


def remarks(table: TableRecord) -> list[Remark]:
    """What to decide, to check and to know, of what was read and declared; inside only."""
    schema, misfits, found = table.schema, misfit_doubts(table), list[Remark]()
    for words in map(from_json, table.profile.get("reading", ())):
        about = tuple(name for name in schema.names if f"'{name}'" in words)
        found.append(Remark(Urgency.CHECK, words, about, named=True))
    published = rare_words(table)
    for one in _pictures(table):
        column = schema[one.name]
        if one.name in misfits:
            lost = _misfit(one, schema) > MOST_MISFITS * table.n * (1.0 - one.missing)
            urgency = Urgency.DECIDE if lost else Urgency.CHECK
            found.append(Remark(urgency, misfits[one.name], (one.name,)))
        if one.name in published and column.source is DomainSource.DECLARED:
            found.append(Remark(Urgency.DECIDE, danger(one.rare_counts), (one.name,)))
        if column.source is not DomainSource.DROP and one.name not in schema.key_columns:
            found += note_remarks(column, one, table.n)
    return found


def _pictures(table: TableRecord) -> list[ColumnProfile]:
    return [ColumnProfile.model_validate(one) for one in table.profile.get("columns", ())]


def declared_from_rows(table: TableRecord) -> tuple[str, ...]:
    """Columns whose domain is declared public as the rows proposed it, or as nobody recorded."""
    schema = table.schema
    return tuple(
        column.name
        for column in schema.columns
        if column.modelled
        and column.source is DomainSource.DECLARED
        and column.provenance in (Provenance.PROPOSED, Provenance.UNSTATED)
        and column.name not in schema.key_columns
    )


def declare_all(store: RunStore, table: TableRecord) -> TableRecord:
    """Declare public, as the rows propose it, all that a run would learn."""
    return recounted(store, table, table.schema.as_proposed())


def learn_all(store: RunStore, table: TableRecord) -> TableRecord:
    """Leave to the run what is declared public as the rows proposed it."""
    return recounted(store, table, as_learned(table.schema))


def change_target(store: RunStore, table: TableRecord, target: str | None) -> TableRecord:
    """Name the target column, or none."""
    return store.save_schema(table.id, table.schema.model_copy(update={"target": target}))


def change_holdout(store: RunStore, table: TableRecord, share: float) -> TableRecord:
    """Keep a share of the records out of training, in [0, ½], chosen by their place in the file."""
    return store.save_schema(table.id, table.schema.model_copy(update={"holdout": share}))


def change_groups(store: RunStore, table: TableRecord, groups: Mapping[str, str]) -> TableRecord:
    """Tag columns whose distribution must not be revealed; their domains are then declared.

    Args:
      groups: name of a group by column; an empty name or no entry leaves a column untagged.
    """
    sensitive: dict[str, tuple[str, ...]] = {}
    for column in table.schema.columns:
        group = (groups.get(column.name) or "").strip()
        if group and not column.modelled:
            raise SchemaError(
                "'{name}' is dropped, text or an identifier, so its distribution is not "
                "released. It needs no tag.",
                name=column.name,
            )
        if group:
            sensitive[group] = (*sensitive.get(group, ()), column.name)
    sensitive = dict(sorted(sensitive.items()))
    return store.save_schema(table.id, _with_tags(table.schema, sensitive))


def _with_tags(schema: Schema, sensitive: Groups) -> Schema:
    """The schema with tagged columns declared, since learning would show their distribution.

    Those that are tagged no longer are learned again where their domain is as proposed.
    """
    before = {name for names in schema.sensitive.values() for name in names}
    tagged = {name for names in sensitive.values() for name in names}
    proposed = schema.as_proposed()
    for name in tagged:
        schema = schema.replace(proposed[name])
    schema = schema.model_copy(update={"sensitive": sensitive})
    learned = as_learned(schema)
    for name in before - tagged:
        schema = schema.replace(learned[name])
    return schema


def _with_roles(schema: Schema) -> Schema:
    """The schema without a target, tags or rules of columns that are no longer modelled.

    Who a row is of may be said by a column that is dropped.
    """
    modelled = {column.name for column in schema.columns if column.modelled}
    person = schema.person
    return schema.model_copy(
        update={
            "target": schema.target if schema.target in modelled else None,
            "person": None if person is None else person.among(modelled),
            "rules": tuple(rule for rule in schema.rules if modelled.issuperset(rule.columns)),
            "sensitive": tagged_among(schema.sensitive, modelled),
        }
    )
