"""Write docs/reference.md: `python -m docs.make_reference`, from the repository's root.

Settings come from the models' settings classes, metrics from their registry, commands and options
from the command line's parser. Environment variables and secrets are listed here, since they are
read in several places; `tests/test_docs.py` finds those that are missing.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from pydantic import BaseModel

from core.cli.main import EXIT_CODES, command_line
from core.models.card import Card
from core.models.registry import cards, synthesizer
from core.quality.metrics.family import families

PAGE = Path(__file__).with_name("reference.md")
CONFIG = Path(__file__).parents[1] / ".streamlit" / "config.toml"
HEAD = """# Reference

Every setting, metric, command and variable. Made from the code by `python -m docs.make_reference`: change the code, not this page."""  # noqa: E501
RANGES = (
    "On the Plan page under *Advanced*; on the command line `--settings NAME=VALUE …`. A round "
    "bracket leaves its end out of the range."
)
ENVIRONMENT = {
    "FACSIMILE_HOME": "The workspace: tables, runs, ledger. `~/.facsimile` when not set.",
    "FACSIMILE_DATABASE": "The database of runs and ledger: "
    "`postgresql://USER:PASSWORD@HOST/DATABASE` for several servers "
    "([how](deployment.md#a-database-for-several-servers)), with any option of libpq behind a "
    "question mark. `facsimile.db` in the workspace when not set.",
    "FACSIMILE_STORAGE": "Where tables, runs and secrets lie, as a URL of fsspec such as "
    "`s3://bucket/prefix`, without credentials; the workspace when not set. "
    "[How to set it up](deployment.md#object-storage).",
    "FACSIMILE_LAUNCHER": "Who works runs off. `local`, as when not set: this machine, one at a "
    "time. `ray:auto`, `ray:HOST:PORT` or `ray://HOST:10001`: a Ray cluster, of which a run takes "
    "`?cpus=1&gpus=…&memory_gb=…&restarts=3&tasks=0`; [how](deployment.md#a-cluster).",
    "FACSIMILE_UPLOADS_MB": "How much of one person may wait in the server's memory at once, in "
    "MB, in all of their pages together; `server.maxUploadSize` when not set: one file as large as "
    "any may be. Each is freed as soon as it was read, at the latest when its page is closed.",
    "FACSIMILE_READ_MB": "The most memory that reading one file may take, in MB; 2048 when not "
    "set. A file that needs more is refused, and nothing else is harmed.",
    "FACSIMILE_READ_SECONDS": "The longest that reading one file may take; 300 when not set.",
    "FACSIMILE_SOURCES": "Folders and beginnings of addresses, separated by commas, that tables "
    "may be opened from, such as `/srv/tables, s3://research/, postgresql://db.example.org/`. "
    "When not set: nothing where people sign in, else whatever this account may read.",
    "FACSIMILE_SOURCE_PASSWORD": "The password of the database or store that a command reads from, "
    "so that it need not stand in the address.",
    "FACSIMILE_LOG": "Log operations as JSON lines, without any value of a table: `json` for the "
    "console, a path for a file that all processes of a workspace append to. Nothing when not set.",
    "FACSIMILE_METRICS_TOKEN": "Opens `/metrics` to who sends it as `Authorization: Bearer …`; at "
    "least 16 characters. Nobody gets metrics when not set.",
    "FACSIMILE_SECRETS": "Only for compose.yaml: the secrets file, readable by user 10001. Nobody "
    "signs in when not set, and the proxy does not start.",
    "FACSIMILE_NAME": "Only for the proxy: the server's name, as browsers call it.",
    "FACSIMILE_TLS_DIR": "Only for the proxy: the folder of `cert.pem` and `key.pem`.",
    "FACSIMILE_UPSTREAM": "Only for the proxy: host and port of the server behind it.",
    "FACSIMILE_DATA": "Only for tests: the folder of real tables. Tests that need one are skipped "
    "when not set.",
}
SECRETS = {
    "sign_in": "`false`, at the top of the file, says that nobody shall sign in; only without "
    "`[auth]`.",
    "open_to_network": "`true` beside it says so also where more than this machine can reach the "
    "server.",
    "trust_addresses": "`true` where the provider does not say whether addresses are verified, and "
    "people cannot change theirs there.",
    "auth": "A section: [Streamlit's settings of OIDC](https://docs.streamlit.io/develop/concepts/"
    "connections/authentication). With it everybody has to sign in.",
    "roles": "A section with lists of e-mail addresses: `steward` may do everything, `reviewer` "
    "may see Review and write there, `privacy_officer` sets limits on Ledger. "
    "[How to set sign-in up](deployment.md).",
}
SERVER = {
    "server.address": "Who can reach the server: this machine alone.",
    "server.allowedHosts": "The names that it answers to, at any port; others get 403. "
    "[Behind a proxy](deployment.md#the-proxy) the public name joins them.",
    "server.headless": "Open no browser on the server's side.",
    "server.maxUploadSize": "Of one file, in MB.",
    "server.enableXsrfProtection": "Requests from other sites are refused.",
    "server.enableCORS": "Pages of other sites may read nothing.",
    "server.fileWatcherType": "Changed code is not reloaded.",
    "client.showErrorDetails": "No stack traces to people; they are on the console.",
    "client.showErrorLinks": "no links to search engines or chat services beside an error",
    "client.toolbarMode": "No developer's menu.",
    "browser.gatherUsageStats": "Nothing is sent anywhere.",
    "runner.postScriptGC": "No full collection of memory after every run of a page.",
}
BOUNDS = {
    "ge": (0, "[{:,.10g}"),
    "gt": (0, "({:,.10g}"),
    "le": (1, "{:,.10g}]"),
    "lt": (1, "{:,.10g})"),
}
EVERYWHERE = ("traceback", "json")  # options that every command has


def table(*columns: str, rows: Iterable[tuple[str, ...]]) -> str:
    """A table in Markdown; bars in cells are escaped."""
    lines = [columns, ("---",) * len(columns), *rows]
    cells = ([cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def attributes(documented: type) -> dict[str, str]:
    """What the docstrings of a class and its bases say of each attribute, by name."""
    texts: dict[str, str] = {}
    for described in reversed(documented.__mro__):
        _, _, listed = inspect.cleandoc(described.__doc__ or "").partition("Attributes:\n")
        for names, text in re.findall(r"^  (\w[\w, ]*): (.+(?:\n    .+)*)", listed, re.MULTILINE):
            texts |= dict.fromkeys(names.split(", "), " ".join(text.split()))
    return texts


def allowed(settings: type[BaseModel], name: str) -> str:
    """The range of a setting, such as "[1, 200]", or what it is where it has none."""
    field = settings.model_fields[name]
    ends: dict[int, str] = {}
    for limit in field.metadata:
        for bound, (end, form) in BOUNDS.items():
            if (value := getattr(limit, bound, None)) is not None:
                ends[end] = form.format(value)
    if ends:
        return f"{ends.get(0, '(−∞')}, {ends.get(1, '∞)')}"
    return "True or False" if field.annotation is bool else "a name"


def model_section(card: Card) -> str:
    """A model's settings; what the Plan page says of them, else what the code says."""
    settings = synthesizer(card.id).settings_class
    texts = attributes(settings)
    texts |= {setting.name: f"{setting.label}: {setting.help}" for setting in card.settings}
    rows = (
        (f"`{name}`", f"`{field.default}`", allowed(settings, name), sentence(texts[name]))
        for name, field in settings.model_fields.items()
    )
    base = " The settings of its base may be given too." if card.boosts else ""
    shown = table("setting", "default", "range", "what it is", rows=rows)
    return f"### {card.name}\n\n`{card.id}`. {card.summary} {card.source}.{base}\n\n{shown}"


