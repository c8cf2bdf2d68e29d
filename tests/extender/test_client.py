"""Our engine calling extenders over real HTTP: what the pod's event says (spec 04 §6 - §10; field cases T2 - T4)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from labkit import Lab

from tests.extender.helpers import Only, Points, serve

NODES = "\n---\n".join(
    f"apiVersion: v1\nkind: Node\nmetadata: {{name: n{i}}}\nstatus: {{allocatable: {{cpu: '4', memory: 8Gi, pods: '110'}}}}"
    for i in (1, 2, 3)
)
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: a, resources: {requests: {cpu: '1'}}}]}\n"
Answer = Callable[[str, Any], tuple[int, bytes]]


@contextmanager
def fake(answer: Answer) -> Iterator[str]:
    """An extender that answers whatever it is told to."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, data = answer(self.path.rsplit("/", 1)[-1], body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def config(url: str, **fields: Any) -> dict[str, Any]:
    """A configuration with one extender that filters by name."""
    extender = {
        "urlPrefix": url,
        "filterVerb": "filter",
        "nodeCacheCapable": True,
        "httpTimeout": "2s",
        **fields,
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [extender],
    }


def decide(url: str, **fields: Any) -> Any:
    """The trace of one pod on three equal nodes."""
    lab = Lab(NODES, config=config(url, **fields))
    lab.apply(POD)
    return lab.schedule_one()


def test_our_own_server_filters_and_scores() -> None:
    """Both sides of ours together: n1 is filtered out, n3 is preferred."""
    with serve(Only("n2", "n3"), Points({"n2": 0, "n3": 100})) as s:
        trace = decide(s.url, prioritizeVerb="prioritize", weight=2)
    assert trace.node == "n3"
    assert trace.scores["n3"].extender == 200


@pytest.mark.parametrize("cache_capable", [True, False])
def test_all_rejected_is_counted_by_reason(cache_capable: bool) -> None:
    """FailedNodes may be helped by preemption, FailedAndUnresolvableNodes not."""
    with serve(Only(never=("n3",))) as s:
        trace = decide(s.url, nodeCacheCapable=cache_capable)
    assert trace.message == "0/3 nodes are available: 1 never, 2 not now."
    assert trace.full_message.endswith(
        "preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, "
        "2 No preemption victims found for incoming pod."
    )


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (500, b"", "failed filter with extender at URL {url}/filter, code 500"),
        (201, b"{}", "failed filter with extender at URL {url}/filter, code 201"),
        (200, b"", "EOF"),
        (200, b"hello", "invalid character 'h' looking for beginning of value"),
        (200, b"{oops", "invalid character 'o' looking for beginning of object key string"),
        (200, b'{"Error":"no idea"}', "no idea"),
        (
            200,
            b'{"NodeNames":["ghost"]}',
            'extender "{url}" claims a filtered node "ghost" which is not found in the input node list',
        ),
    ],
)
def test_errors_have_kube_schedulers_words_and_ignorable_skips_them(
    status: int, body: bytes, message: str
) -> None:
    """T2, T3: not ignorable: the attempt ends with this text; ignorable: as if there were no extender."""
    with fake(lambda verb, request: (status, body)) as url:
        assert decide(url).message == message.format(url=url)
        skipped = decide(url, ignorable=True)
    assert skipped.node is not None
    assert any("ignorable" in note for note in skipped.notes)


def test_nobody_listens() -> None:
    """T3: the reason names URL and verb."""
    message = 'Post "http://127.0.0.1:1/filter": dial tcp 127.0.0.1:1: connect: connection refused'
    assert decide("http://127.0.0.1:1").message == message
    assert decide("http://127.0.0.1:1", ignorable=True).node is not None


@pytest.mark.parametrize("body", [b"{}", b"null", b'{"nodenames":[]}'])
def test_forgotten_fields_reject_everything_silently(body: bytes) -> None:
    """No node is left and no reason is counted."""
    with fake(lambda verb, request: (200, body)) as url:
        assert decide(url).message == "0/3 nodes are available:"


@pytest.mark.parametrize("body", [b"{}", b"[{}]", b'[{"Host":"n1","Score":1.5}]', b"oops"])
def test_prioritize_never_fails_a_pod(body: bytes) -> None:
    """Any fault there counts as no scores."""
    with fake(lambda verb, request: (200, body)) as url:
        assert decide(url, filterVerb="", prioritizeVerb="prioritize", weight=1).node is not None


def test_scores_are_not_clamped() -> None:
    """100 counts 1000 x weight."""
    with fake(lambda verb, request: (200, b'[{"host":"n2","score":100}]')) as url:
        trace = decide(url, filterVerb="", prioritizeVerb="prioritize", weight=1)
    assert (trace.node, trace.scores["n2"].extender) == ("n2", 1000)


def test_binder_errors_are_the_pods_event() -> None:
    """The raw text, reason SchedulerError; ignorable falls through to DefaultBinder."""
    with fake(lambda verb, request: (200, b'{"Error":"binder refused"}')) as url:
        lab = Lab(NODES, config=config(url, filterVerb="", bindVerb="bind"))
        lab.apply(POD)
        lab.schedule_one()
        condition = lab.pods()[0]["status"]["conditions"][0]
        assert (condition["reason"], condition["message"]) == ("SchedulerError", "binder refused")
        kept = Lab(NODES, config=config(url, filterVerb="", bindVerb="bind", ignorable=True))
        kept.apply(POD)
        kept.schedule_one()
        assert kept.pods()[0]["spec"]["nodeName"]


def test_managed_resources_decide_who_is_asked() -> None:
    """A pod that names none of them never meets the extender."""
    with fake(lambda verb, request: (500, b"")) as url:
        assert decide(url, managedResources=[{"name": "lab.example/gpu"}]).node is not None


def test_request_bodies_look_as_kube_schedulers() -> None:
    """Capitalised keys, both forms, nothing left out, no kind in embedded objects."""
    seen: list[Any] = []

    def answer(verb: str, request: Any) -> tuple[int, bytes]:
        seen.append(request)
        return 200, json.dumps({"Nodes": request["Nodes"], "NodeNames": request["NodeNames"]}).encode()

    with fake(answer) as url:
        decide(url)
        decide(url, nodeCacheCapable=False)
    names, whole = seen
    assert list(names) == ["Pod", "Nodes", "NodeNames"] == list(whole)
    assert (names["Nodes"], names["NodeNames"]) == (None, ["n1", "n2", "n3"])
    assert whole["NodeNames"] is None
    assert [n["metadata"]["name"] for n in whole["Nodes"]["items"]] == ["n1", "n2", "n3"]
    assert "kind" not in whole["Pod"]
    assert "kind" not in whole["Nodes"]["items"][0]
