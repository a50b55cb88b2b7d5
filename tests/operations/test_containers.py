"""Dockerfile and compose.yaml: what of them runs outside of a container is run; the rest is read.

docs/deployment.md lists each command and how it was tried; nothing may be missing there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from core.runs.execution.privacy_certificate import VERSION
from tests.operations.containers import (
    COMPOSE,
    ROOT,
    all_of,
    command_of,
    command_of_service,
    copied,
    ignored,
    instructions,
    service,
)
from tests.ports import free_port
from tests.runs.workers import until

pytestmark = pytest.mark.slow

DOCUMENT = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
BIN = Path(sys.executable).parent
CANARY = "kestrelsecret"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with secrets and a workspace lying about."""
    folder = tmp_path_factory.mktemp("tree")
    for name in ("core", "pages", ".streamlit"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("app.py", "requirements.lock", "requirements-cluster.txt"):
        shutil.copyfile(ROOT / name, folder / name)
    for name in (".streamlit/secrets.toml", ".env", "workspace/x.db", "deploy/tls/key.pem"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(CANARY)
    return folder


@pytest.fixture(scope="module")
def image(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image's working folder, as COPY would make it."""
    folder = tmp_path_factory.mktemp("image")
    copied(tree, folder)
    return folder


class Served:
    """A command that serves, in the image's folder with the image's environment."""

    def __init__(self, command: list[str], folder: Path, home: Path) -> None:
        self.port = free_port()
        words = " ".join(all_of("ENV")).split()
        env = dict(os.environ) | dict(word.split("=", 1) for word in words)
        env |= {"FACSIMILE_HOME": str(home), "PATH": f"{BIN}:{env['PATH']}"}
        self.env = env | {"STREAMLIT_SERVER_PORT": str(self.port)}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, cwd=folder, env=self.env, **quiet)
        end = time.monotonic() + 60
        while not self.healthy():
            assert time.monotonic() < end and self.process.poll() is None, "never healthy"
            time.sleep(0.2)

    def healthy(self) -> bool:
        """Whether the image's HEALTHCHECK says so, asked at this server's port."""
        check = [word.replace(":8501/", f":{self.port}/") for word in command_of("HEALTHCHECK")]
        done = subprocess.run(check, env=self.env, capture_output=True, timeout=30, check=False)
        return done.returncode == 0

    def page(self, path: str = "") -> httpx.Response:
        """What a browser gets."""
        return httpx.get(f"http://127.0.0.1:{self.port}/{path}", trust_env=False)

    def end(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()


def ready(port: int) -> bool:
    """What a probe learns."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
            return b'"ready":true' in answer.read()
    except urllib.error.HTTPError:
        return False


@pytest.fixture
def served(image: Path, tmp_path: Path) -> Iterator[Served]:
    running = Served(command_of("CMD"), image, tmp_path / "home")
    yield running
    running.end()


def test_the_image_command_serves_and_its_check_sees_the_end(served: Served) -> None:
    until(lambda: ready(served.port))  # the first answer waits for what pages import
    assert served.page().headers["content-security-policy"]
    served.end()
    assert not served.healthy()


def test_a_run_ends_with_what_was_copied(image: Path, tmp_path: Path) -> None:
    """All that a run opens is in the image: what is not, it would meet after it has paid."""
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{i % 9},{i % 2}\n" for i in range(200)))
    words = "synth t.csv --declare-public --model pearl --epsilon 1 --out out.csv --rows 9"
    small = [
        f"--settings={one}" for one in ("steps=10", "frequencies=100", "batch=64", "hidden=16")
    ]
    done = subprocess.run(
        [sys.executable, "-m", "core.cli", *words.split(), *small],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(image), "FACSIMILE_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and (tmp_path / "out.csv").exists(), done.stderr


def test_the_version_is_the_projects() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == VERSION
    assert f"image: facsimile:{VERSION}" in service("app")


def test_the_image_comes_up_closed_and_says_how_to_open_it(served: Served) -> None:
    answer = served.page()
    assert answer.status_code == 503 and "sign-in is not set up" in answer.text
    assert "open_to_network = true" in answer.text and "<script" not in answer.text
    for path in ("tables", "media/x", "static/js/x.js", "_stcore/host-config", "_stcore/metrics"):
        assert served.page(path).status_code == 503
    assert served.healthy()


def test_compose_starts_with_secrets_without_sign_in(image: Path, tmp_path: Path) -> None:
    (path,) = re.findall(r"FACSIMILE_SECRETS:-(\S+)\}", COMPOSE.split("\nsecrets:")[1])
    command = command_of_service("app")
    place = "/run/secrets/facsimile.toml"
    assert command[:-1] == command_of("CMD") and command[-1] == f"--secrets.files={place}"
    given = [word.replace(place, str(ROOT / path)) for word in command]
    running = Served(given, image, tmp_path / "home")
    try:
        answer = running.page()
        assert answer.status_code == 200 and "<script" in answer.text
    finally:
        running.end()


def test_no_secret_gets_into_a_layer(tree: Path, image: Path) -> None:
    assert (image / "app.py").exists() and (image / "core/models/registry.py").exists()
    for path in image.rglob("*"):
        assert path.is_dir() or CANARY.encode() not in path.read_bytes(), path
    assert not [rest for rest in all_of("COPY") if rest.split()[0] in (".", "./", ".streamlit")]
    assert all(ignored(name) for name in (".env", ".git/config", ".streamlit/secrets.toml"))
    assert not re.search(r"(?i)password|token|secret", " ".join(all_of("ENV") + all_of("RUN")))


def test_a_careless_copy_would_bring_them(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    careless = [("COPY", ".streamlit .streamlit")]
    monkeypatch.setattr("tests.operations.containers.instructions", lambda: careless)
    monkeypatch.setattr("tests.operations.containers.ignored", lambda name: False)
    copied(tree, tmp_path)
    assert (tmp_path / ".streamlit/secrets.toml").read_text() == CANARY


def test_the_image_is_pinned_and_runs_as_nobody_special() -> None:
    (base,) = all_of("FROM")
    assert re.fullmatch(r"python:3\.11\.\d+-slim-[a-z]+", base)
    words = [word for word, _ in instructions()]
    assert all_of("USER") == ["10001"] and words.index("USER") > words.index("RUN")
    assert words[words.index("USER") :].count("RUN") == 0
    (made,) = [rest for rest in all_of("RUN") if rest.startswith("useradd")]
    assert "--uid 10001" in made and all_of("VOLUME") == ["/workspace"]
    assert any("--require-hashes -r requirements.lock" in rest for rest in all_of("RUN"))
    images = re.findall(r"^    image: (\S+)$", COMPOSE, re.MULTILINE)
    assert len(images) == 4 and not [one for one in images if not re.search(r":\S*\d", one)]


def test_plain_compose_up_is_reachable_from_this_machine_only() -> None:
    plain = [n for n in ("app", "proxy", "database", "objects") if "profiles:" not in service(n)]
    assert plain == ["app"]
    assert 'ports: ["127.0.0.1:8501:8501"]' in service("app")
    assert 'ALLOWED_HOSTS: "localhost 127.0.0.1 ${FACSIMILE_NAME' in service("app")
    assert "cap_drop: [ALL]" in service("app") and "read_only: true" in service("app")


def test_the_proxy_refuses_to_start_where_nobody_would_sign_in() -> None:
    shell, flag, script = command_of_service("proxy")
    script = script.replace("$$", "$").replace("/docker-entrypoint.sh nginx", "echo started")
    for path, code, said in (("", 1, "nobody would sign in"), ("/etc/x.toml", 0, "started")):
        env = {"PATH": os.environ["PATH"], "FACSIMILE_SECRETS": path}
        done = subprocess.run(
            [shell, flag, script], env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == code and said in done.stdout


def test_every_command_is_listed_with_how_it_was_tried() -> None:
    commands = [f"RUN {rest}" for rest in all_of("RUN")]
    commands += [f"CMD {' '.join(command_of('CMD'))}", "HEALTHCHECK"]
    for name in ("app", "proxy", "objects"):
        commands.append(f"{name}: {' '.join(command_of_service(name))[:40]}")
    rows = [line for line in DOCUMENT.splitlines() if line.startswith("| `")]
    for command in commands:
        cell = command.replace("|", "\\|")  # as a table's cell has it
        (row,) = [row for row in rows if row.startswith(f"| `{cell}")]
        tried = row.rstrip("| ").rpartition(" | ")[2]
        assert re.match(r"test `tests/|by hand, 20\d\d-\d\d-\d\d|not run", tried), row
        for named in re.findall(r"`(tests/[^`:]+)", tried):
            assert (ROOT / named).exists(), named
