"""Sign-in against a provider that speaks the real protocol; who then sees what, and takes what."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Page

from core.runs.storage.access import set_access
from tests.browser.app import browser_page, server
from tests.browser.house import NEW, OLD, PEOPLE, USER, House, http_sign_in
from tests.browser.provider import Provider
from tests.browser.wire import sent

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600), pytest.mark.slow]
PATIENCE = 30_000  # ms


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    provider = Provider()
    built = House(tmp_path_factory.mktemp("sign-in"), provider)
    with server(built.home, built.port, [f"--secrets.files={built.secrets}"]):
        yield built
    provider.close()


@pytest.fixture(autouse=True)
def as_agreed(house: House) -> Iterator[None]:
    house.provider.wrong = ""
    yield
    house.say(PEOPLE)


# -- the protocol --------------------------------------------------------------------------------


def test_a_sign_in_code_needs_a_challenge_and_brings_a_cookie(house):
    with http_sign_in(house) as client:
        assert USER in client.cookies
    asked = house.provider.asked
    assert asked["code_challenge_method"] == "S256" and len(asked["code_challenge"]) >= 43
    assert asked["redirect_uri"] == f"{house.url}/oauth2callback" and asked["nonce"]


@pytest.mark.parametrize(
    "wrong", ["state", "expired", "pkce", "key", "nonce", "audience", "refused"]
)
def test_what_the_protocol_forbids_signs_nobody_in(house, wrong):
    house.provider.wrong = wrong
    with http_sign_in(house) as client:
        assert USER not in client.cookies
        assert client.get(house.url).status_code == 200  # the server goes on


def test_a_callback_that_nobody_asked_for_signs_nobody_in(house):
    with httpx.Client(follow_redirects=True, trust_env=False) as client:
        answer = client.get(f"{house.url}/oauth2callback", params={"code": "x", "state": "y"})
        assert answer.status_code == 200 and USER not in client.cookies


# -- the pages -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(house: House) -> Iterator[Page]:
    with browser_page() as opened:
        opened.set_default_timeout(PATIENCE)
        yield opened


@pytest.fixture
def sign_in(house: House, page: Page) -> Callable[..., Page]:
    """Sign in by the page's own button."""

    def signed(email: str, **claims: Any) -> Page:
        page.goto("about:blank")  # whatever is still under way ends here
        page.context.clear_cookies()
        house.provider.person = {
            "email": email,
            "email_verified": True,
            "name": email.split("@")[0],
        } | claims
        page.goto(house.url)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text(f"{email.split('@')[0]} ·").wait_for()
        return page

    return signed


def links(page: Page) -> list[str]:
    """The pages that the navigation lists; a link's text begins with its icon's name."""
    texts = page.get_by_role("link").all_inner_texts()
    names = (text.split()[-1] for text in texts if text.split())
    return [name for name in names if name != "content"]  # "Skip to main content"


@pytest.mark.parametrize(
    ("email", "pages"),
    [
        ("ann@x.org", ["Tables", "Plan", "Training", "Review", "Ask", "Download", "Ledger"]),
        ("bob@x.org", ["Review", "Ask"]),
        ("pat@x.org", ["Ledger"]),
        ("eve@x.org", []),
    ],
)
def test_each_role_is_shown_its_own_pages(house, sign_in, email, pages):
    page = sign_in(email)
    if pages:  # a single page has no list
        page.get_by_role("heading", name=pages[0], exact=True).wait_for()
    assert links(page) == (pages if len(pages) > 1 else [])
    if pages:
        page.goto(f"{house.url}/plan")
        if "Plan" not in pages:  # an officer may not train
            page.get_by_text("Your account does not have access to this page").wait_for()
    else:
        page.get_by_text("Your account does not have access to this page").wait_for()


def test_an_officer_sets_limits_and_a_steward_does_not(house, sign_in):
    sign_in("pat@x.org").get_by_role("button", name="Set a limit").first.wait_for()
    page = sign_in("ann@x.org")
    page.goto(f"{house.url}/ledger")
    page.get_by_text("Only the privacy officer can set a different limit").first.wait_for()
    assert page.get_by_role("button", name="Set a limit").count() == 0


def test_an_address_that_is_not_verified_opens_nothing(sign_in):
    page = sign_in("ann@x.org", email_verified=False)
    page.get_by_text("Your account does not have access to this page").wait_for()


