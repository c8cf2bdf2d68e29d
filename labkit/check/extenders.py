"""Checks of a learner's extender: the protocol's cases, and what our scheduler decides when it asks it.

An extender is a plugin class or object, which labkit serves, or the learner's own handlers: verb -> function that
takes the request as a dict and returns the answer. Either way it is asked over HTTP on the loopback address.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from labkit.check.plugins import _made
from labkit.check.report import Case, Exercise, Words, last_frames
from labkit.i18n import t

Handlers = Mapping[str, Callable[[dict[str, Any]], Any]]
#: Verb, members that carried the nodes, how many: what a request was like that a handler failed on.
_Kind = tuple[str, str, int]
_VERBS = ("filter", "prioritize")
#: Case of the checker -> the request that it sends.
_SENT: dict[str, _Kind] = {
    "filter, NodeNames": ("filter", "NodeNames", 3),
    "filter, Nodes": ("filter", "Nodes", 3),
    "filter, empty list": ("filter", "NodeNames", 0),
    "filter, malformed JSON": ("filter", "NodeNames", 2),
    "filter, body in two halves": ("filter", "NodeNames", 3),
    "filter, 5000 nodes": ("filter", "NodeNames", 5000),
    "prioritize, NodeNames": ("prioritize", "NodeNames", 3),
    "prioritize, Nodes": ("prioritize", "Nodes", 3),
}
_ZH = {
    "reachable": "连不上：Pod 的每次尝试都以连接错误结束",
    "filter, NodeNames": "用名字形式时，本次尝试失败，或者没有节点剩下",
    "filter, Nodes": "用完整节点形式时，本次尝试失败，或者没有节点剩下",
    "filter, empty list": "空列表不是错误：只是没有节点剩下",
    "filter, both null": "kube-scheduler 从不这样发；什么都不说的 extender 会掩盖配置错误",
    "filter, lower-case keys": "kube-scheduler 发送首字母大写的键，手写的客户端往往不是",
    "filter, malformed JSON": "extender 一旦死掉，所有相关的 Pod 都会受牵连",
    "filter, body in two halves": "请求体可能分几次到达",
    "filter, 5000 nodes": "大集群上，本次尝试失败",
    "prioritize, NodeNames": "错误的答案被默默忽略（按 0 分计），超出 0 到 10 的分数则照用不误",
    "prioritize, Nodes": "错误的答案被默默忽略（按 0 分计），超出 0 到 10 的分数则照用不误",
}
_DROWNED = (
    "it is multiplied by weight and by 10 like any other, and drowns out the plugins",
    "它照样乘以 weight 再乘以 10，淹没插件的分数",
)
#: Said by the checker as advice; any answer is one that kube-scheduler never meets.
_ADVICE = "filter, lower-case keys"
#: Any exception answers this one well enough, so it says little of an extender.
_EASY = {"filter, both null": 0.3}


class Served:
    """A running extender. `raised`: what handlers raised; `errors()`: what a plugin's service recorded."""

    def __init__(self, url: str, verbs: tuple[str, ...], errors: Callable[[], list[str]]) -> None:
        self.url = url
        self.verbs = verbs
        self.errors = errors
        self.raised: dict[_Kind, BaseException] = {}

    def unwritten(self, verb: str = "") -> bool:
        """Whether some part (the handler of `verb`) still raises NotImplementedError."""
        raised = [e for kind, e in self.raised.items() if verb in ("", kind[0])]
        return any(isinstance(e, NotImplementedError) for e in raised) or any(
            "NotImplementedError" in text for text in self.errors()
        )


@contextlib.contextmanager
def serve(extender: Any) -> Iterator[Served]:
    """The extender on a free loopback port, for as long as the block runs."""
    if isinstance(extender, Mapping):
        with _serve_handlers(extender) as served:
            yield served
        return
    from labkit.extender.server import ExtenderServer
    from labkit.extender.service import ExtenderService

    service = ExtenderService([_made(extender)])
    with ExtenderServer(service) as server:
        verbs = tuple(v for v in _VERBS if service.serves(v))
        yield Served(server.url, verbs, lambda: [r.error for r in service.log if r.error])


