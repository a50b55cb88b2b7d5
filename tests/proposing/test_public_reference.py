"""Domains that are public by a column's name: which names have one, and which must not."""

from __future__ import annotations

import datetime as dt

import pytest

from core.message import Message
from core.proposing.public_names import PUBLIC_NAMES
from core.proposing.public_reference import (
    FIRST_BIRTH,
    LAST_BIRTH,
    MOST_LABELS,
    public_reference,
    words_of,
)
from core.schema.column import Column, DomainSource, Kind, changed
from core.schema.form import Form
from core.schema.schema import check_writable
from docs import make_public_lists

INTEGER, NUMBER = (Kind.INTEGER, "int64"), (Kind.NUMBER, "float64")
WORDS, STEPS = (Kind.CATEGORY, "str"), (Kind.ORDERED, "int64")
SHAPES = (
    INTEGER, NUMBER, WORDS, STEPS, (Kind.ORDERED, "str"), (Kind.CATEGORY, "Int8"),
    (Kind.INTEGER, "float64"), (Kind.ORDERED, "float64"), (Kind.INTEGER, "UInt8"),
    (Kind.BOOLEAN, "bool"), (Kind.DATETIME, "datetime64[us]"), (Kind.TEXT, "str"),
)  # fmt: skip


def column(name: str, kind: Kind, dtype: str, **fields: object) -> Column:
    return Column(name=name, kind=kind, dtype=dtype, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("names", "low", "high"),
    [
        ("age patient_age AGE_YEARS PatientAge alter age-at-diagnosis mother's_age", 0, 120),
        ("year jahr YEAR admission_year arrival_date_year", 1900, 2100),
        ("Geburtsjahr birth_year yearOfBirth YOB patient_birth_year", 1900, 2030),
        ("month Monat birth_month month_number arrival_date_month", 1, 12),
        ("weekday wochentag day_of_week DayOfWeek dow", 0, 7),
        ("quarter quartal", 1, 4),
        ("day_of_month arrival_date_day_of_month", 1, 31),
        ("hour hour_of_day pickup_hour start_hour stunde", 0, 24),
        ("minute minute_of_hour", 0, 59),
        ("hours-per-week hours_per_week HoursPerWeek wochenstunden", 0, 168),
        ("heart_rate HeartRate max_heart_rate puls", 0, 300),
        ("sbp systolic systolic_bp systolicBloodPressure blutdruck_systolisch", 0, 300),
        ("dbp diastolic diastolic_bp", 0, 200),
        ("bmi BMI patient_bmi body_mass_index", 10, 80),
        ("body_temperature body_temp_c Körpertemperatur", 20, 115),
        ("height_cm heightCm körpergröße_cm", 20, 275),
        ("weight_kg patient_weight_kg gewicht_kg", 0, 650),
        ("gcs gcs_total GCS_score", 3, 15),
        ("asa asa_class", 1, 6),
        ("apgar apgar_5 apgar_1min apgar_score", 0, 10),
        ("triage triage_level esi", 1, 5),
        ("nps", 0, 10),
        ("pct_female x_percent percentage anteil anteil_frauen literacy-pct", 0, 100),
        ("decile income_decile imd_decile", 1, 10),
        ("is_smoker has_diabetes hasChildren ist_raucher", 0, 1),
    ],
)
def test_numbers(names, low, high):
    for name in names.split():
        found = public_reference(column(name, *INTEGER))
        assert found is not None, name
        assert (found.low, found.high, found.categories) == (low, high, None), name


@pytest.mark.parametrize(("name", "high"), [("latitude", 90), ("pickup_lon", 180), ("lat", 90)])
def test_degrees_are_no_microdegrees(name, high):
    found = public_reference(column(name, *NUMBER))
    assert found is not None and (found.low, found.high) == (-high, high)
    assert public_reference(column(name, *INTEGER)) is None


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("country", "DE DEU Germany Deutschland UK Türkiye"),
        ("native-country", "US USA"),
        ("country_code", "DE DEU"),
        ("countryIso2", "DE"),
        ("country_alpha_3", "DEU"),
        ("currency", "EUR USD DEM"),
        ("language", "de deu ger German Deutsch"),
        ("us_state", "CA California PR"),
        ("Bundesland", "BY DE-BY Bayern Tirol"),
        ("blood_group", "A+ 0 O- AB"),
        ("month", "January jan 01 März MAI Dez"),
        ("weekday", "Mon Monday Montag Mo SUN"),
        ("quarter", "Q1 4"),
        ("icd10_chapter", "I XXII"),
    ],
)
def test_lists(name, holds):
    found = public_reference(column(name, *WORDS))
    assert found is not None and found.categories is not None
    assert set(holds.split()) <= set(found.categories)
    assert len(set(found.categories)) == len(found.categories) < MOST_LABELS


def test_codes_have_the_spelling_that_the_name_says():
    two, three = (public_reference(column(f"country_iso{n}", *WORDS)) for n in (2, 3))
    assert {len(label) for label in two.categories} == {2}
    assert {len(label) for label in three.categories} == {3}
    assert len(two.categories) == len(three.categories) == 250  # 249, and Kosovo


@pytest.mark.parametrize(
    ("dtype", "labels"), [("int64", "1 2 3 4"), ("Int8", "1 2 3 4"), ("float64", "1.0 2.0 3.0 4.0")]
)
def test_steps_of_a_scale_are_listed_as_the_type_spells_them(dtype, labels):
    found = public_reference(column("quarter", Kind.ORDERED, dtype))
    assert found is not None and found.categories == tuple(labels.split())