def test_who_signed_in_yesterday_is_asked_again(house, page, sign_in):
    sign_in("ann@x.org")
    house.provider.person["iat"] = int(time.time()) - 13 * 3600
    page.get_by_role("button", name="Sign out").click()
    with page.expect_response("**/oauth2callback*"):
        page.get_by_role("button", name="Sign in").click()
    page.get_by_text("Sign in to continue").wait_for()
    assert page.get_by_text(OLD).count() == 0


def test_a_table_is_its_owners_and_theirs_it_is_shared_with(house, sign_in):
    page = sign_in("ann@x.org")
    page.get_by_text(NEW).first.wait_for()
    page = sign_in("ada@x.org")
    page.get_by_text(OLD).first.wait_for()  # it was there before people signed in
    with http_sign_in(house, "ada@x.org") as ada, http_sign_in(house, "ann@x.org") as ann:
        for place in ("", "plan", "training", "review", "download", "ledger"):
            for about in ("", f"run={house.new.id}", f"table={house.new.table_id}"):
                seen = sent(ada, house.url, place, about)
                assert "ada@x.org ·" in seen and NEW not in seen, (place, about)
            seen = sent(ann, house.url, place)
            assert "ann@x.org ·" in seen and NEW in seen, place
    set_access(house.store, house.new.table_id, owner="ann@x.org", shared=["ada@x.org"])
    page.goto(house.url)
    page.get_by_text(NEW).first.wait_for()
    set_access(house.store, house.new.table_id, owner="ann@x.org")


# -- files ---------------------------------------------------------------------------------------


@pytest.fixture
def address_of_a_file(house: House, sign_in) -> Callable[[], tuple[str, dict[str, str]]]:
    """The address of a file that a button just made and nobody fetched, and its maker's cookies."""

    def pressed() -> tuple[str, dict[str, str]]:
        page = sign_in("ann@x.org")
        page.goto(f"{house.url}/download?run={house.new.id}")
        button = page.get_by_role("button", name="Download wages-2025-synthetic")
        button.wait_for()
        page.evaluate("HTMLAnchorElement.prototype.click = function () { window.to = this.href }")
        button.click()
        url = page.wait_for_function("window.to").json_value()
        cookies = {one["name"]: one["value"] for one in page.context.cookies()}
        return url, cookies

    return pressed


def fetch(url: str, cookies: dict[str, str] | None = None) -> httpx.Response:
    with httpx.Client(cookies=cookies, trust_env=False) as client:
        return client.get(url)


def test_a_file_is_handed_to_its_maker_alone(address_of_a_file):
    url, cookies = address_of_a_file()
    assert urlsplit(url).path.startswith("/media/")
    without = fetch(url)
    assert without.status_code == 404 and "visit_id" not in without.text
    answer = fetch(url, cookies)
    assert answer.status_code == 200, answer.text
    assert answer.text.startswith("visit_id,age,ward")
    assert answer.headers["cache-control"] == "no-store"


def test_a_browser_saves_the_file(house, sign_in):
    page = sign_in("ann@x.org")
    page.goto(f"{house.url}/download?run={house.new.id}")
    with page.expect_download() as caught:
        page.get_by_role("button", name="Download wages-2025-synthetic").click()
    assert caught.value.path().read_text().startswith("visit_id,age,ward")
    assert fetch(caught.value.url).status_code == 404


def test_somebody_elses_sign_in_fetches_nothing(house, address_of_a_file):
    url, _ = address_of_a_file()
    with http_sign_in(house, "ada@x.org") as client:
        assert client.get(url).status_code == 404


def test_a_file_does_not_outlive_its_makers_rights(house, address_of_a_file):
    url, cookies = address_of_a_file()
    house.say(PEOPLE | {"steward": ["ada@x.org"]})
    assert fetch(url, cookies).status_code == 404


def test_a_page_left_open_makes_no_file_once_rights_are_gone(house, sign_in):
    page = sign_in("ann@x.org")
    page.goto(f"{house.url}/download?run={house.new.id}")
    page.get_by_role("button", name="Download wages-2025-synthetic").wait_for()
    house.say(PEOPLE | {"steward": ["ada@x.org"]})
    fetched: list[str] = []
    page.on("request", lambda one: fetched.append(one.url) if "/media/" in one.url else None)
    page.get_by_role("button", name="Download wages-2025-synthetic").click()
    page.wait_for_timeout(1500)
    assert not [url for url in fetched if url.endswith(".csv")]


def test_every_answer_says_that_nobody_may_frame_it(house):
    for path in ("", "review", "media/none.csv", "_stcore/health"):
        headers = fetch(f"{house.url}/{path}").headers
        assert headers["x-frame-options"] == "DENY" and "nosniff" in headers.values()
        policy = headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy and "default-src 'self'" in policy
