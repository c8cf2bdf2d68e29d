"""`labkit extender check URL`: sends the protocol's cases to any extender and says what kube-scheduler would do.

Each case is one function that returns a `Finding`; nothing is sent but pods and nodes that exist nowhere.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from labkit.errors import LabError

PASS, FAIL, WARN, SKIP = "pass", "fail", "warn", "skip"
_GHOST_POD_UID = "00000000-0000-0000-0000-00000000c0de"


@dataclass(frozen=True)
class Target:
    """The extender to check: `urlPrefix`, its verbs ("" = not served), its configured form and time-out."""

    url: str
    filter: str = "filter"
    prioritize: str = "prioritize"
    preempt: str = ""
    bind: str = ""
    node_cache_capable: bool | None = None
    timeout: float = 5.0
    guessed: bool = True
    verify_tls: bool = True


@dataclass(frozen=True)
class Finding:
    """One row of the report."""

    case: str
    verdict: str
    seen: str
    consequence: str


@dataclass(frozen=True)
class Answer:
    """What came back: HTTP status (0 when the connection failed), body, seconds."""

    status: int
    body: bytes
    seconds: float
    problem: str = ""

    def json(self) -> Any:
        """The decoded body, or None."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @property
    def short(self) -> str:
        """A few words for the table."""
        if self.problem:
            return self.problem
        text = self.body.decode("utf-8", "replace").strip()
        return (
            f"{self.status}, {text[:90]}{'…' if len(text) > 90 else ''}"
            if text
            else f"{self.status}, empty body"
        )


def check(target: Target) -> list[Finding]:
    """All findings for `target`, in the order of the cases. Never raises for what the extender answers."""
    return list(_findings(_Caller(target)))


def failed(findings: list[Finding]) -> bool:
    """True when some case failed."""
    return any(f.verdict == FAIL for f in findings)


