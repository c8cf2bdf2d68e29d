"""The recorded traffic of kube-scheduler 1.36, replayed: our engine sends the same calls and draws the same conclusions.

Each file of `recordings/` holds what one extender was asked, what it answered, and what became of the pod.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from labkit import Lab

from tests.extender.helpers import Only, Points, post, serve

HERE = Path(__file__).parent / "recordings"
NAMES = sorted(p.stem for p in HERE.glob("*.json"))
RECORDED_URL = "http://127.0.0.1:28888/scheduler"
TIMEOUT = 0.4


def recording(name: str) -> dict[str, Any]:
    """One recorded scenario."""
    found: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text())
    return found


def calls(recorded: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls for this scenario's pod (a time-out also leaves a line, and late calls, in the next file)."""
    return [c for c in recorded["calls"] if "path" in c and recorded["label"] in pod_name(c["body"])]


def pod_name(body: dict[str, Any]) -> str:
    """The pod that a request is about."""
    return str(body.get("PodName") or body["Pod"]["metadata"]["name"])


def verb(call: dict[str, Any]) -> str:
    """filter, prioritize, preempt or bind."""
    return str(call["path"]).rsplit("/", 1)[-1]


def cluster_of(name: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(nodes, placed pods) as the whole-object form of the same kind of scenario shows them."""
    nodes = calls(recording("nodes-ok"))[0]["body"]["Nodes"]["items"]
    placed: list[dict[str, Any]] = []
    for call in calls(recording(name.replace("nodenames", "nodes", 1))):
        for node, victims in ((call["body"] or {}).get("NodeNameToVictims") or {}).items():
            placed += [{**v, "spec": {**v["spec"], "nodeName": node}} for v in victims["Pods"]]
    return nodes, placed


@contextmanager
def replaying(recorded: dict[str, Any], lab_of: list[Lab]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """An extender that gives the recorded answers, verb by verb; (its URL, what it was asked)."""
    left = {
        v: [c for c in calls(recorded) if verb(c) == v] for v in ("filter", "prioritize", "preempt", "bind")
    }
    asked: list[dict[str, Any]] = []
    slow = recorded["label"].removeprefix("x-").split("-")[-1] == "timeout"

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            name = self.path.rsplit("/", 1)[-1]
            asked.append({"verb": name, "body": body, "path": self.path})
            known = left.get(name) or []
            call = known.pop(0) if len(known) > 1 else known[0]
            mode = (recorded["extenderMode"] or {}).get(name) or {}
            if slow and name in recorded["label"]:
                time.sleep(3 * TIMEOUT)
            answer = call["response"]
            data = answer if isinstance(answer, str) else json.dumps(answer)
            data = adapt(data, body, call["body"])
            if (
                name == "bind"
                and call["status"] == 200
                and answer == {"Error": ""}
                and "lie" not in str(mode)
            ):
                lab_of[0].client.bind(body["PodNamespace"], body["PodName"], body["PodUID"], body["Node"])
            self.send_response(call["status"])
            self.send_header("Content-Length", str(len(data.encode())))
            self.end_headers()
            self.wfile.write(data.encode())

        def log_message(self, *_: Any) -> None:
            pass

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except OSError:
                self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/scheduler", asked
    finally:
        server.shutdown()
        server.server_close()


def adapt(answer: str, asked: Any, recorded: Any) -> str:
    """The recorded answer with the uids of this run's victims."""
    ours, theirs = victim_uids(asked), victim_uids(recorded)
    for node, uid in theirs.items():
        answer = answer.replace(uid, ours.get(node, uid))
    return answer


def victim_uids(body: Any) -> dict[str, str]:
    """Node -> uid of its only victim."""
    whole = (body or {}).get("NodeNameToVictims") or {}
    meta = (body or {}).get("NodeNameToMetaVictims") or {}
    return {n: v["Pods"][0]["metadata"]["uid"] for n, v in whole.items()} | {
        n: v["Pods"][0]["UID"] for n, v in meta.items()
    }


def configuration(recorded: dict[str, Any], url: str) -> dict[str, Any]:
    """The configuration of the recording, as its README describes it."""
    what = recorded["schedulerConfig"]
    extender: dict[str, Any] = {
        "urlPrefix": url,
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "preemptVerb": "preempt",
        "weight": 5 if "weight=5" in what else 1,
        "httpTimeout": f"{TIMEOUT}s",
        "nodeCacheCapable": "nodeCacheCapable=false" not in what,
        "ignorable": "ignorable=true" in what,
    }
    if any(verb(c) == "bind" for c in calls(recorded)):
        extender["bindVerb"] = "bind"
    if "managedResources" in what:
        extender["managedResources"] = [{"name": "example.com/foo", "ignoredByScheduler": True}]
    if "weight=5" in what:
        del extender["filterVerb"]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [extender],
    }


def clean(pod: dict[str, Any]) -> dict[str, Any]:
    """A pod without what a server stamps on it."""
    stamps = ("uid", "resourceVersion", "generation", "creationTimestamp")
    meta = {k: v for k, v in pod["metadata"].items() if k not in stamps}
    return {"metadata": meta, "spec": pod["spec"], "status": pod.get("status")}


