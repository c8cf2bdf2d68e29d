"""The extender inspector: what our engine asks an HTTP extender, what it hears, and what it makes of it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from labkit.config import load_config
from labkit.config.types import ExtenderConfig
from labkit.engine.framework import Framework
from labkit.engine.trace import Trace
from labkit.engine.trace_text import verdict as verdict_text
from labkit.engine.trace_text import why
from labkit.errors import LabError
from labkit.extender.client import HTTPExtender
from labkit.i18n import t
from labkit.widgets import extender_effects as effects
from labkit.widgets import view as v
from labkit.widgets.extender_tap import Exchange, Tap, plain, pretty, shorten, tapped
from labkit.widgets.scene import Scene, key_of, pod_options
from labkit.widgets.view import Block

if TYPE_CHECKING:
    from labkit.extender.server import ExtenderServer
    from labkit.lab import Lab

#: Calls kept in the list.
KEPT = 40
_WEB = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "app", "image": "app", "resources": {"requests": {"cpu": "500m"}}}]},
}


class ExtenderInspectorController:
    """Decides one pod again and again with the extenders asked over HTTP. Nothing in the lab changes by that.

    `source` is a lab whose configuration names extenders, or a running server; a server is asked about the
    cluster of `lab`. Calls that the lab itself makes from now on are listed as well.
    """

    def __init__(self, source: Lab | ExtenderServer, lab: Lab | None = None) -> None:
        from labkit.lab import Lab

        if isinstance(source, Lab):
            self.lab = source
            self.extenders = list(load_config(source.config).extenders)
            if not self.extenders:
                raise LabError(
                    t("the lab's configuration names no extender", "这个 lab 的配置里没有 extender"),
                    hint=t(
                        "give a server as well: extender_inspector(lab.extender(MyPlugin()), lab)",
                        "请给出一个服务器：extender_inspector(lab.extender(MyPlugin()), lab)",
                    ),
                )
        else:
            self.lab = lab if lab is not None else Lab("three-zones")
            self.extenders = [config_of(source)]
        self.chosen_extender = 0
        self.down: set[int] = set()
        self.times = False
        self.exchanges: deque[tuple[int, Exchange]] = deque(maxlen=KEPT)
        self._number = 0
        self.chosen = 0
        self.scene = Scene(self.lab)
        ready = [entry.pod for entry in self.lab.queue.active]
        first = [*ready, *map(key_of, self.scene.waiting), *map(key_of, self.scene.placed)]
        self.pod = self.scene.pod(first[0] if first else _WEB)
        self._watch_lab()
        self.trace: Trace = self._ask()

    # --- what a learner does ------------------------------------------------------------------------------------

    def handle(self, id: str, value: Any) -> None:
        """`call` picks an exchange; `again`, `pod`, `capable`, `ignorable`, `down` ask anew; `extender` says which
        of several the switches are for; `times` shows milliseconds."""
        self._watch_lab()
        if id == "call":
            if int(value) in [n for n, _ in self.exchanges]:
                self.chosen = int(value)
        elif id == "times":
            self.times = bool(value)
        elif id == "extender":
            self.chosen_extender = min(max(int(value), 0), len(self.extenders) - 1)
        elif id in ("capable", "ignorable"):
            field = "node_cache_capable" if id == "capable" else "ignorable"
            at = self.chosen_extender
            self.extenders[at] = msgspec.structs.replace(self.extenders[at], **{field: bool(value)})
            self._ask()
        elif id == "down":
            (self.down.add if value else self.down.discard)(self.chosen_extender)
            self._ask()
        elif id in ("pod", "again"):
            self.scene = Scene(self.lab)
            if id == "pod":
                self.pod = self.scene.pod(str(value))
            self._ask()

    def _ask(self) -> Trace:
        """One decision; the first of its calls becomes the chosen one."""
        found: list[Exchange] = []
        clients = [HTTPExtender(e) for e in self.extenders]
        for at, client in enumerate(clients):
            Tap(client, found.append, lambda at=at: at in self.down)  # type: ignore[misc]
        clients.sort(key=lambda client: client.ignorable)

        def with_extenders(framework: Framework) -> None:
            framework.services.extenders[:] = clients

        self.trace = self.scene.decide(self.pod, change=with_extenders)
        first = self._number + 1
        for exchange in found:
            exchange.trace = self.trace
            self._keep(exchange)
        if found:
            self.chosen = first
        return self.trace

    def _keep(self, exchange: Exchange) -> None:
        self._number += 1
        self.exchanges.append((self._number, exchange))

    def _watch_lab(self) -> None:
        """Have the lab's own calls listed. A lab that was rewound has new extenders."""
        for framework in self.lab.scheduler.frameworks.values():
            for extender in framework.extenders:
                if isinstance(extender, HTTPExtender) and not tapped(extender):
                    Tap(extender, self._keep)

    def _trace_of(self, exchange: Exchange) -> Trace | None:
        if exchange.trace is None:
            for trace in self.lab.traces:
                if any(call is exchange.call for call in trace.extender_calls):
                    exchange.trace = trace
        return exchange.trace

    @property
    def exchange(self) -> Exchange | None:
        """The chosen exchange."""
        return next((e for n, e in self.exchanges if n == self.chosen), None)

    # --- what is shown ------------------------------------------------------------------------------------------

    def view(self) -> list[Block]:
        """The decision, the calls beside the controls, and the chosen call from request to consequence."""
        blocks: list[Block] = [
            v.toolbar(
                "Extender",
                sub=t(f"pod {key_of(self.pod)}", f"Pod {key_of(self.pod)}"),
                buttons=[v.button("again", t("Send again", "再发一次"), primary=True)],
            ),
            v.grid("minmax(0,1fr) 290px", v.card(None, *self._calls()), self._controls()),
        ]
        exchange = self.exchange
        if exchange is None:
            return blocks
        blocks.append(
            v.grid(
                "minmax(0,1fr) minmax(0,1fr)",
                v.card(t("Request", "请求"), *_request(exchange)),
                v.card(t("Response", "响应"), *_response(exchange)),
            )
        )
        title = t("What kube-scheduler does with it", "kube-scheduler 如何处理")
        blocks.append(v.card(title, *effects.blocks(exchange, self._trace_of(exchange))))
        return blocks

    def _calls(self) -> list[Block]:
        blocks: list[Block] = [
            v.verdict(
                verdict_text(self.trace),
                self._without_address(why(self.trace)),
                status=None if self.trace.node else "fail",
            )
        ]
        if not self.exchanges:
            blocks.append(
                v.notice(
                    "skip",
                    t(
                        "The extender was not asked: no node passed the Filter plugins, or the pod names none of its "
                        "managedResources.",
                        "没有调用 extender：没有节点通过 Filter 插件，或者 Pod 没有用到它的 managedResources。",
                    ),
                )
            )
            return blocks
        columns = [
            v.column(t("Call", "调用")),
            v.column(t("Verb", "动词")),
            v.column("Pod"),
            v.column(t("Nodes sent", "发送节点数"), num=True),
            v.column(t("Form", "形式")),
            v.column(t("Status", "状态")),
            *([v.column(t("Time in ms", "耗时（毫秒）"), num=True)] if self.times else []),
        ]
        rows = [
            v.row(
                str(number),
                v.strong(e.verb) if number == self.chosen else e.verb,
                e.pod,
                e.call.nodes,
                e.form or "–",
                effects.status_mark(e),
                *([round(e.milliseconds, 1)] if self.times else []),
                win=number == self.chosen,
            )
            for number, e in self.exchanges
        ]
        blocks.append(v.table(columns, rows, caption=t("Calls, oldest first", "调用，最早的在前")))
        return blocks

    def _controls(self) -> Block:
        config = self.extenders[self.chosen_extender]
        options = [(str(n), f"{n}. {e.verb} · {e.pod} · {e.form or '–'}") for n, e in self.exchanges]
        items = [v.select("pod", "Pod", key_of(self.pod), pod_options(self.scene, self.pod))]
        if options:
            items.append(v.select("call", t("Call to look at", "查看的调用"), str(self.chosen), options))
        if len(self.extenders) > 1:
            several = [(str(i), f"extender {i + 1}") for i in range(len(self.extenders))]
            items.append(
                v.select("extender", t("Switches for", "开关对应"), str(self.chosen_extender), several)
            )
        items += [
            v.check(
                "capable",
                t("nodeCacheCapable: send names only", "nodeCacheCapable：只发送名字"),
                config.node_cache_capable,
            ),
            v.check(
                "ignorable", t("ignorable: go on without it", "ignorable：没有它也继续"), config.ignorable
            ),
            v.check("down", t("the extender is down", "extender 停机"), self.chosen_extender in self.down),
            v.check("times", t("show times", "显示耗时"), self.times),
        ]
        weight = t(f"weight: {config.weight}", f"weight：{config.weight}")
        verbs = [
            x
            for x in (config.filter_verb, config.prioritize_verb, config.preempt_verb, config.bind_verb)
            if x
        ]
        configured = v.text(f"{weight} · {', '.join(verbs)}", mute=True)
        return v.card(t("Configuration", "配置"), v.controls(*items), configured)

    def _without_address(self, text: str) -> str:
        for config in self.extenders:
            text = plain(text, config.url_prefix)
        return text

    def summary(self) -> str:
        """The decision, and the calls that led to it."""
        calls = [e for _, e in self.exchanges if e.trace is self.trace]
        asked = ", ".join(f"{e.verb} {e.code or t('no answer', '无应答')}" for e in calls)
        return f"{verdict_text(self.trace)} · {asked or t('extender not asked', '未调用 extender')}"


def config_of(server: ExtenderServer) -> ExtenderConfig:
    """How kube-scheduler would be configured for `server`: the verbs that its plugins serve, weight 1."""
    verbs = {
        name: name if server.service.serves(name) else ""
        for name in ("filter", "prioritize", "preempt", "bind")
    }
    return ExtenderConfig(
        url_prefix=server.url,
        filter_verb=verbs["filter"],
        prioritize_verb=verbs["prioritize"],
        preempt_verb=verbs["preempt"],
        bind_verb=verbs["bind"],
        weight=1,
    )


def _request(exchange: Exchange) -> list[Block]:
    text = f"POST /{exchange.verb}\n{pretty(shorten(exchange.request))}"
    return [v.pre(text, label=t("request, shortened", "请求（有删节）"))]


def _response(exchange: Exchange) -> list[Block]:
    if exchange.error and not exchange.response:
        text = plain(exchange.error, exchange.extender.name)
        return [v.notice("error", text)]
    answer = exchange.answer
    text = exchange.response.decode("utf-8", "replace")[:2000] if answer is None else pretty(shorten(answer))
    return [v.pre(f"200\n{text}", label=t("response, shortened", "响应（有删节）"))]
