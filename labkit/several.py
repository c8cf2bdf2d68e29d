"""Several schedulers on one cluster, in one virtual time: stale caches, conflicts, leaders, overcommitted nodes.

    lab = SeveralSchedulers("two-schedulers", [Member("default-scheduler", "a", delay=1), Member("batch", "b", delay=1)])
    lab.run()
    for entry in lab.log: print(entry)

Each member is a whole scheduler with a queue and a cache of its own. All of them work on one store; what happens there
reaches a member `delay` seconds later, so that it decides on what it knows and not on what is (spec 15 §3, §4).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from labkit.cluster.client import StoreClient
from labkit.cluster.kubelet import Kubelets
from labkit.cluster.store import Store
from labkit.cluster.store_errors import ApiError
from labkit.engine.trace import Trace
from labkit.errors import InputError, LabError
from labkit.framework.clock import VirtualClock
from labkit.i18n import t
from labkit.objects.meta import RawObject
from labkit.reading import parse_duration, read_objects
from labkit.several_members import Entry, Member, check, named, overcommitted
from labkit.several_process import Process

__all__ = ["Entry", "Member", "SeveralSchedulers"]

#: `run` ends when nothing is under way any more, and at the latest after so many attempts.
_LIMIT = 100_000


class SeveralSchedulers:
    """A cluster with several schedulers. `source`: what `labkit.reading.read_objects` reads; None starts empty.

    With `kubelet`, pods that are bound are admitted or refused by their node and start. The same calls with the same
    `seed` give the same log. LabError for members that cannot be.
    """

    def __init__(
        self,
        source: Any = None,
        members: Iterable[Member] = (Member(),),
        *,
        seed: int = 0,
        kubelet: bool = True,
    ) -> None:
        self._source = copy.deepcopy(source) if isinstance(source, (dict, list)) else source
        self.members = [named(m) for m in members]
        self._seed = seed
        self._kubelet = kubelet
        check(self.members)
        self._setup()

    def _setup(self) -> None:
        self.clock = VirtualClock()
        self.store = Store(self.clock, seed=self._seed)
        self.client = StoreClient(self.store, field_manager="labkit")
        #: What happened, in order.
        self.log: list[Entry] = []
        self._on_the_way = 0
        self._turn = 0
        self._bound: dict[str, tuple[str, RawObject]] = {}
        self.kubelets = Kubelets(
            StoreClient(self.store, field_manager="kubelet"),
            self.clock,
            heartbeats=False,
            listener=self._heard_from_node,
        )
        self._processes: list[Process] = []
        #: What nodes say while a bind call has not returned yet.
        self._held: list[tuple[str, str, str, str]] | None = None
        self.store.subscribe(self._on_change)
        if self._source is not None:
            self._apply(self._source)
        self._processes = [
            Process(m, self.store, self.clock, self._seed, i, self._log_of(m.identity))
            for i, m in enumerate(self.members)
        ]
        for process in self._processes:
            process.lead_or_wait()

    # --- what happens ---------------------------------------------------------------------------------------

    def _say(self, member: str, kind: str, pod: str = "", node: str = "", text: str = "") -> None:
        saw: tuple[str, ...] = ()
        there: tuple[str, ...] = ()
        if kind == "decided" and node:
            counted = self._process(member).scheduler.cache.nodes.get(node)
            keys = sorted(info.pod.key for info in counted.pods) if counted is not None else []
            saw = tuple(key for key in keys if key != pod)
            # Without copies: a cluster may have many pods.
            there = tuple(sorted(k for k, raw in self.store.objects("Pod").items() if _place(raw) == node))
        self.log.append(Entry(round(self.now, 6), member, kind, pod, node, text, saw, there))

    def _log_of(self, identity: str) -> Callable[[str, str, str, str], None]:
        def log(kind: str, pod: str, node: str, text: str) -> None:
            self._say(identity, kind, pod, node, text)
            if kind not in ("decided", "bound", "conflict"):
                return
            # What nodes say while a bind call has not returned yet comes after it.
            held, self._held = self._held or [], [] if kind == "decided" else None
            for said in held:
                self._heard_from_node(*said)

        return log

    def _heard_from_node(self, kind: str, pod: str, node: str, text: str) -> None:
        if self._held is not None:
            self._held.append((kind, pod, node, text))
        elif kind == "rejected":
            self._say(node, "rejected", pod, node, text)
        else:
            self._say(node, "kubelet", pod, node, f"{kind}{': ' + text if text else ''}")

    def _on_change(self, type_: str, old: RawObject | None, new: RawObject | None) -> None:
        for process in self._processes:
            if not process.alive:
                continue
            if process.delay <= 0:
                process.scheduler.notify(old, new)
                continue
            self._on_the_way += 1
            self.clock.call_at(self.clock.now() + process.delay, self._delivery(process, old, new))
        if new is not None and new.get("kind") == "Pod" and (node := new["spec"].get("nodeName")):
            self._bound[new["metadata"]["uid"]] = (node, new)
        if self._kubelet:
            self.kubelets.on_change(type_, old, new)

    def _delivery(self, process: Process, old: RawObject | None, new: RawObject | None) -> Callable[[], None]:
        def deliver() -> None:
            self._on_the_way -= 1
            process.scheduler.notify(old, new)

        return deliver

    # --- the lab --------------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Virtual seconds since the start."""
        return self.clock.now() - self.clock.start

    def apply(self, source: Any) -> list[Entry]:
        """Create more objects; what happens at once is returned. InputError names what the API refuses."""
        begin = len(self.log)
        self._apply(source)
        return self.log[begin:]

    def _apply(self, source: Any) -> None:
        for document in read_objects(source):
            raw = copy.deepcopy(document.raw)
            raw.setdefault("apiVersion", "v1")
            meta = raw.setdefault("metadata", {})
            meta.pop("resourceVersion", None)
            status = raw.get("status")
            try:
                if (namespace := meta.get("namespace")) and self.store.peek("Namespace", namespace) is None:
                    self.client.create(
                        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
                    )
                made = self.client.create(raw)
                if isinstance(status, dict) and made.get("status") != status:
                    self.client.patch(
                        raw["kind"],
                        made["metadata"]["name"],
                        made["metadata"].get("namespace"),
                        {"status": status},
                        "merge",
                        "status",
                    )
            except ApiError as e:
                raise InputError(
                    e.message, file=document.source, document=document.number, object=document.label
                ) from e

    def step(self) -> list[Entry]:
        """The next thing that happens: one attempt of the next member in turn, or else the next moment in time.

        Returns its entries; an empty list when nothing is under way any more.
        """
        begin = len(self.log)
        while len(self.log) == begin:
            if self._attempt():
                continue
            if not self._under_way() or (due := self.clock.next_timer()) is None:
                break
            self.clock.advance_to(due)
        return self.log[begin:]

    def run(self, limit: int = _LIMIT) -> list[Entry]:
        """Until no pod can be tried, every change has arrived and every pod has started; the entries of all that.

        Pods in back-off are left there: `advance` lets their time pass.
        """
        begin = len(self.log)
        for _ in range(limit):
            if not self.step():
                break
        return self.log[begin:]

    def advance(self, duration: str | float) -> list[Entry]:
        """Let time pass, and everything happen that falls due."""
        begin, target = len(self.log), self.clock.now() + parse_duration(duration)
        self._attempt_all()
        while (due := self.clock.next_timer()) is not None and due <= target:
            self.clock.advance_to(due)
            self._attempt_all()
        self.clock.advance_to(target)
        self._attempt_all()
        return self.log[begin:]

    def _attempt_all(self) -> None:
        for _ in range(_LIMIT):
            if not self._attempt():
                return

    def _attempt(self) -> bool:
        """One attempt of the next member that has a pod to try."""
        count = len(self._processes)
        for i in range(count):
            process = self._processes[(self._turn + i) % count]
            process.scheduler.pump()
            if not process.works:
                continue
            trace = process.scheduler.schedule_one()
            if trace is not None:
                self._turn = (self._turn + i + 1) % count
                self._tell_failure(process, trace)
                return True
        return False

    def _tell_failure(self, process: Process, trace: Trace) -> None:
        if trace.node is None and trace.error is None:
            self._say(process.member.identity, "decided", trace.pod, text=trace.full_message or "")

    def _under_way(self) -> bool:
        return self._on_the_way > 0 or bool(self.kubelets.starting)

    def reset(self) -> None:
        """Begin anew, with the objects and members of the beginning."""
        self._setup()

    def stop(self, identity: str) -> list[Entry]:
        """End a member in good order: it releases its lease first. LabError when there is no such member."""
        return self._end(identity, release=True)

    def kill(self, identity: str) -> list[Entry]:
        """End a member at once: its lease runs out only after its time."""
        return self._end(identity, release=False)

    def _end(self, identity: str, *, release: bool) -> list[Entry]:
        begin = len(self.log)
        self._process(identity).end(release=release)
        return self.log[begin:]

    # --- looking --------------------------------------------------------------------------------------------

    def leader(self, name: str = "default-scheduler") -> str | None:
        """Who of the members that serve `name` works now; None when nobody does."""
        return next(
            (p.member.identity for p in self._processes if p.member.name == name and p.works),
            None,
        )

    def queue(self, identity: str) -> Any:
        """A member's queue as it stands. LabError when there is no such member."""
        return self._process(identity).scheduler.view()

    def counted(self, identity: str) -> dict[str, dict[str, bool]]:
        """What a member believes: node -> pods that it counts there; True for a pod that it has only assumed.

        LabError when there is no such member.
        """
        cache = self._process(identity).scheduler.cache
        return {
            name: {info.pod.key: cache.is_assumed(info.pod) for info in sorted(node.pods, key=_key)}
            for name, node in sorted(cache.nodes.items())
        }

    def state(self, identity: str) -> str:
        """One of "working", "standing-by" (another one leads) or "stopped". LabError when there is no such member."""
        process = self._process(identity)
        return "stopped" if not process.alive else "working" if process.leads else "standing-by"

    def _process(self, identity: str) -> Process:
        process = next((p for p in self._processes if p.member.identity == identity), None)
        if process is None:
            known = ", ".join(m.identity for m in self.members)
            raise LabError(
                t(f"there is no member {identity!r}", f"没有名为 {identity!r} 的成员"),
                hint=t("members: ", "成员：") + known,
            )
        return process

    def pods(self) -> list[RawObject]:
        """All pods, as the API shows them."""
        return self.client.list("Pod")[0]

    def nodes(self) -> list[RawObject]:
        """All nodes, as the API shows them."""
        return self.client.list("Node")[0]

    def events(self) -> list[RawObject]:
        """All events, in order of time."""
        found = self.client.list("Event")[0]
        return sorted(found, key=lambda e: (e.get("eventTime") or "", e["metadata"]["name"]))

    def summary(self) -> dict[str, Any]:
        """Counts of `bound`, `conflicts`, `rejected` (by kubelets), and the nodes to which more was bound than fits.

        `overcommitted` maps such a node to resource -> (bound, allocatable): millicores, bytes, pods.
        """
        kinds = [e.kind for e in self.log]
        return {
            "bound": kinds.count("bound"),
            "conflicts": kinds.count("conflict"),
            "rejected": kinds.count("rejected"),
            "overcommitted": overcommitted(self.nodes(), self._bound.values()),
        }

    def __repr__(self) -> str:
        s = self.summary()
        return t(
            f"<SeveralSchedulers: {len(self.members)} members, {s['bound']} bound, {s['conflicts']} conflicts, "
            f"{s['rejected']} rejected, t + {self.now:g} s>",
            f"<SeveralSchedulers：{len(self.members)} 个调度器，{s['bound']} 次绑定，{s['conflicts']} 次冲突，"
            f"{s['rejected']} 次被拒绝，t + {self.now:g} 秒>",
        )


def _key(info: Any) -> str:
    return str(info.pod.key)


def _place(raw: RawObject) -> str:
    """The node on which a pod takes room, "" for none."""
    over = (raw.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return "" if over else raw["spec"].get("nodeName") or ""
