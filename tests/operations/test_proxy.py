"""The proxy's own configuration, with nginx in front of a real server; skipped without nginx."""

from __future__ import annotations

import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.browser.app import Server, server
from tests.operations.containers import ROOT, service
from tests.ports import free_port

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
OPENSSL = shutil.which("openssl")
pytestmark = [
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed (Debian package nginx-light)"),
    pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed"),
    pytest.mark.timeout(300),
]
TEMPLATE = (ROOT / "deploy" / "nginx.conf.template").read_text(encoding="utf-8")
KEY = "dGhlIHNhbXBsZSBub25jZQ=="  # of RFC 6455's example, like the answer to it
ACCEPTED = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
HANDSHAKE = """GET /_stcore/stream?run=kestrel HTTP/1.1\r
Host: localhost:{port}\r
Origin: https://{origin}\r
Connection: Upgrade\r
Upgrade: websocket\r
Sec-WebSocket-Version: 13\r
Sec-WebSocket-Key: {key}\r
\r
"""


class Proxy:
    """nginx with the template, on free ports with a certificate of its own making."""

    def __init__(self, folder: Path, upstream: int) -> None:
        self.folder, self.port, self.plain = folder, free_port(), free_port()
        self.url = f"https://localhost:{self.port}"
        _certificate(folder)
        words = {
            "FACSIMILE_NAME": "localhost",
            "FACSIMILE_UPSTREAM": f"127.0.0.1:{upstream}",
            "FACSIMILE_TLS_DIR": str(folder),
        }
        text = re.sub(r"\$\{(\w+)\}", lambda found: words[found.group(1)], TEMPLATE)
        text = text.replace("listen 80;", f"listen 127.0.0.1:{self.plain};")
        text = text.replace("listen 443 ", f"listen 127.0.0.1:{self.port} ")
        (folder / "site.conf").write_text(text.replace("/var/log/nginx", str(folder)))
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        places = "".join(f"{kind}_temp_path {folder}/{kind}; " for kind in kinds)
        (folder / "nginx.conf").write_text(
            f"pid {folder}/pid; daemon off; error_log {folder}/error.log; "
            f"events {{}} http {{ {places} include {folder}/site.conf; }}"
        )
        self.command = [str(NGINX), "-p", str(folder), "-c", "nginx.conf"]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it listens."""
        self.process = subprocess.Popen(self.command)
        end = time.monotonic() + 60
        while time.monotonic() < end and self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        self.stop()
        log = self.folder / "error.log"
        raise RuntimeError(f"nginx did not start: {log.read_text() if log.exists() else 'no log'}")

    def stop(self) -> None:
        """End it with its workers."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(20)


def _certificate(folder: Path) -> None:
    command = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout key.pem"
    command += " -out cert.pem -addext subjectAltName=DNS:localhost"
    subprocess.run([str(OPENSSL), *command.split()], cwd=folder, capture_output=True, check=True)


def said_to(proxy: Proxy, asked: str) -> str:
    """The beginning of the answer to a request as it stands."""
    trusted = ssl.create_default_context(cafile=str(proxy.folder / "cert.pem"))
    with (
        socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as raw,
        trusted.wrap_socket(raw, server_hostname="localhost") as line,
    ):
        line.sendall(asked.encode())
        return line.recv(4096).decode()


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server(tmp_path_factory.mktemp("behind") / "home") as running:
        yield running


@pytest.fixture
def proxy(behind: Server, tmp_path: Path) -> Iterator[Proxy]:
    started = Proxy(tmp_path, behind.port)
    started.start()
    yield started
    started.stop()


@pytest.fixture
def client(proxy: Proxy) -> Iterator[httpx.Client]:
    trusted = ssl.create_default_context(cafile=str(proxy.folder / "cert.pem"))
    with httpx.Client(base_url=proxy.url, verify=trusted, trust_env=False) as opened:
        yield opened


def test_nginx_takes_the_configuration(tmp_path: Path) -> None:
    checked = subprocess.run(
        [*Proxy(tmp_path, 8501).command, "-t"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
    assert "test is successful" in checked.stderr


def test_compose_fills_in_every_word() -> None:
    words = set(re.findall(r"\$\{(\w+)\}", TEMPLATE))
    assert words and words <= set(re.findall(r"^      (\w+):", service("proxy"), re.MULTILINE))


def test_proxied_pages_keep_the_servers_headers(client: httpx.Client) -> None:
    answer = client.get("/")
    assert answer.status_code == 200 and "<title>" in answer.text
    for name in ("content-security-policy", "x-frame-options", "referrer-policy"):
        assert answer.headers.get_list(name, split_commas=False).__len__() == 1, name
    assert answer.headers["strict-transport-security"] == "max-age=31536000"


def test_scripts_are_compressed_and_pages_are_not(client: httpx.Client) -> None:
    script = re.search(r'src="\.?(/static/js/[^"]+)"', client.get("/").text)
    assert script is not None
    assert client.get(script.group(1)).headers["content-encoding"] == "gzip"
    assert "content-encoding" not in client.get("/").headers


def test_cookies_are_marked_secure(client: httpx.Client, behind: Server) -> None:
    with httpx.Client(trust_env=False) as direct:
        bare = direct.get(f"{behind.url}/_stcore/health").headers["set-cookie"]
    assert "secure" not in bare.lower()
    assert "; Secure" in client.get("/_stcore/health").headers["set-cookie"]


@pytest.mark.parametrize(
    ("origin", "status"), [("localhost:{port}", "101"), ("elsewhere.invalid", "403")]
)
def test_websockets_are_passed_on_with_their_origin(proxy: Proxy, origin: str, status: str) -> None:
    asked = HANDSHAKE.format(port=proxy.port, origin=origin.format(port=proxy.port), key=KEY)
    answer = said_to(proxy, asked)
    assert answer.startswith(f"HTTP/1.1 {status}")
    assert (ACCEPTED in answer) == (status == "101")


def test_plain_http_is_sent_on_to_tls(proxy: Proxy) -> None:
    answer = httpx.get(f"http://127.0.0.1:{proxy.plain}/plan", trust_env=False)
    assert answer.status_code == 301 and answer.headers["location"].startswith("https://")


@pytest.mark.parametrize(
    "path",
    [
        "/metrics",
        "/readyz",
        "/_stcore/metrics",
        "/_stcore/script-health-check",
        "/_stcore/agent/openapi.json",
    ],
)
def test_what_machines_ask_is_not_for_the_world(client, behind: Server, path: str) -> None:
    assert client.get(path).status_code == 404
    assert "nginx" in client.get(path).text  # not the server's own answer


def test_too_large_a_body_is_refused_before_it_is_sent(proxy: Proxy) -> None:
    asked = "PUT /_stcore/upload_file/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n"
    assert said_to(proxy, asked.format(1026 * 2**20)).startswith("HTTP/1.1 413")


def test_the_log_holds_no_query_string(client: httpx.Client, proxy: Proxy) -> None:
    client.get("/plan", params={"table": "kestrel"})
    proxy.stop()
    log = (proxy.folder / "access.log").read_text()
    assert '"GET /plan" 200' in log and "kestrel" not in log


def test_a_first_visit_passes_and_a_flood_does_not(client: httpx.Client) -> None:
    """A first visit asks for some 85 files at once."""
    answers = [client.get("/_stcore/health").status_code for _ in range(90)]
    assert set(answers) == {200}
    flood = [client.get("/_stcore/health").status_code for _ in range(700)]
    assert 429 in flood
