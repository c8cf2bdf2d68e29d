"""`labkit extender check`: green on ours, red with the right reasons on wrong ones."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from labkit.extender.checker import FAIL, WARN, Target, check, failed

from tests.extender.helpers import Only, Points, serve


@contextmanager
def wrong_extender(answer: Any, status: int = 200) -> Iterator[str]:
    """A server that gives `answer(verb, request)` to everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                request = json.loads(body)
            except ValueError:
                request = None
            reply = answer(self.path.rsplit("/", 1)[-1], request)
            data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def echo(verb: str, request: Any) -> Any:
    """A sound extender that lets everything pass."""
    if verb == "prioritize":
        names = (request or {}).get("NodeNames") or [n["metadata"]["name"] for n in request["Nodes"]["items"]]
        return [{"Host": n, "Score": 1} for n in names]
    if request is None or not (request.get("Nodes") or request.get("NodeNames") is not None):
        return {"Error": "no nodes"}
    return {"Nodes": request.get("Nodes"), "NodeNames": request.get("NodeNames"), "Error": ""}


def rows(target: Target) -> dict[str, tuple[str, str]]:
    """case -> (verdict, what was seen)."""
    return {f.case: (f.verdict, f.seen) for f in check(target)}


def test_our_server_is_green() -> None:
    """Every case passes in both forms, bind and preempt too."""
    with serve(
        Only(*(f"check-{i}" for i in range(5000))), Points({f"check-{i}": 50 for i in range(5000)})
    ) as s:
        findings = check(Target(s.url, preempt="preempt", bind="bind"))
    assert [f for f in findings if f.verdict == FAIL] == []
    assert not failed(findings)


@pytest.mark.parametrize(
    ("answer", "case", "seen"),
    [
        (lambda v, r: {"nodenames": None}, "filter, NodeNames", "no NodeNames"),
        (lambda v, r: {"NodeNames": ["ghost"]}, "filter, NodeNames", "'ghost' was not sent"),
        (
            lambda v, r: {"Nodes": {"items": [{"metadata": {"name": "ghost"}}]}},
            "filter, Nodes",
            "'ghost' was not sent",
        ),
        (
            lambda v, r: {"Nodes": {"items": [{"metadata": {"name": "check-0"}}]}},
            "filter, Nodes",
            "unknown node fields are lost",
        ),
        (lambda v, r: {"Error": "boom"}, "filter, Nodes", "Error: boom"),
        (lambda v, r: [], "filter, NodeNames", "not an object"),
        (lambda v, r: b"oops", "filter, NodeNames", "not JSON"),
        (lambda v, r: {"NodeNames": [1]}, "filter, NodeNames", "list of strings"),
        (
            lambda v, r: {"NodeNames": [], "FailedNodes": ["check-0"]},
            "filter, NodeNames",
            "map of node to message",
        ),
        (lambda v, r: {"Host": "check-0"}, "prioritize, NodeNames", "bare array"),
        (lambda v, r: [{"Host": "check-0", "Score": 1.5}], "prioritize, NodeNames", "1.5 is not an integer"),
        (lambda v, r: [{"Host": "check-0", "Score": 11}], "prioritize, NodeNames", "outside 0..10"),
        (lambda v, r: [{"Host": "check-0", "Score": 1}] * 2, "prioritize, NodeNames", "named twice"),
    ],
)
def test_each_fault_is_named(answer: Any, case: str, seen: str) -> None:
    """One fault, one red row that says what it is."""
    with wrong_extender(answer) as url:
        verdict, text = rows(Target(url))[case]
    assert verdict == FAIL
    assert seen in text


def test_status_201_is_red() -> None:
    """kube-scheduler takes 200 only."""
    with wrong_extender(echo, status=201) as url:
        assert rows(Target(url))["filter, NodeNames"] == (FAIL, "HTTP status 201")


def test_a_binder_that_lies_is_red() -> None:
    """Success for a pod that does not exist."""
    with wrong_extender(lambda v, r: {"Error": ""} if v == "bind" else echo(v, r)) as url:
        assert rows(Target(url, bind="bind"))["bind, unknown pod"][0] == FAIL


@pytest.mark.parametrize(
    ("victims", "seen"),
    [
        ({"ghost": {"Pods": [{"UID": "x"}]}}, "does not exist"),
        ({"check-0": {"Pods": []}}, "without victims"),
        ({"check-0": {"Pods": [{"UID": "x"}]}}, "not sent"),
    ],
)
def test_a_preemptor_that_invents_is_red(victims: Any, seen: str) -> None:
    """Unknown nodes, empty victims, foreign pods."""
    with wrong_extender(
        lambda v, r: {"NodeNameToMetaVictims": victims} if v == "preempt" else echo(v, r)
    ) as url:
        verdict, text = rows(Target(url, preempt="preempt"))["preempt"]
    assert (verdict, seen in text) == (FAIL, True)


def test_silence_about_malformed_json_is_red() -> None:
    """200 without Error for a body that is no JSON."""
    with wrong_extender(lambda v, r: echo(v, r) if r else {"NodeNames": []}) as url:
        assert rows(Target(url))["filter, malformed JSON"][0] == FAIL


def test_nobody_there_is_one_red_row() -> None:
    """Connection refused is reported, not raised."""
    findings = check(Target("http://127.0.0.1:1"))
    assert [f.verdict for f in findings] == [FAIL]


def test_whole_nodes_are_warned_about() -> None:
    """T4: the remedy is named."""
    with wrong_extender(echo) as url:
        verdict, _ = rows(Target(url, node_cache_capable=False))["whole nodes and scores"]
    assert verdict == WARN
