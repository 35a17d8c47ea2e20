"""Who may ask the explorer: this machine's page, and nobody else's."""

from __future__ import annotations

import pytest

from explorer import Explorer

API = "/api/v1/about"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "localhost:9999", "[::1]:80", "LOCALHOST"])
def test_this_machine_may_ask_by_its_own_names(explorer: Explorer, host: str) -> None:
    assert explorer.send(API, host=host).status == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", "10.0.0.1", "[::2]", "0.0.0.0"),
        *("[::1]evil.com", "[::1]evil.com:80", "[::1]:80evil.com", "[::1", "::1", "[localhost]", "[::1]]"),
        *("localhost:", "localhost:0", "localhost:99999999", "localhost:80:80"),
        *("localhost:8a", "localhost.", "localhost:+80", "me@localhost", "localhost@evil.com", "localhost/x"),
        *("localhost evil.com", "localhost,evil.com", "localhost#evil.com", ":80"),
    ],
)
def test_a_foreign_name_that_points_here_is_refused(explorer: Explorer, host: str) -> None:
    for path in (API, "/", "/static/js/main.js", "/api/v1/openapi.json"):
        reply = explorer.send(path, host=host)
        assert reply.status == 403, path
        assert "name of this machine" in reply.json()["error"]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1", "file://", "http://127.0.0.1"])
def test_a_foreign_page_is_refused(explorer: Explorer, origin: str) -> None:
    assert explorer.send(API, origin=origin).status == 403


def test_the_page_itself_may_ask(explorer: Explorer) -> None:
    assert explorer.send(API, origin=explorer.address).status == 200
    assert explorer.send(API, sec_fetch_site="same-origin").status == 200


def test_what_a_foreign_page_embeds_is_refused_and_a_link_from_it_is_not(explorer: Explorer) -> None:
    for site in ("cross-site", "same-site"):
        assert explorer.send("/static/js/main.js", sec_fetch_site=site, sec_fetch_mode="no-cors").status == 403
        assert explorer.send(API, sec_fetch_site=site, sec_fetch_mode="navigate").status == 403
        assert explorer.send("/map", sec_fetch_site=site, sec_fetch_mode="navigate").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_can_be_changed(explorer: Explorer, method: str) -> None:
    reply = explorer.send(API, method)
    assert (reply.status, reply.headers.get("allow")) == (405, "GET, HEAD")


def test_a_head_is_what_the_answer_begins_with(explorer: Explorer) -> None:
    for path in (API, "/", "/static/js/main.js", "/api/v1/verdict/spike/softmax"):
        asked, head = explorer.send(path), explorer.send(path, "HEAD")
        assert (head.status, head.body) == (200, b"")
        assert head.headers["content-type"] == asked.headers["content-type"]


def test_a_new_version_of_the_page_is_seen_at_once(explorer: Explorer) -> None:
    for path in ("/", "/static/js/main.js", "/static/style.css"):
        assert explorer.send(path).headers["cache-control"] == "no-cache"


def test_a_request_has_no_body(explorer: Explorer) -> None:
    assert explorer.send(API, body=b"{}").status == 413


def test_an_endless_address_is_refused(explorer: Explorer) -> None:
    assert explorer.send(f"{API}?x={9000 * 'y'}").status == 414


@pytest.mark.parametrize("path", ["/", API, "/static/js/main.js", "/nowhere", "/api/v1/verdict/spike/nothing"])
def test_every_answer_binds_the_page(explorer: Explorer, path: str) -> None:
    headers = explorer.send(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "path",
    ["/static/../settings.py", "/static/%2e%2e/settings.py", "/static/..%2f..%2ferrors.py", "/static//etc/passwd"],
)
def test_only_the_pages_files_are_served(explorer: Explorer, path: str) -> None:
    assert explorer.send(path).status == 404
