"""Generated files as offices keep them: a county's criminal court, and visits of patients.

    court(7_000, seed=0)
    visits(5_800, 20_000, seed=0)

Cells are as a CSV file has them: dates are text, missing cells are None or NaN. Nobody declares
anything of them here; `uploads.py` splits them and infers a schema.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.declared_columns import Floats, Values, binary, coin, falling, labels, level, pick

__all__ = ["court", "visits"]

STRUCTURE = 20_130  # seed of what is the same in every file: lists and what goes with what
FIRST_DAY, DAYS = np.datetime64("2013-01-01"), 730  # of screenings, and of visits
RACES = ("African-American", "Caucasian", "Hispanic", "Other", "Asian", "Native American")
RACE_SHARES = (0.512, 0.341, 0.085, 0.055, 0.005, 0.002)
AGES = ("Less than 25", "25 - 45", "Greater than 45")
SCORES = ("Low", "Medium", "High")
ACTS = (
    *(
        "Possession of",
        "Sale of",
        "Theft of",
        "Damage to",
        "Delivery of",
        "Misuse of",
        "Forgery of",
    ),
    *("Trespass with", "Assault with", "Driving with", "Robbery with", "Escape with", "Fraud with"),
    *("Battery with", "Burglary of", "Dealing in", "Tampering with", "Purchase of", "Use of"),
    "Threat with",
)
THINGS = (
    *("Cannabis", "Cocaine", "Heroin", "a Firearm", "a Weapon", "a Vehicle", "a License", "a Card"),
    *("a Structure", "a Dwelling", "Alcohol", "Tools", "Evidence", "Property", "Cash", "a Check"),
    *("Medicine", "a Minor Present", "Injury", "No Permit"),
)
SYLLABLES = tuple(
    a + b for a in ("b", "d", "f", "k", "l", "m", "n", "r", "s", "t") for b in "aeiou"
)
CODES = labels("c", 12)


def court(rows: int = 7_000, seed: int = 0) -> pd.DataFrame:
    """People who were screened after an arrest: 53 columns, one row a person.

    As in such files, some columns tell the target, `two_year_recid`, by themselves: `is_recid`, the
    `r_` columns, `end` and `event`.

    Returns:
      [rows, 53], in the order in which people were screened.
    """
    structure, rng = np.random.default_rng(STRUCTURE), np.random.default_rng([STRUCTURE, seed])
    day = np.sort(rng.integers(0, DAYS, rows))
    who = _people(rows, day, structure, rng)
    risk = _risk(who, rng)
    charge = _charges(who, day, rng)
    again = _again(who, day, charge, rng)
    return pd.DataFrame({"id": np.arange(1, rows + 1)} | who | risk | charge | again)[list(ORDER)]


def visits(people: int = 5_800, rows: int = 20_000, seed: int = 0) -> pd.DataFrame:
    """Visits of patients, about that many rows; each of twelve codes belongs to a twelfth of them.

    Sex, year of birth and code are a patient's own; date, ward, amount and outcome a visit's.

    Returns:
      [about rows, 8], in the order of dates; `patient` is who, `flag` is to be predicted.
    """
    rng = np.random.default_rng([STRUCTURE, seed, 1])
    code = rng.permutation(np.arange(people) % len(CODES))
    sick = rng.beta(1.5, 4.0, people)  # how ill somebody is, in (0, 1)
    rate = 0.2 + sick
    who = np.repeat(np.arange(people), 1 + rng.poisson((rows / people - 1) * rate / rate.mean()))
    born = np.clip(1985 - 50 * sick + rng.normal(0, 12, people), 1920, 2012).astype(int)
    sex = rng.choice(["f", "m"], people)
    n = len(who)
    ward = np.where(rng.random(n) < 0.7, code[who] % 5, rng.integers(0, 5, n))
    day = rng.integers(0, DAYS, n)
    amount = np.minimum(rng.lognormal(4.0 + 2.0 * sick[who] + 0.1 * code[who]), 50_000).round(2)
    odds = -2.0 + 4.0 * sick[who] + 0.8 * (ward == 0) + 0.5 * (code[who] < 3)
    frame = pd.DataFrame(
        {
            "patient": 100_000 + rng.permutation(people)[who],
            "sex": sex[who],
            "born": born[who],
            "code": pick(CODES, code[who]),
            "date": _dates(day),
            "ward": pick(labels("ward", 5), ward),
            "amount": amount,
            "flag": binary(coin(odds, rng)),
        }
    )
    return frame.iloc[np.argsort(day, kind="stable")].reset_index(drop=True)


# -- parts of the court's file --------------------------------------------------------------------


def _people(
    n: int, day: Values, structure: np.random.Generator, rng: np.random.Generator
) -> dict[str, Values]:
    """Who they are and what they did before; `day` [n] is that of the screening."""
    firsts, lasts = _names(200, 2, structure), _names(900, 3, structure)
    first = pick(firsts, rng.choice(len(firsts), n, p=falling(len(firsts), 0.7)))
    last = pick(lasts, rng.choice(len(lasts), n, p=falling(len(lasts), 0.6)))
    age = np.clip(18 + rng.gamma(1.6, 10.5, n), 18, 92).astype(int)
    before = rng.gamma(0.55, 1.0, n) * (0.6 + (age - 18) / 18)  # how much somebody has done before
    priors = np.minimum(rng.poisson(2.4 * before), 38)
    young = np.exp(-(age - 18) / 9) * before
    dob = day - (365.25 * age).astype(int) - rng.integers(0, 365, n)
    return {
        "first": first,
        "last": last,
        "name": first + " " + last,
        "sex": pick(("Male", "Female"), (rng.random(n) < 0.193).astype(int)),
        "dob": _dates(dob),
        "age": age,
        "age_cat": pick(AGES, np.digitize(age, (25, 46))),
        "race": pick(RACES, rng.choice(len(RACES), n, p=RACE_SHARES)),
        "juv_fel_count": rng.poisson(0.25 * young),
        "juv_misd_count": rng.poisson(0.35 * young),
        "juv_other_count": rng.poisson(0.4 * young),
        "priors_count": priors,
        "priors_count.1": priors,
        "compas_screening_date": _dates(day),
        "screening_date": _dates(day),
        "v_screening_date": _dates(day),
    }


def _risk(who: dict[str, Values], rng: np.random.Generator) -> dict[str, Values]:
    """Scores that rise with priors and fall with age, and columns that never change."""
    n = len(who["age"])
    age, priors = who["age"].astype(float), who["priors_count"].astype(float)
    out: dict[str, Values] = {}
    for stem, old in (("", 0.03), ("v_", 0.06)):
        latent = 0.75 * np.log1p(priors) - old * (age - 33) + 0.8 * rng.standard_normal(n)
        latent = (latent - latent.mean()) / latent.std()
        decile = 1 + level(latent, falling(10, 0.45))
        out[f"{stem}decile_score"] = decile
        out[f"{stem}score_text"] = pick(SCORES, np.digitize(decile, (5, 8)))
    out["decile_score.1"] = out["decile_score"]
    out["type_of_assessment"] = np.full(n, "Risk of Recidivism", dtype=object)
    out["v_type_of_assessment"] = np.full(n, "Risk of Violence", dtype=object)
    out["violent_recid"] = np.full(n, np.nan)
    return out


def _charges(who: dict[str, Values], day: Values, rng: np.random.Generator) -> dict[str, Values]:
    """The arrest, the charge and the days in jail."""
    n = len(day)
    descriptions, felony = _descriptions()
    charge = rng.choice(len(descriptions), n, p=falling(len(descriptions)))
    is_felony = rng.random(n) < felony[charge]
    late = np.where(rng.random(n) < 0.75, 1, rng.geometric(0.02, n))  # days, arrest to screening
    arrest = day - late
    stay = np.ceil(rng.lognormal(0.3 + 0.9 * is_felony + 0.1 * np.log1p(who["priors_count"]), 1.3))
    stay = np.minimum(stay, 700).astype(int)
    clock, unknown = rng.integers(0, 86_400, (2, n)), rng.random(n) < 0.043
    by_warrant = rng.random(n) < 0.16  # then there is a day of arrest and none of an offence
    return {
        "days_b_screening_arrest": np.where(unknown, np.nan, -late),
        "c_jail_in": _moments(arrest, clock[0], unknown),
        "c_jail_out": _moments(arrest + stay, clock[1], unknown),
        "c_case_number": _cases(arrest, rng, rng.random(n) < 0.003),
        "c_offense_date": _dates(arrest, by_warrant),
        "c_arrest_date": _dates(arrest, ~by_warrant),
        "c_days_from_compas": np.where(rng.random(n) < 0.003, np.nan, late),
        "c_charge_degree": pick(("M", "F"), is_felony.astype(int)),
        "c_charge_desc": np.where(rng.random(n) < 0.004, None, pick(descriptions, charge)),
        "in_custody": _dates(arrest, unknown),
        "out_custody": _dates(arrest + stay, unknown),
    }


def _again(
    who: dict[str, Values],
    day: Values,
    charge: dict[str, Values],
    rng: np.random.Generator,
) -> dict[str, Values]:
    """What came after: for most people nothing, so that most of these cells are missing."""
    n, (descriptions, felony) = len(day), _descriptions()
    age, priors = who["age"].astype(float), who["priors_count"].astype(float)
    is_felony = charge["c_charge_degree"] == "F"
    odds = -1.25 + 0.9 * np.log1p(priors) - 0.05 * (age - 33) + 0.3 * is_felony
    odds = odds + 0.25 * (who["sex"] == "Male")
    soon = coin(odds, rng)
    ever = soon | (rng.random(n) < 0.06)
    violent = ever & coin(-1.6 - 0.02 * (age - 33), rng)
    after = np.where(soon, 1 + 728 * rng.beta(0.9, 1.7, n), 731 + rng.integers(0, 300, n))
    after = after.astype(int)
    code = rng.choice(len(descriptions), n, p=falling(len(descriptions), 0.9))
    degree = pick(("(M1)", "(F3)"), (rng.random(n) < felony[code]).astype(int))
    jailed = ever & (rng.random(n) < 0.67)
    stay = np.minimum(np.ceil(rng.lognormal(1.5, 1.4, n)), 500).astype(int)
    case = _cases(day + after, rng, ~ever)
    return {
        "is_recid": binary(ever),
        "r_case_number": case,
        "r_charge_degree": np.where(ever, degree, None),
        "r_days_from_arrest": np.where(jailed, rng.geometric(0.6, n) - 1, np.nan),
        "r_offense_date": _dates(day + after, ~ever),
        "r_charge_desc": np.where(ever, pick(descriptions, code), None),
        "r_jail_in": _dates(day + after, ~jailed),
        "r_jail_out": _dates(day + after + stay, ~jailed),
        "is_violent_recid": binary(violent),
        "vr_case_number": np.where(violent, case, None),
        "vr_charge_degree": np.where(violent, degree, None),
        "vr_offense_date": _dates(day + after, ~violent),
        "vr_charge_desc": np.where(violent, pick(descriptions, code), None),
        "start": np.where(rng.random(n) < 0.6, 0, rng.integers(0, 200, n)),
        "end": np.where(ever, after, 1_185 - (day * 0.5).astype(int)),
        "event": binary(ever & (rng.random(n) < 0.8)),
        "two_year_recid": binary(soon),
    }


def _descriptions() -> tuple[tuple[str, ...], Floats]:
    """400 charges by falling frequency, and how often each is a felony; the same in every file."""
    rng = np.random.default_rng(STRUCTURE)
    every = [f"{act} {thing}" for act in ACTS for thing in THINGS]
    chosen = tuple(every[i] for i in rng.permutation(len(every)))
    return chosen, rng.choice([0.03, 0.97, 0.6], len(chosen), p=[0.33, 0.57, 0.1])


def _names(count: int, syllables: int, structure: np.random.Generator) -> tuple[str, ...]:
    """Different made-up names."""
    numbers = structure.choice(len(SYLLABLES) ** syllables, count, replace=False)
    places = np.unravel_index(numbers, (len(SYLLABLES),) * syllables)
    return tuple("".join(SYLLABLES[i] for i in one).title() for one in zip(*places, strict=True))


def _dates(day: Values, absent: Values | None = None) -> Values:
    """Days [n] after the first one as text, None where absent [n]."""
    text = (FIRST_DAY + day.astype("timedelta64[D]")).astype(str).astype(object)
    return text if absent is None else np.where(absent, None, text)


def _moments(day: Values, second: Values, absent: Values) -> Values:
    """Days and seconds of the day [n] as text, None where absent [n]."""
    start = (FIRST_DAY + day.astype("timedelta64[D]")).astype("datetime64[s]")
    text = pd.Series(start + second.astype("timedelta64[s]")).dt.strftime("%Y-%m-%d %H:%M:%S")
    return np.where(absent, None, text.to_numpy(dtype=object))


def _cases(day: Values, rng: np.random.Generator, absent: Values) -> Values:
    """Case numbers [n] that begin with the year of a day, None where absent [n]."""
    year = (FIRST_DAY + day.astype("timedelta64[D]")).astype("datetime64[Y]").astype(str)
    digits = rng.integers(0, 1_000_000, len(day))
    text = [f"{y[2:]}{digit:06d}CF10A" for y, digit in zip(year, digits, strict=True)]
    return np.where(absent, None, np.array(text, dtype=object))


ORDER = (
    *("id", "name", "first", "last", "compas_screening_date", "sex", "dob", "age", "age_cat"),
    *("race", "juv_fel_count", "decile_score", "juv_misd_count", "juv_other_count"),
    *("priors_count", "days_b_screening_arrest", "c_jail_in", "c_jail_out", "c_case_number"),
    *("c_offense_date", "c_arrest_date", "c_days_from_compas", "c_charge_degree"),
    *("c_charge_desc", "is_recid", "r_case_number", "r_charge_degree", "r_days_from_arrest"),
    *("r_offense_date", "r_charge_desc", "r_jail_in", "r_jail_out", "violent_recid"),
    *("is_violent_recid", "vr_case_number", "vr_charge_degree", "vr_offense_date"),
    *("vr_charge_desc", "type_of_assessment", "decile_score.1", "score_text"),
    *("screening_date", "v_type_of_assessment", "v_decile_score", "v_score_text"),
    *("v_screening_date", "in_custody", "out_custody", "priors_count.1", "start", "end"),
    *("event", "two_year_recid"),
)
