"""docs/adding-a-model.md is true: its example, put into a copy of the product, is a model.

The copy is used by fresh interpreters, with its folder first on the path.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from core.services.sample_tables import sample_table

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "adding-a-model.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"`core/models/(independent/\w+\.py)`:\n\n```python\n(.*?)```", PAGE, re.S))
(QUICK,) = re.findall(r'^ +"independent": \{.*\},\n', PAGE, re.M)
BODY, FITS = "tests/contract/test_contract.py", "tests/contract/fits.py"
HELPERS = "tests/models/tables.py", "tests/privacy/deterministic_noise.py"
PLANNED = """
import sys
from core.models.registry import cards
from core.services.planning import make_plan
from core.proposing.propose import infer_schema
from core.runs.request import RunRequest
from core.services.sample_tables import sample_table
assert "independent" in [card.id for card in cards()]
schema = infer_schema(sample_table(200))
plan = make_plan(schema, 200, RunRequest(model="independent", epsilon=1.0))
assert [phase.name for phase in plan.phases] == ["counts"], plan.phases
assert 0.98 < plan.guarantee.epsilon <= 1.0, plan.guarantee
assert "torch" not in sys.modules
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The product with one more model, and what the contract's tests need."""
    folder = tmp_path_factory.mktemp("product")
    shutil.copytree(ROOT / "core", folder / "core")  # compiled modules too, a third of the time
    (folder / "core" / "models" / "independent").mkdir()
    for name, text in FILES.items():
        (folder / "core" / "models" / name).write_text(text, encoding="utf-8")
    for name in ("pyproject.toml", *HELPERS, FITS, BODY):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    fits = (folder / FITS).read_text(encoding="utf-8")
    for settings in ("QUICK", "LONG"):
        fits, count = re.subn(rf"^{settings}: .* = \{{\n", rf"\g<0>{QUICK}", fits, flags=re.M)
        assert count == 1
    (folder / FITS).write_text(fits, encoding="utf-8")
    return folder


def python(copy: Path, *arguments: str) -> str:
    """What a fresh interpreter says on its standard output; its end must be good."""
    environment = {**os.environ, "PYTHONPATH": str(copy), "FACSIMILE_HOME": str(copy / "home")}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=copy, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_page_shows_all_that_a_model_is():
    assert sorted(FILES) == [f"independent/{name}.py" for name in ("__init__", "plan", "trainer")]


def test_it_is_on_the_cards_and_can_be_planned_without_tensors(copy: Path):
    python(copy, "-c", PLANNED)


def test_the_command_line_makes_a_table_with_it(copy: Path):
    sample_table(200).to_csv(copy / "visits.csv", index=False)
    command = ["synth", "visits.csv", "--model", "independent", "--epsilon", "1", "--rows", "20"]
    command += ["--declare-public", "--device", "cpu", "--quiet", "--json", "--out", "out.csv"]
    said = python(copy, "-m", "core.cli", *command)
    assert json.loads(said.splitlines()[-1])["model"] == "independent"
    assert len((copy / "out.csv").read_text(encoding="utf-8").splitlines()) == 21


def test_it_keeps_the_contract_of_all_models(copy: Path):
    """All of it but that dependence is learnt, which independent columns cannot."""
    wanted = ["-k", "independent and not learns_the_dependence"]
    options = ["-q", "-n", "0", "-p", "no:cacheprovider"]
    said = python(copy, "-m", "pytest", BODY, *wanted, *options)
    assert re.search(r"\b1\d passed", said) and "failed" not in said, said
