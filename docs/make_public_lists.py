"""Write core/proposing/public_lists.json: `python -m docs.make_public_lists`, from the root.

States of the USA and Länder are listed here. Countries, languages and currencies come from
Unicode's Common Locale Data Repository (CLDR) as the development package Babel carries it, so that
the product needs no package for them.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

from babel import Locale
from babel.core import get_global
from babel.numbers import list_currencies

TARGET = Path(__file__).parents[1] / "core" / "proposing" / "public_lists.json"
NO_COUNTRY = {"AC", "CP", "CQ", "DG", "EA", "EU", "EZ", "IC", "QO", "TA", "UN", "XA", "XB", "ZZ"}
# three-letter codes where CLDR has none or those of states that are gone too
COUNTRY_CODES = {
    "XK": "XKX",
    "CD": "COD",
    "DE": "DEU",
    "FR": "FRA",
    "MM": "MMR",
    "TL": "TLS",
    "YE": "YEM",
}
LANGUAGE_CODES = {"tl": "tgl", "tw": "twi"}
ALSO = {  # usual English names that are not CLDR's
    "CI": ["Ivory Coast"], "CV": ["Cabo Verde"], "CZ": ["Czech Republic"], "GB": ["UK"],
    "HK": ["Hong Kong"], "MO": ["Macao"], "PS": ["Palestine"],
    "KR": ["Korea, Republic of"], "MM": ["Myanmar"], "RU": ["Russian Federation"],
    "SZ": ["Swaziland"], "TR": ["Turkey"], "US": ["United States of America"], "VN": ["Viet Nam"],
}  # fmt: skip

US_STATES = (  # USPS Publication 28
    "AL Alabama,AK Alaska,AZ Arizona,AR Arkansas,CA California,CO Colorado,CT Connecticut,"
    "DE Delaware,DC District of Columbia,FL Florida,GA Georgia,HI Hawaii,ID Idaho,IL Illinois,"
    "IN Indiana,IA Iowa,KS Kansas,KY Kentucky,LA Louisiana,ME Maine,MD Maryland,MA Massachusetts,"
    "MI Michigan,MN Minnesota,MS Mississippi,MO Missouri,MT Montana,NE Nebraska,NV Nevada,"
    "NH New Hampshire,NJ New Jersey,NM New Mexico,NY New York,NC North Carolina,ND North Dakota,"
    "OH Ohio,OK Oklahoma,OR Oregon,PA Pennsylvania,RI Rhode Island,SC South Carolina,"
    "SD South Dakota,TN Tennessee,TX Texas,UT Utah,VT Vermont,VA Virginia,WA Washington,"
    "WV West Virginia,WI Wisconsin,WY Wyoming,AS American Samoa,GU Guam,"
    "MP Northern Mariana Islands,PR Puerto Rico,VI Virgin Islands"
)
LAENDER = (  # ISO 3166-2:DE and 3166-2:AT
    "DE-BW Baden-Württemberg,DE-BY Bayern,DE-BE Berlin,DE-BB Brandenburg,DE-HB Bremen,"
    "DE-HH Hamburg,DE-HE Hessen,DE-MV Mecklenburg-Vorpommern,DE-NI Niedersachsen,"
    "DE-NW Nordrhein-Westfalen,DE-RP Rheinland-Pfalz,DE-SL Saarland,DE-SN Sachsen,"
    "DE-ST Sachsen-Anhalt,DE-SH Schleswig-Holstein,DE-TH Thüringen,"
    "AT-1 Burgenland,AT-2 Kärnten,AT-3 Niederösterreich,AT-4 Oberösterreich,AT-5 Salzburg,"
    "AT-6 Steiermark,AT-7 Tirol,AT-8 Vorarlberg,AT-9 Wien"
)


def longer_codes(aliases: dict[str, list[str] | str]) -> dict[str, list[str]]:
    """Three-letter codes by the two-letter code that stands for the same."""
    found: dict[str, list[str]] = {}
    for code, other in sorted(aliases.items()):
        short = [other] if isinstance(other, str) else other
        if len(code) == 3 and code.isalpha() and len(short) == 1 and len(short[0]) == 2:
            found.setdefault(short[0], []).append(code)
    return found


def countries() -> list[list[str]]:
    """Two-letter code, three-letter code, then names in English and German."""
    english, german = Locale("en").territories, Locale("de").territories
    longer = longer_codes(get_global("territory_aliases"))
    rows = []
    for code in sorted(code for code in english if len(code) == 2 and code not in NO_COUNTRY):
        name = english[code]
        full = name.replace("&", "and").replace("St. ", "Saint ")
        codes = [code, COUNTRY_CODES.get(code) or longer[code][0]]
        rows.append([*codes, *dict.fromkeys([name, full, *ALSO.get(code, []), german[code]])])
    return rows


def languages() -> list[list[str]]:
    """Two-letter code, three-letter code, then names in English and German."""
    english, german = Locale("en").languages, Locale("de").languages
    longer = longer_codes(get_global("language_aliases"))
    rows = []
    for code in sorted(code for code in english if len(code) == 2 and code != "sh"):
        codes = [LANGUAGE_CODES[code]] if code in LANGUAGE_CODES else longer.get(code, [])
        rows.append([code, *dict.fromkeys([*codes, english[code], german[code]])])
    return rows


def laender() -> list[list[str]]:
    """ISO code, Germany's also without the country, and name."""
    rows = [entry.split(" ", 1) for entry in LAENDER.split(",")]
    return [[code, *([code[3:]] if code.startswith("DE") else []), name] for code, name in rows]


def contents() -> str:
    """The file: one list's entry a line."""
    about = f"Unicode CLDR {get_global('cldr')['version']} in Babel {version('babel')}; "
    about += "© Unicode, Inc., Unicode License v3"
    lists = {
        "countries": countries(),
        "languages": languages(),
        "us_states": [entry.split(" ", 1) for entry in US_STATES.split(",")],
        "laender": laender(),
        "currencies": [[code] for code in sorted(list_currencies())],
    }
    parts = [f'"source": {json.dumps(about, ensure_ascii=False)}']
    for name, rows in lists.items():
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        parts.append(f'"{name}": [\n{lines}\n]')
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    TARGET.write_text(contents(), encoding="utf-8")