def sentence(text: str) -> str:
    """With a capital, where it begins with a plain word, and a full stop."""
    if re.match(r"[a-z]+[ ,;:]", text):
        text = text[0].upper() + text[1:]
    return f"{text.removesuffix('.')}." if text else ""


def metric_section() -> str:
    """Every number of a report."""
    rows = (
        (
            f"`{m.key}`", m.title, m.goal, f"{m.low:,.10g} to {m.high:,.10g} {m.unit}".strip(),
            m.meaning, m.source,
        )
        for family in families()
        for m in family.metrics
    )  # fmt: skip
    return table("key", "title", "closer is", "range", "meaning", "source", rows=rows)


def commands() -> dict[str, tuple[str, argparse.ArgumentParser]]:
    """Each command's help and parser, by name."""
    (action,) = (a for a in command_line()._actions if isinstance(a, argparse._SubParsersAction))
    helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
    return {name: (helps[name], parser) for name, parser in action.choices.items()}


def options(
    parser: argparse.ArgumentParser, without: Collection[str] = ()
) -> Iterator[tuple[str, str]]:
    """A row for each argument and option of a command, but for those in `without`."""
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction) or action.dest in without:
            continue
        if not action.option_strings:
            form = "|".join(action.choices or (action.dest,))
        else:
            values = (
                "|".join(map(str, action.choices or ())) or action.metavar or action.dest.upper()
            )
            form = f"{action.option_strings[-1]}{'' if action.nargs == 0 else f' {values}'}"
        if not action.required:
            form = f"[{form}]"
        yield f"`{form}`", sentence(action.help or "")