@contextlib.contextmanager
def _serve_handlers(handlers: Handlers) -> Iterator[Served]:
    connections: dict[threading.Thread, socket.socket] = {}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            connections[threading.current_thread()] = self.connection

        def do_POST(self) -> None:
            verb = self.path.rsplit("/", 1)[-1]
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            code, answer = _answer(handlers, verb, body, served)
            data = json.dumps(answer).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet: a line on stderr would cost the learner the cell."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    served = Served(f"http://127.0.0.1:{server.server_address[1]}", tuple(handlers), list)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        # The scheduler keeps its connections for the next call; there will be none.
        for handling, connection in list(connections.items()):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RD)
            handling.join(5)


def _answer(handlers: Handlers, verb: str, body: bytes, served: Served) -> tuple[int, Any]:
    if verb not in handlers:
        return 404, {"Error": f"no {verb} here"}
    try:
        request = json.loads(body)
    except ValueError as e:
        return 400, {"Error": str(e)}
    try:
        answer = handlers[verb](request)
        json.dumps(answer)
        return 200, answer
    except Exception as e:
        served.raised[_kind(verb, request)] = e
        return 500, {"Error": f"{type(e).__name__}: {e}"}


def _kind(verb: str, request: Any) -> _Kind:
    if isinstance(request, dict):
        names, nodes = request.get("NodeNames"), request.get("Nodes")
        if names is not None:
            return verb, "NodeNames", len(names)
        if isinstance(nodes, dict):
            return verb, "Nodes", len(nodes.get("items") or [])
    return verb, "", 0


def attempt(
    extender: Any,
    given: Mapping[str, Any],
    *,
    node_cache_capable: bool = False,
    ignorable: bool = False,
    weight: int = 1,
) -> dict[str, Any]:
    """Our scheduler decides the pods of `given` (short form) and asks `extender`; the trace of each pod by name.

    Addresses in messages read `extender`: ports differ from run to run.
    """
    with serve(extender) as served:
        return _attempt(served, given, node_cache_capable, ignorable, weight)


