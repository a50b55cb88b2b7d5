"""An OpenID provider for tests: discovery, code flow with PKCE, keys, signed ID tokens.

It asks nobody for a password: `person` says who has signed in there, and `wrong` what goes wrong.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, PASSWORD = "facsimile", "not-so-secret"


class Provider:
    """A provider on a free port.

    Attributes:
      person: claims of who is signed in there.
      wrong: "state", "expired", "pkce", "key", "nonce", "audience", "refused" or "".
      asked: the parameters of the last request to authorise.
      url: its address.
    """

    def __init__(self) -> None:
        self.person: dict[str, Any] = {}
        self.wrong = ""
        self.asked: dict[str, str] = {}
        self._key, self._other = (RSAKey.generate_key(2048, {"kid": "one"}) for _ in range(2))
        self._codes: dict[str, dict[str, str]] = {}
        handler = type("Handler", (_Handler,), {"provider": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()

    def discovery(self) -> dict[str, Any]:
        """What clients learn first."""
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        }

    def keys(self) -> dict[str, Any]:
        """The public key that ID tokens are signed with."""
        return {"keys": [self._key.as_dict(private=False)]}

    def authorize(self, asked: dict[str, str]) -> str:
        """Where the browser goes next."""
        assert asked["client_id"] == CLIENT and asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256" and "openid" in asked["scope"].split()
        self.asked = asked
        code = secrets.token_urlsafe()
        self._codes[code] = asked
        state = "another" if self.wrong == "state" else asked["state"]
        answer = {"error": "access_denied"} if self.wrong == "refused" else {"code": code}
        return f"{asked['redirect_uri']}?{urlencode(answer | {'state': state})}"

    def token(self, form: dict[str, str]) -> dict[str, Any] | None:
        """The tokens for a code, once; None where the request is not who asked for it."""
        asked = self._codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if self.wrong == "pkce":  # as if another browser had caught the code
            challenge = "of somebody else"
        if (
            asked is None
            or challenge != asked["code_challenge"]
            or form.get("redirect_uri") != asked["redirect_uri"]
        ):
            return None
        now = int(time.time())
        claims = {
            "iss": self.url,
            "sub": self.person.get("email", "nobody"),
            "aud": "another" if self.wrong == "audience" else CLIENT,
            "iat": now,
            "exp": now - 3600 if self.wrong == "expired" else now + 3600,
            "nonce": "another" if self.wrong == "nonce" else asked["nonce"],
        } | self.person
        key = self._other if self.wrong == "key" else self._key
        signed = jwt.encode({"alg": "RS256", "kid": "one"}, claims, key)
        return {
            "access_token": secrets.token_urlsafe(),
            "token_type": "Bearer",
            "expires_in": 3600,
            "id_token": signed,
        }


class _Handler(BaseHTTPRequestHandler):
    provider: Provider

    def do_GET(self) -> None:
        path, query = urlsplit(self.path).path, urlsplit(self.path).query
        if path == "/authorize":
            self.send_response(302)
            self.send_header("Location", self.provider.authorize(_flat(query)))
            self.end_headers()
            return
        known = {"/.well-known/openid-configuration": "discovery", "/keys": "keys"}
        self._send(getattr(self.provider, known[path])() if path in known else None)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        expected = base64.b64encode(f"{CLIENT}:{PASSWORD}".encode()).decode()
        allowed = self.headers.get("Authorization") == f"Basic {expected}"
        self._send(self.provider.token(_flat(body)) if allowed else None)

    def _send(self, content: dict[str, Any] | None) -> None:
        self.send_response(200 if content is not None else 400)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(content or {"error": "invalid_grant"}).encode())

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


def _flat(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query).items()}