def command_sections() -> Iterator[str]:
    """Each command with its options; those of `plan` are not repeated under `synth`."""
    yield (
        "`python -m core.cli COMMAND`; what stands in brackets may be left out. Every command also "
        "takes `--json` (one JSON object on the last line, an error too: `error` and `exit`) and "
        "`--traceback` (show where an error arose)."
    )
    codes = ((f"{code}", words) for code, words in EXIT_CODES.items())
    yield table("exit code", "what it means", rows=codes)
    of_plan = {action.dest for action in commands()["plan"][1]._actions}
    for name, (words, parser) in commands().items():
        known = {*EVERYWHERE, *(of_plan if name == "synth" else ())}
        also = " Takes what `plan` takes, and:" if name == "synth" else ""
        yield f"### {name}\n\n{sentence(words)}{also}"
        rows = list(options(parser, known))
        if rows:
            yield table("option", "what it is", rows=rows)


def server_settings() -> Iterator[tuple[str, str, str]]:
    """A row for each key that the server's configuration sets, but for the theme's."""
    for section, values in tomllib.loads(CONFIG.read_text(encoding="utf-8")).items():
        for key, value in values.items():
            if section != "theme":
                name = f"{section}.{key}"
                yield f"`{name}`", f"`{json.dumps(value)}`", SERVER[name]


def page() -> str:
    """The whole page."""
    sections = [HEAD, "## Models and their settings", RANGES, *map(model_section, cards())]
    sections += ["## Metrics", metric_section(), "## Commands", *command_sections()]
    variables = ((f"`{name}`", text) for name, text in ENVIRONMENT.items())
    keys = ((f"`{name}`", text) for name, text in SECRETS.items())
    sections += [
        "## Environment variables",
        table("name", "what it is", rows=variables),
        "## Secrets",
        "In `.streamlit/secrets.toml`; where that file never was, and this machine alone can "
        "reach the server, nobody is asked to sign in. "
        "[When the server is closed](deployment.md#when-the-server-is-closed).",
        table("key", "what it is", rows=keys),
        "## Server",
        "What `.streamlit/config.toml` sets, beside colours and type; `--server.address` and the "
        "like on the command line of `streamlit run` overrule it.",
        table("key", "value", "what it is for", rows=server_settings()),
    ]
    return "\n\n".join(sections) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