def decided(name: str) -> tuple[Lab, Any, list[dict[str, Any]], str, dict[str, Any]]:
    """Replay scenario `name`: (lab, trace, what the extender was asked, its URL, the recording)."""
    recorded = recording(name)
    nodes, placed = cluster_of(name)
    lab_of: list[Lab] = []
    with replaying(recorded, lab_of) as (url, asked):
        if not calls(recorded) and "refused" in name:
            url = "http://127.0.0.1:9/scheduler"
        lab = Lab(config=configuration(recorded, url))
        lab_of.append(lab)
        lab.apply([{"apiVersion": "v1", "kind": "Node", **n} for n in nodes])
        classes = [("high", 1000), ("low", 10)]
        lab.apply(
            [
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": n},
                    "value": v,
                }
                for n, v in classes
            ]
        )
        lab.apply([{"apiVersion": "v1", "kind": "Pod", **clean(p)} for p in placed])
        with_pod = [c["body"]["Pod"] for c in calls(recorded) if "Pod" in c["body"]]
        pod = clean(with_pod[0]) if with_pod else plain_pod(recorded)
        lab.apply({"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"], "spec": pod["spec"]})
        trace = lab.schedule_one()
        lab.run()
    return lab, trace, asked, url, recorded


def plain_pod(recorded: dict[str, Any]) -> dict[str, Any]:
    """The pod of a scenario in which the extender was never called."""
    return {
        "metadata": {"name": recorded["label"].removeprefix("x-"), "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10"}]},
    }


def note(lab: Lab) -> str:
    """What the first event says."""
    event = lab.events()[0]
    return str(event.get("note") or event.get("message"))


def shown(text: str, url: str) -> str:
    """A recorded message as it reads with this run's address."""
    return text.replace(RECORDED_URL, url).replace("http://127.0.0.1:28887/scheduler", url)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_answers_lead_to_the_same_result(name: str) -> None:
    """Node, condition and event of each recording come out of our engine; equals may fall to another of the best."""
    lab, trace, asked, url, recorded = decided(name)
    result = recorded["result"]
    messages = [c.get("message") for c in result["conditions"] or [] if c["status"] == "False"]
    if messages:
        expected = shown(messages[0], url).replace("127.0.0.1:28887", url.split("/")[2])
        if asked:
            expected = adapt(expected, asked[0]["body"], calls(recorded)[0]["body"])
        assert trace.node is None
        assert trace.full_message == expected
        assert note(lab) == expected
        nominated = trace.post_filter_result.nominated_node_name if trace.post_filter_result else None
        ties = trace.post_filter_result.ties if trace.post_filter_result else []
        assert (nominated or None) == result["nominatedNodeName"] or result["nominatedNodeName"] in ties
    elif result["nodeName"] is not None:
        best = trace.best or [n for n, s in trace.filter.items() if s.is_success]
        assert trace.node is not None
        assert result["nodeName"] in best
    else:
        assert note(lab).startswith("Successfully assigned"), "bind that only claims to have bound"


@pytest.mark.parametrize("name", [n for n in NAMES if calls(recording(n))])
def test_the_same_calls_are_sent(name: str) -> None:
    """Verbs in order, the node form, the nodes, and the pod, field by field."""
    _, trace, asked, _, recorded = decided(name)
    first = {verb(c): c["body"] for c in reversed(calls(recorded))}
    sent = {c["verb"]: c["body"] for c in reversed(asked)}
    assert set(sent) == set(first)
    assert [c.verb for c in trace.extender_calls][: len(sent)] == [c["verb"] for c in asked][: len(sent)]
    for name_, body in first.items():
        ours = sent[name_]
        assert list(ours) == list(body), "the members, in Go's order"
        if "Pod" in body:
            assert clean(ours["Pod"]) == clean(body["Pod"])
        if body.get("NodeNames") is not None:
            assert sorted(ours["NodeNames"]) == sorted(body["NodeNames"])
        if body.get("Nodes") is not None:
            assert sorted(n["metadata"]["name"] for n in ours["Nodes"]["items"]) == sorted(
                n["metadata"]["name"] for n in body["Nodes"]["items"]
            )
        for victims in ("NodeNameToVictims", "NodeNameToMetaVictims"):
            if body.get(victims) is not None:
                assert {n: len(v["Pods"]) for n, v in ours[victims].items()} == {
                    n: len(v["Pods"]) for n, v in body[victims].items()
                }


REQUESTS = [(n, i) for n in NAMES for i, c in enumerate(calls(recording(n))) if verb(c) != "bind"]


@pytest.mark.parametrize(("name", "index"), REQUESTS)
def test_our_server_answers_every_recorded_request(name: str, index: int) -> None:
    """What kube-scheduler really sends is understood in both forms; nodes come back as they were sent."""
    call = calls(recording(name))[index]
    body = call["body"]
    scores = dict.fromkeys(("node-0", "node-1", "node-2", "ghost"), 70)
    with serve(Only("node-0", "node-2", never=("node-1",)), Points(scores)) as s:
        status, answer = post(s, verb(call), body)
    assert status == 200
    if verb(call) == "prioritize":
        nodes = body["NodeNames"] or [n["metadata"]["name"] for n in body["Nodes"]["items"]]
        assert answer == [{"Host": n, "Score": 7} for n in nodes]
    elif verb(call) == "preempt":
        assert set(answer["NodeNameToMetaVictims"]) == {"node-0", "node-1", "node-2"}
    elif body["NodeNames"] is not None:
        assert answer["NodeNames"] == [n for n in body["NodeNames"] if n != "node-1"]
        assert answer["FailedAndUnresolvableNodes"] == {
            n: "never" for n in body["NodeNames"] if n == "node-1"
        }
    else:
        assert answer["Nodes"]["items"] == [
            n for n in body["Nodes"]["items"] if n["metadata"]["name"] != "node-1"
        ]