def _attempt(
    served: Served, given: Mapping[str, Any], capable: bool, ignorable: bool, weight: int
) -> dict[str, Any]:
    from labkit.lab import Lab
    from labkit.quiz.model import Scenario
    from labkit.quiz.scenario import API_VERSION, engine_input

    entry: dict[str, Any] = {"urlPrefix": served.url, "nodeCacheCapable": capable, "ignorable": ignorable}
    entry |= {f"{verb}Verb": verb for verb in served.verbs}
    if "prioritize" in served.verbs:
        entry["weight"] = weight
    config = {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration", "extenders": [entry]}
    made = engine_input(Scenario(**{k: v for k, v in given.items() if k in ("nodes", "placed", "pods")}))
    lab = Lab([*made["objects"], *made["pods"]], config=config)
    address = urlsplit(served.url).netloc
    found = {}
    for trace in lab.run():
        trace.message = (trace.message or "").replace(address, "extender") or None
        trace.full_message = (trace.full_message or "").replace(address, "extender") or None
        trace.notes = [note.replace(address, "extender") for note in trace.notes]
        found[trace.pod.removeprefix("default/")] = trace
    return found


def decisions(
    extender: Any,
    given: Mapping[str, Any],
    expect: Mapping[str, Mapping[str, Any]],
    *,
    points: float,
    node_cache_capable: bool = False,
    weight: int = 1,
    hint: Words | None = None,
) -> Exercise:
    """The pods of `given` must get these decisions when the scheduler asks `extender`. One case a fact.

    Facts by pod: `bound`, `message` (with what preemption said), `kept` (nodes that the extender left), `failed.NODE` (its reason),
    `points.NODE` (what it added to the total).
    """
    from labkit.quiz.evidence import look_up

    exercise = Exercise(points)
    form = ("NodeNames", "名字形式") if node_cache_capable else ("Nodes", "完整节点")
    traces: dict[str, Any] = {}
    problem: Exception | None = None
    errors: list[str] = []
    raised: BaseException | None = None
    try:
        with serve(extender) as served:
            traces = _attempt(served, given, node_cache_capable, False, weight)
            errors = served.errors()
            raised = next(iter(served.raised.values()), None)
            if served.unwritten():
                problem = NotImplementedError()
    except Exception as e:
        problem = e
    for pod, wanted_facts in expect.items():
        for path, wanted in wanted_facts.items():
            with exercise.case(f"{form[0]}: {pod} {path}", f"{form[1]}：{pod} {path}", hint=hint) as case:
                if problem is not None:
                    raise problem
                if raised is not None:
                    _blame(case, raised)
                if errors:
                    case.fail(f"Your plugin failed: {errors[0]}", f"你的插件出错：{errors[0]}")
                trace = traces[pod]
                facts = _facts(trace)
                if facts["message"]:
                    head = t("message of kube-scheduler", "kube-scheduler 的消息")
                    case.table([head], [[facts["message"]]])
                case.equal(look_up(facts, path), wanted, path, path)
    return exercise


def _facts(trace: Any) -> dict[str, Any]:
    calls = trace.extender_calls
    failed: dict[str, str] = {}
    for call in calls:
        failed.update(call.failed)
    return {
        "bound": trace.node,
        "message": trace.full_message or trace.message,
        "kept": next((c.kept for c in calls if c.verb == "filter"), None),
        "failed": failed,
        "points": {name: scores.extender for name, scores in trace.scores.items()},
    }


def protocol(handlers: Any, *, points: float, hint: Words | None = None) -> Exercise:
    """The cases of `labkit extender check`, in both forms; a case that fails says what kube-scheduler would do."""
    from labkit.extender.checker import FAIL, WARN, Finding, Target, check

    exercise = Exercise(points)
    findings: list[Finding] = []
    served: Served | None = None
    with exercise.case("two handlers", "两个处理函数", weight=0) as case:
        for verb in _VERBS:
            function = handlers.get(verb) if isinstance(handlers, Mapping) else None
            case.true(callable(function), f"there is no function for {verb}", f"没有 {verb} 的函数")
        with serve(handlers) as served:
            findings = check(Target(served.url))
    for finding in findings:
        weight = 0 if finding.case == _ADVICE else _EASY.get(finding.case, 1.0)
        with exercise.case(finding.case, finding.case, weight=weight, hint=hint) as case:
            verb = "prioritize" if finding.case.startswith("prioritize") else "filter"
            if served is not None and served.unwritten(verb):
                raise NotImplementedError
            wrong = finding.verdict == FAIL or (
                finding.verdict == WARN and finding.case.startswith("prioritize")
            )
            if not wrong:
                continue
            kind = _SENT.get(finding.case)
            raised = served.raised.get(kind) if served is not None and kind is not None else None
            if raised is not None:
                _blame(case, raised)
            en, zh = finding.consequence, _ZH.get(finding.case, finding.consequence)
            if "is used as it is" in finding.seen:
                en, zh = _DROWNED
            case.fail(f"{finding.seen}. Then: {en}.", f"{finding.seen}。后果：{zh}。")
    return exercise


def _blame(case: Case, error: BaseException) -> None:
    """The learner's handler raised: what, and where."""
    _, case.detail = last_frames(error)
    what = f"{type(error).__name__}: {error}"
    case.fail(
        f"Your code raised {what}. The answer is status 500, and the attempt fails.",
        f"你的代码抛出 {what}。应答是状态码 500，本次尝试失败。",
    )
