"""A picture of the scheduling queue, for people and widgets."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

from labkit.i18n import t


@dataclass
class QueueEntry:
    """One pod; times in Clock seconds. `until`: when its back-off ends. `plugins`: who rejected it.

    `reason`: the plugin that gates it, and `message` what that plugin said.
    """

    pod: str
    attempts: int
    since: float
    until: float | None = None
    plugins: list[str] = field(default_factory=list)
    reason: str = ""
    message: str = ""


@dataclass
class QueueView:
    """Everything that is visible of the queue, each list in the order in which pods would leave it.

    `in_flight`: pods that Permit holds; `nominated`: pod -> node.
    """

    active: list[QueueEntry]
    backoff: list[QueueEntry]
    error_backoff: list[QueueEntry]
    unschedulable: list[QueueEntry]
    gated: list[QueueEntry]
    in_flight: list[str]
    nominated: dict[str, str]
    now: float

    def find(self, pod: str) -> str | None:
        """Where `namespace/name` is: "active", "backoff", "error_backoff", "unschedulable", "gated", "in_flight"."""
        for name in ("active", "backoff", "error_backoff", "unschedulable", "gated"):
            if any(e.pod == pod for e in getattr(self, name)):
                return name
        return "in_flight" if pod in self.in_flight else None

    def rows(self) -> list[tuple[str, str, str]]:
        """(queue, pod, remark) of every waiting pod, in the current language."""
        found = [(t("active", "活跃"), e.pod, "") for e in self.active]
        for name, entries in (
            (t("back-off", "退避"), self.backoff),
            (t("error back-off", "错误退避"), self.error_backoff),
        ):
            found += [(name, e.pod, self._left(e)) for e in entries]
        found += [(t("unschedulable", "不可调度"), e.pod, ", ".join(e.plugins)) for e in self.unschedulable]
        found += [
            (t("gated", "受阻"), e.pod, f"{e.reason}: {e.message}" if e.message else e.reason)
            for e in self.gated
        ]
        found += [(t("held by Permit", "被 Permit 保留"), pod, "") for pod in self.in_flight]
        return [
            (queue, pod, " ".join(filter(None, (remark, self._nomination(pod)))))
            for queue, pod, remark in found
        ]

    def _left(self, entry: QueueEntry) -> str:
        seconds = max(0.0, (entry.until or self.now) - self.now)
        return t(f"{seconds:g} s left", f"还剩 {seconds:g} 秒")

    def _nomination(self, pod: str) -> str:
        node = self.nominated.get(pod)
        return t(f"(nominated to {node})", f"（提名到 {node}）") if node else ""

    def __str__(self) -> str:
        rows = self.rows()
        if not rows:
            return t("The queue is empty.", "队列为空。")
        widths = [max(len(row[i]) for row in rows) for i in range(2)]
        return "\n".join(
            f"{q:<{widths[0]}}  {pod:<{widths[1]}}  {remark}".rstrip() for q, pod, remark in rows
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = self.rows()
        if not rows:
            return f"<p>{escape(str(self))}</p>"
        words = (t("Queue", "队列"), "Pod", t("Remark", "说明"))
        head = "".join(f'<th scope="col">{escape(word)}</th>' for word in words)
        body = "".join(
            f'<tr><td>{escape(queue)}</td><th scope="row">{escape(pod)}</th><td>{escape(remark)}</td></tr>'
            for queue, pod, remark in rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
