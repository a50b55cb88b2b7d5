"""Times without a date, which are read, learned and written as they were; days that many share."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from core.encoding.codec import Codec
from core.encoding.layout.invariants import invariants
from core.figures.elements import edge_ticks, spans
from core.privacy.discovery.open_domain import as_learned, open_domain, stand_in
from core.proposing.propose import infer_schema
from core.reading.arrow_types import arrow_table
from core.schema.column import Kind, SchemaError
from core.schema.conditions import parse_conditions
from core.schema.date_text import CLOCK_DAY
from core.schema.labels import from_numbers, to_numbers
from core.schema.schema import Domain
from core.services.schema_grid import grid_of, schema_of
from tests.privacy.learned_tables import by_name, learn

N = 3000
HOUR = 3600.0


def shop() -> pd.DataFrame:
    """Minutes from 9 to 20, in three spellings, and what is no time of the day."""
    random = np.random.default_rng(0)
    minute = np.clip(np.round(random.normal(13 * 60, 150, N)), 540, 1200).astype(int)
    pair = [divmod(m, 60) for m in minute]
    return pd.DataFrame(
        {
            "day": pd.Timestamp("2023-01-01") + pd.to_timedelta(random.integers(0, 90, N), "D"),
            "sold": [f"{h}:{m:02d}" for h, m in pair],
            "logged": [f"{h:02d}:{m:02d}:00" for h, m in pair],
            "spoken": [f"{(h - 1) % 12 + 1}:{m:02d} {'AM' if h < 12 else 'PM'}" for h, m in pair],
            "length": [f"{m}:{h:02d}" for h, m in pair],
        }
    )


def test_times_of_the_day_are_dates_with_a_known_range():
    schema = infer_schema(shop())
    formats = {"sold": "%H:%M", "logged": "%H:%M:%S", "spoken": "%I:%M %p"}
    for name, date_format in formats.items():
        column = schema[name]
        assert (column.kind, column.date_format) == (Kind.DATETIME, date_format)
        assert column.low == CLOCK_DAY and column.high == CLOCK_DAY + 24 * HOUR - column.step
    assert schema["length"].kind is not Kind.DATETIME, "59:13 is none"
    slots = pd.DataFrame({"slot": ["08:00", "12:30", "17:00"] * 100})
    assert infer_schema(slots)["slot"].kind is Kind.CATEGORY


def test_what_is_learned_of_times_is_within_the_day():
    schema = as_learned(infer_schema(shop()))
    fields = [(column.name, field) for column, field in open_domain(schema).calendars]
    assert ("sold", "hour") in fields and ("sold", "weekday") not in fields
    assert stand_in(schema)["sold"].low == CLOCK_DAY and stand_in(schema).domain()
    found = by_name(learn(shop(), schema, 2.0))
    for name in ("sold", "logged", "spoken"):
        assert found[name].low == CLOCK_DAY and found[name].step == 60.0
        assert found[name].high == CLOCK_DAY + 24 * HOUR - 60.0
        hours = np.array(found[name].learned.calendar.hour)
        assert hours[9:20].sum() == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("name", ["sold", "logged", "spoken"])
def test_times_come_back_as_they_were_written(name):
    column = infer_schema(shop())[name]
    assert from_numbers(to_numbers(shop()[name], column), column).tolist() == shop()[name].tolist()
    codec = Codec(Domain(columns=(column,)))
    back = codec.decode_codes(codec.encode(shop()[[name]]))
    assert (back[name] == shop()[name]).all()


def test_times_are_times_in_parquet():
    schema = infer_schema(shop())
    written = arrow_table(shop(), schema.columns)
    assert written.schema.field("sold").type == pa.time64("us")
    assert str(written.column("sold")[0].as_py())[:5].lstrip("0") == shop()["sold"][0]


def test_times_are_not_compared_with_days():
    schema = infer_schema(shop()[["day", "sold", "logged"]])
    named = [set(one.rule.columns) for one in invariants(shop(), schema.columns)]
    assert {"sold", "logged"} in named and not any("day" in names for names in named)


def test_rows_of_some_hours_can_be_asked_for():
    column = infer_schema(shop())["sold"]
    (condition,) = parse_conditions(["sold=10:30..12:00"], Domain(columns=(column,)))
    kept = condition.keeps(shop())
    minutes = (to_numbers(shop()["sold"], column) - CLOCK_DAY) / 60.0
    assert np.array_equal(kept, (minutes >= 630) & (minutes <= 720))


def test_bounds_are_written_and_read_as_times():
    schema = infer_schema(shop()[["sold", "spoken"]])
    grid = grid_of(schema)
    assert grid["from"].tolist() == ["00:00:00"] * 2 and grid["to"].tolist() == ["23:59:00"] * 2
    changed = schema_of(grid.assign(**{"from": ["8:30", "08:30"]}), schema)
    assert [column.low for column in changed.columns] == [CLOCK_DAY + 8.5 * HOUR] * 2
    with pytest.raises(SchemaError, match="14:05"):
        schema_of(grid.assign(**{"from": ["2024-01-31", "x"]}), schema)


def test_axes_show_the_hour_alone():
    edges = [CLOCK_DAY + 8 * HOUR * i for i in range(4)]
    assert edge_ticks(edges, "datetime")["ticktext"] == ["00:00", "08:00", "16:00", "24:00"]
    assert spans(edges, "datetime")[1] == "08:00 to 16:00"
    assert "1900" in spans([CLOCK_DAY, CLOCK_DAY + 48 * HOUR], "datetime")[0]


def test_a_day_that_many_share_is_a_spike_without_a_time() -> None:
    """As of those who are still there when a study ends."""
    random = np.random.default_rng(0)
    days = pd.Timestamp("2001-01-01") + pd.to_timedelta(random.integers(0, 4000, N), "D")
    end = pd.Timestamp("2012-12-31")
    seen = pd.Series(days).mask(random.random(N) < 0.6, end)
    frame = pd.DataFrame(
        {
            "text": seen.dt.strftime("%d.%m.%Y"),
            "date": seen,
            "any": days,
            "moment": seen + pd.to_timedelta(random.integers(0, 9, N), "h"),
        }
    )
    schema = infer_schema(frame)
    spikes = {column.name: column.spikes for column in schema.columns}
    assert spikes == dict.fromkeys(("text", "date"), (end.timestamp(),)) | {"any": (), "moment": ()}
    codec = Codec(schema.domain())
    drawn = codec.decode_codes(codec.encode(frame))
    pd.testing.assert_series_equal(drawn["text"], frame["text"], check_dtype=False)