class _Caller:
    def __init__(self, target: Target) -> None:
        self.target = target
        parts = urlsplit(target.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise LabError(f"{target.url!r} is not an http:// or https:// URL", hint="give the urlPrefix")
        self._parts = parts

    def post(self, verb: str, body: Any, *, pause: float = 0.0) -> Answer:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        path = f"{self._parts.path.rstrip('/')}/{verb}"
        started = time.monotonic()
        connection = self._connect()
        try:
            if not pause:
                connection.request(
                    "POST", path, data, {"Content-Type": "application/json", "Accept-Encoding": "gzip"}
                )
            else:
                connection.putrequest("POST", path)
                connection.putheader("Content-Type", "application/json")
                connection.putheader("Content-Length", str(len(data)))
                connection.endheaders(data[: len(data) // 2])
                time.sleep(pause)
                connection.send(data[len(data) // 2 :])
            response = connection.getresponse()
            return Answer(response.status, response.read(), time.monotonic() - started)
        except TimeoutError:
            return Answer(0, b"", time.monotonic() - started, f"no answer within {self.target.timeout:g} s")
        except (OSError, http.client.HTTPException) as e:
            return Answer(0, b"", time.monotonic() - started, f"{type(e).__name__}: {e}")
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=self.target.timeout)
        context = ssl.create_default_context()
        if not self.target.verify_tls:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return http.client.HTTPSConnection(host, port, timeout=self.target.timeout, context=context)


def sample_pod() -> dict[str, Any]:
    """The pod that the cases ask about."""
    return {
        "metadata": {
            "name": "check",
            "namespace": "default",
            "uid": _GHOST_POD_UID,
            "labels": {"app": "check"},
        },
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [
                {"name": "c", "image": "app:v1", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
            ],
        },
        "status": {"phase": "Pending"},
    }


def sample_node(i: int) -> dict[str, Any]:
    """Node `check-<i>`, with a field that no client knows."""
    return {
        "metadata": {"name": f"check-{i}", "labels": {"kubernetes.io/hostname": f"check-{i}"}},
        "spec": {"futureField": {"kept": True}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }


def names_body(n: int) -> dict[str, Any]:
    """A request in the name form."""
    return {"Pod": sample_pod(), "Nodes": None, "NodeNames": [f"check-{i}" for i in range(n)]}


def nodes_body(n: int) -> dict[str, Any]:
    """A request in the whole-node form."""
    return {
        "Pod": sample_pod(),
        "Nodes": {"metadata": {}, "items": [sample_node(i) for i in range(n)]},
        "NodeNames": None,
    }


def _findings(call: _Caller) -> Iterator[Finding]:
    t = call.target
    if t.filter:
        forms = _forms(t)
        first = call.post(t.filter, names_body(3) if "names" in forms else nodes_body(3))
        if first.problem:
            yield Finding(
                "reachable",
                FAIL,
                first.problem,
                "every attempt of an interested pod fails with the connection error (skipped when ignorable: true)",
            )
            return
        for form in forms:
            yield _filter_form(call, form, optional=t.node_cache_capable is None)
        yield from _filter_edges(call, forms[0])
    if t.prioritize:
        yield from _prioritize(call)
    if t.preempt:
        yield _preempt(call)
    if t.bind:
        yield _bind(call)
    if t.node_cache_capable is False and t.filter:
        yield Finding(
            "whole nodes and scores",
            WARN,
            "nodeCacheCapable: false",
            "Score plugins see the returned nodes without their pods, so a busy node scores as if it were empty; "
            "set nodeCacheCapable: true",
        )


def _forms(t: Target) -> tuple[str, ...]:
    if t.node_cache_capable is None:
        return ("names", "nodes")
    return ("names",) if t.node_cache_capable else ("nodes",)


def _filter_form(call: _Caller, form: str, *, optional: bool) -> Finding:
    case = f"filter, {'NodeNames' if form == 'names' else 'Nodes'}"
    answer = call.post(call.target.filter, names_body(3) if form == "names" else nodes_body(3))
    problem, consequence = _filter_problem(answer, form)
    if not problem:
        return Finding(case, PASS, _kept(answer, form), "the nodes that are left go on to scoring")
    return Finding(case, FAIL, problem, consequence + (" (if you configure this form)" if optional else ""))


def _kept(answer: Answer, form: str) -> str:
    result = answer.json()
    kept = _get(result, "NodeNames") if form == "names" else _get(_get(result, "Nodes"), "items")
    return f"{len(kept or [])} of 3 nodes pass"


def _filter_problem(answer: Answer, form: str) -> tuple[str, str]:
    """(what is wrong, what kube-scheduler does about it); ("", "") when all is well."""
    if answer.problem:
        return answer.problem, "the attempt fails with the connection error"
    if answer.status != 200:
        return (
            f"HTTP status {answer.status}",
            "anything but 200 fails the attempt: failed filter with extender at URL …, code N",
        )
    result = answer.json()
    if result is None:
        return f"body is not JSON: {answer.short}", "the attempt fails with the decoder's error"
    if not isinstance(result, dict):
        return f"body is {type(result).__name__}, not an object", "the attempt fails with the decoder's error"
    if error := _get(result, "Error"):
        return f"Error: {error}", "the attempt fails with exactly this text, reason SchedulerError"
    sent = {f"check-{i}" for i in range(3)}
    if form == "names":
        kept = _get(result, "NodeNames")
        if (
            kept is None
            and not _get(result, "FailedNodes")
            and not _get(result, "FailedAndUnresolvableNodes")
        ):
            return (
                "no NodeNames in the answer",
                "no node is left and no reason is given: the pod stays pending",
            )
        names = kept or []
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            return "NodeNames is not a list of strings", "the attempt fails with the decoder's error"
        if ghosts := [n for n in names if n not in sent]:
            return (
                f"node {ghosts[0]!r} was not sent",
                f'the attempt fails: extender "…" claims a filtered node "{ghosts[0]}" which is not found in the input node list',
            )
    else:
        node_list = _get(result, "Nodes")
        items = _get(node_list, "items") if isinstance(node_list, dict) else None
        failing = _get(result, "FailedNodes") or _get(result, "FailedAndUnresolvableNodes")
        if items is None and not failing:
            return (
                "no Nodes in the answer",
                "NodeNames is ignored in this form: no node is left, no reason is given",
            )
        for item in items or []:
            name = item.get("metadata", {}).get("name") if isinstance(item, dict) else None
            if name not in sent:
                return (
                    f"node {name!r} was not sent",
                    "accepted without a check: the pod may be bound to a node that does not exist",
                )
            if item.get("spec", {}).get("futureField") != {"kept": True}:
                return (
                    "unknown node fields are lost",
                    "the changed node replaces the scheduler's own for scoring",
                )
    for key in ("FailedNodes", "FailedAndUnresolvableNodes"):
        value = _get(result, key)
        if value is not None and not (
            isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
        ):
            return f"{key} is not a map of node to message", "the attempt fails with the decoder's error"
    return "", ""


def _filter_edges(call: _Caller, form: str) -> Iterator[Finding]:
    t = call.target
    body: Callable[[int], dict[str, Any]] = names_body if form == "names" else nodes_body
    empty = call.post(t.filter, body(0))
    result = empty.json()
    ok = empty.status == 200 and isinstance(result, dict) and not _get(result, "Error")
    yield Finding(
        "filter, empty list", PASS if ok else FAIL, empty.short, "an empty list is no error: no node is left"
    )
    neither = call.post(t.filter, {"Pod": sample_pod(), "Nodes": None, "NodeNames": None})
    result = neither.json()
    told = neither.status != 200 or (isinstance(result, dict) and bool(_get(result, "Error")))
    yield Finding(
        "filter, both null",
        PASS if told and not neither.problem else FAIL,
        neither.short,
        "kube-scheduler never sends this; an extender that says nothing hides a wrong configuration",
    )
    lower = call.post(t.filter, {k.lower(): v for k, v in body(2).items()})
    problem, _ = _filter_problem(lower, form)
    yield Finding(
        "filter, lower-case keys",
        PASS if not problem else WARN,
        problem or "accepted",
        "kube-scheduler sends capitalised keys; hand-written clients often do not",
    )
    broken = call.post(t.filter, b'{"Pod": {')
    alive = call.post(t.filter, body(2))
    bad = broken.status == 200 and not (isinstance(broken.json(), dict) and _get(broken.json(), "Error"))
    yield Finding(
        "filter, malformed JSON",
        FAIL if bad or alive.status != 200 else PASS,
        broken.short if alive.status == 200 else f"then the server answered: {alive.short}",
        "an extender that dies takes every interested pod with it, unless ignorable: true",
    )
    slow = call.post(t.filter, body(3), pause=0.3)
    problem, consequence = _filter_problem(slow, form)
    yield Finding(
        "filter, body in two halves",
        FAIL if problem else PASS,
        problem or "waited for all of it",
        consequence or "-",
    )
    huge = call.post(t.filter, body(5000))
    if huge.problem or huge.status != 200:
        yield Finding(
            "filter, 5000 nodes", FAIL, huge.short, "the attempt fails; raise httpTimeout or answer faster"
        )
    else:
        late = huge.seconds > t.timeout / 2
        yield Finding(
            "filter, 5000 nodes",
            WARN if late else PASS,
            f"{huge.seconds * 1000:.0f} ms of {t.timeout * 1000:.0f} ms",
            "past httpTimeout the attempt fails: context deadline exceeded",
        )


def _prioritize(call: _Caller) -> Iterator[Finding]:
    t = call.target
    for form in _forms(t):
        case = f"prioritize, {'NodeNames' if form == 'names' else 'Nodes'}"
        answer = call.post(t.prioritize, names_body(3) if form == "names" else nodes_body(3))
        if answer.status == 404 and t.guessed:
            yield Finding(case, SKIP, "404", "leave prioritizeVerb out of the configuration")
            continue
        problem, verdict = _prioritize_problem(answer)
        yield Finding(
            case,
            verdict,
            problem or answer.short,
            "any error here is ignored silently: the extender's scores count as 0"
            if verdict == FAIL
            else "score × weight × 10 is added to the node's total",
        )


def _prioritize_problem(answer: Answer) -> tuple[str, str]:
    if answer.problem or answer.status != 200:
        return answer.problem or f"HTTP status {answer.status}", FAIL
    result = answer.json()
    if not isinstance(result, list):
        return "the answer is not a bare array of {Host, Score}", FAIL
    seen: set[str] = set()
    for entry in result:
        if not isinstance(entry, dict):
            return "an entry is not an object", FAIL
        host, score = _get(entry, "Host"), _get(entry, "Score")
        if type(score) is not int:
            return f"Score {score!r} is not an integer", FAIL
        if host not in {f"check-{i}" for i in range(3)}:
            return f"host {host!r} was not sent (ignored)", WARN
        if host in seen:
            return f"host {host!r} is named twice (both count)", FAIL
        seen.add(host)
        if not 0 <= score <= 10:
            return f"Score {score} is outside 0..10 and is used as it is", FAIL
    if len(seen) < 3:
        return "a node that was sent has no score (counts as 0)", WARN
    return "", PASS


def _preempt(call: _Caller) -> Finding:
    uid = "00000000-0000-0000-0000-000000000001"
    meta = {"check-0": {"Pods": [{"UID": uid}], "NumPDBViolations": 0}}
    body = {"Pod": sample_pod(), "NodeNameToVictims": None, "NodeNameToMetaVictims": meta}
    if call.target.node_cache_capable is False:
        victim = {**sample_pod(), "metadata": {"name": "victim", "namespace": "default", "uid": uid}}
        body = {
            "Pod": sample_pod(),
            "NodeNameToVictims": {"check-0": {"Pods": [victim], "NumPDBViolations": 0}},
            "NodeNameToMetaVictims": None,
        }
    answer = call.post(call.target.preempt, body)
    result = answer.json()
    bad = "preemption ends with this error; the pod stays pending"
    if answer.problem or answer.status != 200 or not isinstance(result, dict):
        return Finding("preempt", FAIL, answer.short, bad)
    for node, victims in (_get(result, "NodeNameToMetaVictims") or {}).items():
        pods = _get(victims, "Pods") if isinstance(victims, dict) else None
        if node != "check-0":
            return Finding(
                "preempt", FAIL, f"node {node!r} does not exist", f'nodeinfo not found for node name "{node}"'
            )
        if not pods:
            return Finding(
                "preempt",
                FAIL,
                "a node without victims",
                f'expected at least one victim pod on node "{node}"',
            )
        if [p for p in pods if _get(p, "UID") != uid]:
            return Finding(
                "preempt",
                FAIL,
                "a victim that was not sent",
                "claims to preempt pod …, but the pod is not found on that node",
            )
    return Finding("preempt", PASS, answer.short, "the pick is made among the nodes that are left")


def _bind(call: _Caller) -> Finding:
    answer = call.post(
        call.target.bind,
        {"PodName": "check", "PodNamespace": "default", "PodUID": _GHOST_POD_UID, "Node": "check-0"},
    )
    result = answer.json()
    if answer.problem or answer.status != 200 or not isinstance(result, dict):
        return Finding(
            "bind, unknown pod", WARN, answer.short, "FailedScheduling with this error, reason SchedulerError"
        )
    if _get(result, "Error"):
        return Finding(
            "bind, unknown pod", PASS, answer.short, "FailedScheduling with this text; the pod is tried again"
        )
    return Finding(
        "bind, unknown pod",
        FAIL,
        "claims to have bound a pod that does not exist",
        "kube-scheduler believes it: the pod is assumed for ever, unbound, its resources counted",
    )


def _get(value: Any, key: str) -> Any:
    if not isinstance(value, dict):
        return None
    if key in value:
        return value[key]
    lower = key.lower()
    return next((v for k, v in value.items() if isinstance(k, str) and k.lower() == lower), None)