@pytest.mark.parametrize(
    "name",
    "age_group average page package account_age_days age_diff mean_age_gap stage image vehicle_age "
    "gestational_age age2 language_age month_income months monthly_charges month_1 month_count "
    "tenure_months year_count years_employed year_built study_year last_year hours_total hour_rate "
    "hours rush_hour minutes minute_count count_x day second percentile percentile_rank "
    "pct_change percent_growth pct_of_income interest_rate_pct decile_count income_quintile_label "
    "score_text score rating sbp_change systolic_diff bmi_category bmi_class gcs_motor asa_dose "
    "triage_time triage_min apgar_text nps_count pulse_pressure heart_rate_variability temperature "
    "height weight lat_e6 latitude_error longest plate island issue hash has is history_count "
    "has_count is_n_visits wasted this weekday_sales number_of_month country_rank country_club "
    "land state status sex gender race ethnicity education marital_status occupation nationality "
    "programming_language language_score currency_amount blood_pressure blood_group_count "
    "bundesland_rang icd_code alternative jahresgehalt geburtsgewicht".split(),
)
def test_names_that_say_something_else(name):
    for kind, dtype in SHAPES:
        if kind is not Kind.BOOLEAN:
            assert public_reference(column(name, kind, dtype)) is None


@pytest.mark.parametrize(
    ("name", "kind", "dtype"),
    [
        ("age", *WORDS),
        ("age", *STEPS),
        ("age", Kind.IDENTIFIER, "int64"),
        ("country", *INTEGER),
        ("country", Kind.TEXT, "str"),
        ("month", *NUMBER),
        ("is_smoker", *NUMBER),
        ("is_smoker", *WORDS),
        ("gcs", *WORDS),
        ("year", Kind.INTEGER, "uint8"),
        ("year", *STEPS),
        ("days_per_week", Kind.ORDERED, "float64"),
    ],
)
def test_a_kind_or_type_that_does_not_fit(name, kind, dtype):
    assert public_reference(column(name, kind, dtype)) is None


@pytest.mark.parametrize(
    ("name", "date_format", "known"),
    [
        ("birth_date", None, True),
        ("DateOfBirth", "%d.%m.%Y", True),
        ("dob", "%Y-%m-%d", True),
        ("Geburtsdatum", None, True),
        ("dob", "%d/%m/%y", False),
        ("dob", "%d.%m.", False),
        ("admission_date", None, False),
        ("age", None, False),
        ("year", "%Y", False),
    ],
)
def test_dates_of_birth(name, date_format, known):
    dtype = "str" if date_format else "datetime64[us]"
    found = public_reference(column(name, Kind.DATETIME, dtype, date_format=date_format))
    assert (found is not None) == known
    if found is not None:
        ends = [dt.datetime(*day, tzinfo=dt.UTC) for day in ((1900, 1, 1), (2030, 12, 31))]
        assert [found.low, found.high] == [end.timestamp() for end in ends]
        assert (FIRST_BIRTH, LAST_BIRTH) == (found.low, found.high)


def test_a_pair_stays_as_it_is_spelled():
    for pair in (("no", "Yes"), ("0", "1"), ("f", "T")):
        found = public_reference(column("x", Kind.BOOLEAN, "str", categories=pair))
        assert found is not None and found.categories == pair
    assert public_reference(column("x", Kind.BOOLEAN, "str", categories=("no", "never"))) is None
    assert public_reference(column("x", Kind.BOOLEAN, "str")) is None
    plain = public_reference(column("x", Kind.BOOLEAN, "bool"))
    assert plain is not None and plain.categories == ("False", "True")


NAMES = [name for entry in PUBLIC_NAMES for name in entry.phrases.split(",")]
NAMES += ["is_smoker", "birth_date", "status"]


@pytest.mark.parametrize(("kind", "dtype"), SHAPES)
def test_nothing_but_name_kind_and_form_counts(kind, dtype):
    others = {
        "missing": True,
        "source": DomainSource.LEARNED,
        "low": 17.0,
        "high": 90.0,
        "step": 0.5,
        "scale": "log",
        "spikes": (17.0,),
        "categories": ("a", "b", "c"),
        "other": "c",
        "form": Form(codes=("-9",)),
        "absent": 0.5,
    }
    for name in NAMES:
        plain = column(name, kind, dtype)
        assert public_reference(plain) == public_reference(changed(plain, **others))
    read = {"name", "kind", "dtype", "date_format", "pattern"}  # a pattern is of made-up values
    assert others.keys() == Column.model_fields.keys() - read


@pytest.mark.parametrize(("kind", "dtype"), SHAPES)
def test_every_reference_is_a_domain(kind, dtype):
    found = 0
    for name in NAMES:
        plain = column(name, kind, dtype)
        reference = public_reference(plain)
        if reference is None:
            continue
        assert isinstance(reference.source, Message)
        ends = {"low": reference.low, "high": reference.high, "categories": reference.categories}
        declared = changed(plain, **ends)
        check_writable(declared)
        assert declared.declared
        assert kind.numeric == (reference.categories is None)
        found += 1
    assert (found > 0) != kind.surrogate


def test_every_name_has_a_reference():
    for entry in PUBLIC_NAMES:
        for name in entry.phrases.split(","):
            fitting = [public_reference(column(name, *shape)) for shape in SHAPES]
            assert entry.source in [each.source for each in fitting if each is not None], name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("AGEYears", "age years"),
        ("USState", "us state"),
        ("a.b c-d", "a b c d"),
        ("Wa\u0308hrung", "waehrung"),
        ("Größe2", "groesse 2"),
        ("__", ""),
    ],
)
def test_words(name, words):
    assert words_of(name) == tuple(words.split())


def test_lists_are_those_of_the_packages():
    assert make_public_lists.TARGET.read_text(encoding="utf-8") == make_public_lists.contents()
