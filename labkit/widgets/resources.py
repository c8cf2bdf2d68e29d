"""The resources explorer: move a request, a strategy or a weight, and see the decision computed anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labkit.engine.trace import Trace
from labkit.i18n import t
from labkit.objects.quantity import milli_value_of, value_of
from labkit.widgets import view as v
from labkit.widgets.scratch import decide, placed_requests
from labkit.widgets.trace import nodes_table, score_legend, score_table, verdict_block
from labkit.widgets.view import Block

if TYPE_CHECKING:
    from labkit.lab import Lab

_MIB = 1024 * 1024
STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
_SHAPE = [{"utilization": 0, "score": 0}, {"utilization": 70, "score": 10}, {"utilization": 100, "score": 2}]


def cores(milli: int) -> str:
    """Millicores as people read them: `500m`, `2`, `1.5`."""
    return f"{milli / 1000:g}" if milli >= 1000 or milli == 0 else f"{milli}m"


def gib(amount: int) -> str:
    """Bytes in Gi or Mi."""
    if amount == 0:
        return "0"
    return f"{amount / (1024 * _MIB):g}Gi" if amount >= 1024 * _MIB else f"{amount / _MIB:g}Mi"


class ResourcesExplorerController:
    """One pod of adjustable size on a lab's nodes. Nothing in the lab changes."""

    def __init__(self, lab: Lab, *, cpu: str = "1", memory: str = "1Gi") -> None:
        self._nodes = lab.nodes()
        self._pods = [p for p in lab.pods() if (p.get("spec") or {}).get("nodeName")]
        self._used = placed_requests(self._pods)
        self.cpu = milli_value_of(cpu)
        self.memory = value_of(memory) // _MIB
        self.strategy = STRATEGIES[0]
        self.weights = {"cpu": 1, "memory": 1}
        self.trace: Trace = self._decide()

    def handle(self, id: str, value: Any) -> None:
        """Sliders `cpu` (millicores), `memory` (MiB), `weight.cpu`, `weight.memory`; the list `strategy`."""
        if id == "cpu":
            self.cpu = max(0, int(value))
        elif id == "memory":
            self.memory = max(0, int(value))
        elif id == "strategy" and value in STRATEGIES:
            self.strategy = str(value)
        elif id.startswith("weight."):
            self.weights[id.removeprefix("weight.")] = min(100, max(1, int(value)))
        self.trace = self._decide()

    def _config(self) -> dict[str, Any]:
        strategy: dict[str, Any] = {
            "type": self.strategy,
            "resources": [{"name": n, "weight": w} for n, w in self.weights.items()],
        }
        if self.strategy == "RequestedToCapacityRatio":
            strategy["requestedToCapacityRatio"] = {"shape": _SHAPE}
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}]}
            ],
        }

    def _decide(self) -> Trace:
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "pod", "namespace": "default", "uid": "explorer"},
            "spec": {
                "schedulerName": "default-scheduler",
                "containers": [
                    {
                        "name": "c",
                        "image": "app:v1",
                        "resources": {"requests": {"cpu": f"{self.cpu}m", "memory": f"{self.memory}Mi"}},
                    }
                ],
            },
        }
        return decide(self._nodes, self._pods, pod, self._config())

    def view(self) -> list[Block]:
        """Controls beside the nodes, the verdict, the score table."""
        return [
            v.toolbar(
                t("Resources", "资源"), sub=t(f"{len(self._nodes)} nodes", f"{len(self._nodes)} 个节点")
            ),
            v.grid("minmax(0,1fr) 300px", self._picture(), self._controls()),
            v.card(
                None,
                verdict_block(self.trace),
                nodes_table(self.trace),
                score_legend(self.trace),
                v.details(t("Scores as numbers", "分数明细"), score_table(self.trace)),
            ),
        ]

    def _controls(self) -> Block:
        most_cpu = max([milli_value_of(_allocatable(n).get("cpu", 0)) for n in self._nodes] or [4000])
        most_memory = max([value_of(_allocatable(n).get("memory", 0)) // _MIB for n in self._nodes] or [4096])
        return v.card(
            t("The pod and the profile", "Pod 与 profile"),
            v.controls(
                v.slider(
                    "cpu",
                    t("CPU request", "CPU 请求"),
                    self.cpu,
                    min=0,
                    max=most_cpu + 1000,
                    step=100,
                    figure=cores(self.cpu),
                ),
                v.slider(
                    "memory",
                    t("Memory request", "内存请求"),
                    self.memory,
                    min=0,
                    max=most_memory + 1024,
                    step=128,
                    figure=gib(self.memory * _MIB),
                ),
                v.select(
                    "strategy",
                    t("NodeResourcesFit strategy", "NodeResourcesFit 策略"),
                    self.strategy,
                    [(s, s) for s in STRATEGIES],
                ),
                v.slider(
                    "weight.cpu",
                    t("Weight of cpu", "cpu 的权重"),
                    self.weights["cpu"],
                    min=1,
                    max=10,
                    step=1,
                    figure=str(self.weights["cpu"]),
                    color="fit",
                ),
                v.slider(
                    "weight.memory",
                    t("Weight of memory", "memory 的权重"),
                    self.weights["memory"],
                    min=1,
                    max=10,
                    step=1,
                    figure=str(self.weights["memory"]),
                    color="fit",
                ),
            ),
            v.text(
                t(
                    "LeastAllocated prefers room, MostAllocated prefers full nodes, RequestedToCapacityRatio here likes 70 % best.",
                    "LeastAllocated 偏好空闲，MostAllocated 偏好装满，这里的 RequestedToCapacityRatio 最喜欢 70%。",
                ),
                mute=True,
            ),
        )

    def _picture(self) -> Block:
        return v.card(
            t("What each node has given away", "各节点已分出的资源"),
            v.nodes([("", [self._node(n) for n in self._nodes])]),
        )

    def _node(self, node: dict[str, Any]) -> Block:
        name = node["metadata"]["name"]
        status = self.trace.filter.get(name)
        won = self.trace.node == name
        if status is not None and not status.is_success:
            tag, mark = ", ".join(status.reasons), "fail"
        elif won:
            total = self.trace.scores[name].total if name in self.trace.scores else None
            tag = t("chosen", "选中") + ("" if total is None else t(f", score {total}", f"，{total} 分"))
            mark = "pass"
        else:
            tag, mark = "", None
        used_cpu, used_memory = self._used.get(name, (0, 0))
        allocatable = _allocatable(node)
        return v.node(
            name,
            meters=[
                _meter(
                    "CPU", used_cpu, self.cpu, milli_value_of(allocatable.get("cpu", 0)), cores, name, won
                ),
                _meter(
                    t("Memory", "内存"),
                    used_memory,
                    self.memory * _MIB,
                    value_of(allocatable.get("memory", 0)),
                    gib,
                    name,
                    won,
                ),
            ],
            tag=tag,
            status=mark,
            win=won,
        )

    def summary(self) -> str:
        """The decision in one line."""
        pod = f"{cores(self.cpu)} CPU, {gib(self.memory * _MIB)}"
        where = self.trace.node or t("nowhere", "无处可放")
        return f"{pod} → {where} ({self.strategy})"


def _allocatable(node: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = (node.get("status") or {}).get("allocatable") or {}
    return found


def _meter(label: str, used: int, asked: int, total: int, words: Any, node: str, won: bool) -> Block:
    scale = max(total, used + asked, 1)
    fits = used + asked <= total
    parts = [v.part(100 * used / scale, words(used))]
    if asked:
        parts.append(
            v.part(100 * asked / scale, words(asked), "new" if fits and won else "maybe" if fits else "over")
        )
    parts = [p for p in parts if p["width"] > 0]
    figure = f"{words(used + asked)} / {words(total)}"
    return v.meter(parts, label=f"{node} {label}: {figure}", text=label, figure=figure)
