"""The API held to its own description: whatever is asked is answered as documented, or refused in words."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from explorer import Explorer
from separatrix.web.app import make_app
from separatrix.web.settings import Settings

CHECKS = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)
UNHURRIED = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much)


DESCRIBED = schemathesis.openapi.from_dict(make_app(Settings()).openapi())
OPERATIONS = [each.ok() for each in DESCRIBED.get_all_operations()]
usual = settings(derandomize=True, deadline=None, suppress_health_check=UNHURRIED, database=None)


@pytest.mark.parametrize(
    "examples", [pytest.param(1, marks=pytest.mark.brief), pytest.param(8, marks=pytest.mark.exhaustive)]
)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.path)
def test_every_address_answers_as_it_is_described(explorer: Explorer, operation: Any, examples: int) -> None:
    @settings(usual, max_examples=examples)
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        headers = {"accept": "application/json"}
        reply = case.call(base_url=explorer.address, headers=headers, timeout=60)
        case.validate_response(reply, checks=list(CHECKS))

    ask()


names = st.sampled_from(["n", "d", "m", "a0", "a1", "b", "c", "form", "q", "", "--of", "--engine", "--delta", "--at"])
values = st.one_of(
    st.sampled_from(
        [
            *("1e3", "1e400", "-1", "0", "1/3", "1/0", "nan", "inf", "ones", "identity", "margin", "closed", "0x10"),
            *("1:2:3", "2:1:3", "1e3:1e18:9:log", "1:1:1", ":::", "1:2:1e9", "1,2,3", "é", "%00", "a" * 500),
        ]
    ),
    st.text(max_size=8),
)


questions = st.builds(
    lambda *parts: parts,
    st.sampled_from(["verdict", "prove", "map", "boundary", "files/map", "files/certificate", "files/proof"]),
    st.sampled_from(["spike", "plain", "recall", "duplication", "rough", "../x", "spike\n"]),
    st.sampled_from(["softmax", "softmax,linear", "power:beta=4", "power:beta=", "os:system", ",", "a:b:c"]),
    st.lists(st.tuples(names, values), max_size=4),
)


@pytest.mark.parametrize(
    "examples", [pytest.param(20, marks=pytest.mark.brief), pytest.param(200, marks=pytest.mark.exhaustive)]
)
def test_odd_words_are_answered_or_refused_in_words(explorer: Explorer, examples: int) -> None:
    @settings(usual, max_examples=examples)
    @given(questions)
    def ask(question: tuple[str, str, str, list[tuple[str, str]]]) -> None:
        command, construction, mechanisms, words = question
        query = "&".join(f"{quote(name)}={quote(value, safe=':,')}" for name, value in words)
        path = f"/api/v1/{command}/{quote(construction)}/{quote(mechanisms, safe=':,=')}?{query}"
        reply = explorer.send(path)
        assert reply.status in (200, 400, 404, 503), (path, reply.body)
        if reply.status != 200:
            said = reply.json()["error"]
            assert said
            assert "Traceback" not in said
            assert "should not happen" not in said, (path, said)

    ask()
