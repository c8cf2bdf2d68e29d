"""The extender server: input -> answer, over real HTTP (spec 04; field cases T1, T2)."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labkit.errors import LabError
from labkit.extender.server import ExtenderServer
from labkit.extender.service import ExtenderService, load_plugin, to_extender_score
from labkit.framework.results import PostFilterResult

from tests.extender.helpers import POD, Only, Points, names, node, nodes, post, serve

KEYS = {"Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error"}


def test_name_form_is_answered_with_names() -> None:
    """T1 (b): NodeNames in, NodeNames out, Nodes null, all five keys present."""
    with serve(Only("a", never=("c",))) as s:
        status, answer = post(s, "filter", names("a", "b", "c"))
    assert status == 200
    assert answer == {
        "Nodes": None,
        "NodeNames": ["a"],
        "FailedNodes": {"b": "not now"},
        "FailedAndUnresolvableNodes": {"c": "never"},
        "Error": "",
    }


def test_whole_node_form_is_answered_with_nodes_byte_for_byte() -> None:
    """T1 (a): passed nodes come back exactly as sent, unknown fields and spacing kept."""
    raw = b'{ "metadata" : {"name":"a","x\\u0041":[1.50]} ,"spec":{"y":null}, "status":{"z":{"deep":[[]]}}}'
    other = b'{"metadata":{"name":"b"}}'
    body = (
        b'{"Pod":{"metadata":{"name":"p"}},"Nodes":{"metadata":{},"items":['
        + raw
        + b","
        + other
        + b']},"NodeNames":null}'
    )
    with serve(Only("a")) as s:
        connection = http.client.HTTPConnection(s.host, s.port)
        connection.request("POST", "/filter", body)
        answer = connection.getresponse().read()
    assert raw in answer
    assert other not in answer
    assert set(json.loads(answer)) == KEYS
    assert json.loads(answer)["NodeNames"] is None


@pytest.mark.parametrize("verb_path", ["filter", "scheduler/filter", "a/b/filter/"])
def test_any_prefix_serves(verb_path: str) -> None:
    """urlPrefix may hold a path."""
    with serve(Only("a")) as s:
        assert post(s, verb_path, names("a"))[1]["NodeNames"] == ["a"]


def test_neither_form_is_an_error_that_can_be_read() -> None:
    """T1 (c): both null gives 200 and an Error that names the setting."""
    with serve(Only()) as s:
        status, answer = post(s, "filter", {"Pod": POD, "Nodes": None, "NodeNames": None})
    assert status == 200
    assert "nodeCacheCapable" in answer["Error"]


@pytest.mark.parametrize("spell", [str.lower, str.upper, lambda k: k[0].lower() + k[1:]])
@pytest.mark.parametrize("body", [names("a", "b"), nodes(node("a"), node("b"))])
def test_keys_are_read_in_any_case(spell: Any, body: dict[str, Any]) -> None:
    """T1 (d): Go decodes case-insensitively, so do we; answers keep the exact keys."""
    with serve(Only("a")) as s:
        status, answer = post(s, "filter", {spell(k): v for k, v in body.items()})
    assert status == 200
    assert set(answer) == KEYS
    assert answer["FailedNodes"] == {"b": "not now"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nope",
        b"[]",
        b"5",
        b'{"Pod":',
        b'{"Pod":{},"Nodes":5,"NodeNames":null}',
        b'{"NodeNames":[1]}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"Pod":{},"Nodes":{"items":{}}}',
    ],
)
@pytest.mark.parametrize("verb", ["filter", "prioritize", "preempt", "bind"])
def test_malformed_bodies_get_an_error_and_the_server_lives(body: bytes, verb: str) -> None:
    """T1 (e): never a crash, never a false 200 without Error."""
    with serve(Only("a")) as s:
        status, answer = post(s, verb, body)
        assert status >= 400 or (isinstance(answer, dict) and answer.get("Error"))
        assert post(s, "filter", names("a"))[1]["NodeNames"] == ["a"]


@pytest.mark.parametrize(
    "body", [names(), nodes(), {"Pod": POD, "Nodes": {"items": None}, "NodeNames": None}]
)
def test_empty_lists_are_no_error(body: dict[str, Any]) -> None:
    """T1 (f)."""
    with serve(Only("a")) as s:
        status, answer = post(s, "filter", body)
    assert (status, answer["Error"], answer["FailedNodes"]) == (200, "", {})


@pytest.mark.parametrize(
    ("total", "plugins", "expected"),
    [(0, 1, 0), (100, 1, 10), (44, 1, 4), (45, 1, 5), (150, 2, 8), (0, 0, 0)],
)
def test_scores_are_scaled_to_ten(total: int, plugins: int, expected: int) -> None:
    """0..100 becomes 0..10, halves rounded up."""
    assert to_extender_score(total, plugins) == expected


def test_prioritize_answers_a_bare_list() -> None:
    """A list of Host and Score, in the order of the request."""
    with serve(Points({"a": 100, "b": 30})) as s:
        assert post(s, "prioritize", names("b", "a")) == (
            200,
            [{"Host": "b", "Score": 3}, {"Host": "a", "Score": 10}],
        )


@pytest.mark.parametrize("value", [-8, 101, None, 3.7, float("nan"), "5", True])
def test_bad_scores_name_plugin_node_and_value(value: object) -> None:
    """A score out of range or of another type is a server error that says which plugin, node and value."""
    with serve(Points({"a": value})) as s:
        status, answer = post(s, "prioritize", names("a"))
    assert status == 500
    assert "Points" in answer["Error"] or '"Points"' in answer["Error"]
    assert "a" in answer["Error"]
    assert str(value) in answer["Error"]


class Raises:
    """Fails in every method."""

    name = "Raises"

    def filter(self, state: Any, pod: Any, node: Any) -> None:
        """Divide by zero."""
        raise ZeroDivisionError("no idea")

    def bind(self, state: Any, pod: Any, node_name: str) -> None:
        """Divide by zero."""
        raise ZeroDivisionError("no idea")


def test_a_plugin_that_raises_makes_the_error_and_no_more() -> None:
    """The text names the exception; the traceback is kept in the log; the next request is answered."""
    service = ExtenderService([Raises()])
    with ExtenderServer(service) as s:
        for verb, body in (("filter", names("a")), ("bind", {"PodName": "p"})):
            status, answer = post(s, verb, body)
            assert status == 200
            assert answer["Error"].startswith("ZeroDivisionError: no idea")
    assert "Traceback" in service.log[0].traceback


def test_wrong_return_type_says_what_to_return() -> None:
    """`return False` is the classic slip."""
    with serve(type("Slip", (), {"filter": lambda *_: False})()) as s:
        answer = post(s, "filter", names("a"))[1]
    assert "Slip.filter returned False (bool) for node a" in answer["Error"]
    assert "Status.unschedulable" in answer["Error"]


def test_endless_plugin_meets_the_deadline_and_is_interrupted() -> None:
    """The request gets its Error in time; the server goes on; the thread is freed."""

    class Endless:
        name = "Endless"

        def filter(self, state: Any, pod: Any, node: Any) -> None:
            while node.name == "slow":
                pass

    before = threading.active_count()
    with serve(Endless(), deadline=0.3) as s:
        status, answer = post(s, "filter", names("slow"))
        assert status == 200
        assert "deadline of 0.3 s" in answer["Error"]
        assert post(s, "filter", names("fast"))[1]["NodeNames"] == ["fast"]
        for _ in range(100):
            if threading.active_count() <= before + 2:
                break
            time.sleep(0.05)
        assert threading.active_count() <= before + 2


def test_plugins_are_swapped_while_serving() -> None:
    """`replace` takes effect with the next request."""
    with serve(Only("a")) as s:
        assert post(s, "filter", names("a", "b"))[1]["NodeNames"] == ["a"]
        s.service.replace(Only("b"))
        assert post(s, "filter", names("a", "b"))[1]["NodeNames"] == ["b"]
        s.service.remove("Only")
        assert post(s, "filter", names("a", "b"))[1]["NodeNames"] == ["a", "b"]


@pytest.mark.parametrize("secured", [False, True])
def test_a_stopped_server_hangs_up_kept_connections(secured: bool, tmp_path: Any) -> None:
    """A connection that was kept open is closed by `stop`: a client never talks to a server that is gone."""
    import ssl

    from tests.extender.certificates import make_authority

    files: dict[str, Any] = {}
    if secured:
        authority = make_authority(tmp_path)
        cert, key = authority.issue("server", "127.0.0.1")
        files = {"tls_cert": cert, "tls_key": key}
    server = serve(Only("a"), **files)
    kept = socket.create_connection((server.host, server.port), timeout=10)
    if secured:
        context = ssl.create_default_context(cafile=authority.path)
        kept = context.wrap_socket(kept, server_hostname=server.host)
    try:
        kept.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert kept.recv(1000).startswith(b"HTTP/1.1 200")
        server.stop()
        # Without TLS's own farewell the client reads an alert instead of the end: never a time-out, never an answer.
        with pytest.raises(ssl.SSLError, match=r"ALERT|EOF") if secured else contextlib.nullcontext():
            assert kept.recv(1000) == b""
    finally:
        kept.close()


class _Client:
    def __init__(self, problem: Exception | None = None) -> None:
        self.problem = problem
        self.bound: list[tuple[str, ...]] = []

    def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        if self.problem:
            raise self.problem
        self.bound.append((namespace, name, uid, node_name))


BIND = {"PodName": "p", "PodNamespace": "ns", "PodUID": "u", "Node": "n"}


def test_bind_goes_through_the_cluster_client() -> None:
    """Success is an empty Error; an API error is its text."""
    from labkit.plugins.default_binder import DefaultBinder

    client = _Client()
    with serve(DefaultBinder(), client=client) as s:
        assert post(s, "bind", BIND) == (200, {"Error": ""})
    assert client.bound == [("ns", "p", "u", "n")]
    conflict = 'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "m"'
    with serve(DefaultBinder(), client=_Client(RuntimeError(conflict))) as s:
        assert post(s, "bind", BIND) == (200, {"Error": conflict})


def test_bind_without_a_binder_does_not_claim_success() -> None:
    """A lie here would leave the pod assumed for ever."""
    with serve(Only("a")) as s:
        assert post(s, "bind", BIND)[1]["Error"]


META = {
    "NodeNameToVictims": None,
    "NodeNameToMetaVictims": {
        "a": {"Pods": [{"UID": "v1"}], "NumPDBViolations": 1},
        "b": {"Pods": [{"UID": "v2"}], "NumPDBViolations": 0},
    },
}
WHOLE = {
    "NodeNameToMetaVictims": None,
    "NodeNameToVictims": {
        "a": {"Pods": [{"metadata": {"uid": "v1"}}], "NumPDBViolations": 1},
        "b": {"Pods": [{"metadata": {"uid": "v2"}}], "NumPDBViolations": 0},
    },
}


@pytest.mark.parametrize("form", [META, WHOLE])
def test_preempt_answers_in_the_meta_form(form: dict[str, Any]) -> None:
    """Without a PostFilter plugin every candidate stays; with one, the node it nominates."""

    class Pick:
        name = "Pick"

        def post_filter(self, state: Any, pod: Any, statuses: Any) -> Any:
            return PostFilterResult("b"), None

    with serve(Only("a")) as s:
        assert post(s, "preempt", {"Pod": POD, **form}) == (
            200,
            {"NodeNameToMetaVictims": META["NodeNameToMetaVictims"]},
        )
        s.service.replace(Pick())
        assert post(s, "preempt", {"Pod": POD, **form})[1] == {
            "NodeNameToMetaVictims": {"b": META["NodeNameToMetaVictims"]["b"]}
        }


def test_plugins_read_nodes_as_nodes() -> None:
    """Labels, taints, allocatable, images and pods are there, decoded when read."""
    seen: dict[str, Any] = {}

    class Reads:
        name = "Reads"

        def filter(self, state: Any, pod: Any, info: Any) -> None:
            seen.update(
                zone=info.node.metadata.labels["zone"],
                taint=info.node.spec.taints[0].key,
                cpu=info.allocatable.milli_cpu,
                image=info.node.status.images[0].names,
                pods=info.pods,
                ready=info.node.status.conditions[0].status,
                priority=pod.priority,
            )

    whole = node("a", zone="z1")
    whole["spec"]["taints"] = [{"key": "k", "effect": "NoSchedule"}]
    whole["status"] = {
        "allocatable": {"cpu": "1500m"},
        "images": [{"names": ["i:1"], "sizeBytes": 5}],
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    with serve(Reads()) as s:
        assert post(s, "filter", nodes(whole))[1]["Error"] == ""
    assert seen == {
        "zone": "z1",
        "taint": "k",
        "cpu": 1500,
        "image": ["i:1"],
        "pods": [],
        "ready": "True",
        "priority": 0,
    }


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/healthz", 200),
        ("GET", "/metrics", 200),
        ("GET", "/filter", 405),
        ("GET", "/x", 404),
        ("POST", "/nonsense", 404),
        ("DELETE", "/filter", 501),
        ("HEAD", "/healthz", 200),
    ],
)
def test_other_paths_and_methods(method: str, path: str, status: int) -> None:
    """Right status for what is not a verb."""
    with serve(Only("a")) as s:
        connection = http.client.HTTPConnection(s.host, s.port)
        connection.request(method, path, b"{}" if method == "POST" else None)
        assert connection.getresponse().status == status


def test_chunked_and_slow_bodies_are_waited_for() -> None:
    """Both ways of sending a body in pieces work."""
    data = json.dumps(names("a")).encode()
    with serve(Only("a")) as s:
        connection = http.client.HTTPConnection(s.host, s.port)
        connection.request(
            "POST",
            "/filter",
            iter([data[:10], data[10:]]),
            encode_chunked=True,
            headers={"Transfer-Encoding": "chunked"},
        )
        assert json.loads(connection.getresponse().read())["NodeNames"] == ["a"]


@pytest.mark.parametrize(
    "head",
    [
        b"garbage\r\n\r\n",
        b"POST /filter HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST /filter HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
        b"",
    ],
)
def test_broken_http_hurts_nobody_else(head: bytes) -> None:
    """A broken or silent connection ends alone."""
    with serve(Only("a")) as s:
        raw = socket.create_connection((s.host, s.port))
        raw.sendall(head)
        assert post(s, "filter", names("a"))[0] == 200
        raw.close()


def test_two_hundred_connections() -> None:
    """A bounded run of 200 connections at once: every answer right."""
    wrong: list[Any] = []
    with serve(Only("a")) as s:

        def worker() -> None:
            connection = http.client.HTTPConnection(s.host, s.port, timeout=30)
            for _ in range(5):
                connection.request("POST", "/filter", json.dumps(names("a", "b")).encode())
                if json.loads(connection.getresponse().read())["NodeNames"] != ["a"]:
                    wrong.append(1)
            connection.close()

        threads = [threading.Thread(target=worker) for _ in range(200)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
        counted = 'labkit_extender_requests_total{code="200",verb="filter"} 1000.0'
        # A request is counted after its answer has gone out.
        for _ in range(100):
            if counted in s.metrics.render().decode():
                break
            time.sleep(0.05)
        assert counted in s.metrics.render().decode()
    assert not wrong


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["Pod", "Nodes", "NodeNames", "items", "metadata", "name", "labels", "nodenames", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(value=json_values, verb=st.sampled_from(["filter", "prioritize", "preempt", "bind"]))
def test_any_json_gets_an_answer(value: Any, verb: str) -> None:
    """Fuzz on the service itself: an answer or one of the two errors that the server turns into a status."""
    from labkit.extender.service import PluginFailure
    from labkit.extender.wire import WireError

    service = ExtenderService([Only("a"), Points({"a": 1})])
    try:
        chunks = service.answer(verb, json.dumps(value).encode())
    except (WireError, PluginFailure):
        return
    json.loads(b"".join(bytes(c) for c in chunks))


def test_tls_with_client_certificates(tmp_path: Any) -> None:
    """--tls-cert, --tls-key, --client-ca: without a client certificate there is no answer."""
    import ssl

    from tests.extender.certificates import make_authority

    authority = make_authority(tmp_path)
    cert, key = authority.issue("server", "127.0.0.1")
    client_cert, client_key = authority.issue("client")
    with serve(Only("a"), tls_cert=cert, tls_key=key, client_ca=authority.path) as s:
        assert s.url.startswith("https://")
        context = ssl.create_default_context(cafile=authority.path)

        def ask() -> bytes:
            connection = http.client.HTTPSConnection(s.host, s.port, context=context, timeout=5)
            connection.request("POST", "/filter", json.dumps(names("a")).encode())
            return connection.getresponse().read()

        with pytest.raises((ssl.SSLError, OSError)):
            ask()
        context.load_cert_chain(client_cert, client_key)
        assert json.loads(ask())["NodeNames"] == ["a"]


@pytest.mark.parametrize("reference", ["nocolon", "no_such_module:X", "json:NoSuch", ":X", "json:"])
def test_bad_plugin_references_say_what_is_wrong(reference: str) -> None:
    """A LabError that quotes the reference."""
    with pytest.raises(LabError, match="--plugin"):
        load_plugin(reference)


def test_a_plugin_without_methods_is_refused() -> None:
    """At least one of the four methods."""
    with pytest.raises(LabError, match="none of the methods"):
        ExtenderService([object()])
