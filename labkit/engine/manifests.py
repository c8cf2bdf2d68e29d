"""A cluster as files describe it: what `kubectl get nodes,pods -A -o yaml` prints, or manifests that people write.

Nothing that can be understood is lost because something else cannot: every object that is wrong becomes a
problem with its place, the others are used.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from labkit.engine.admission import NAMESPACED, Admission
from labkit.errors import InputError
from labkit.i18n import t
from labkit.objects.codec import KINDS, Document, drop_nulls, from_dict, load_documents
from labkit.objects.meta import KubeObject
from labkit.objects.node import Node
from labkit.objects.pod import Pod

_MARKER = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_ENDED = ("Succeeded", "Failed")
#: Kubernetes kinds that the scheduler does not read: reported, not complained about.
_BUILT_IN = frozenset(
    [
        "APIService",
        "Binding",
        "CertificateSigningRequest",
        "ClusterRole",
        "ClusterRoleBinding",
        "ClusterTrustBundle",
        "ComponentStatus",
        "ConfigMap",
        "ControllerRevision",
        "CronJob",
        "CustomResourceDefinition",
        "DaemonSet",
        "Deployment",
        "DeviceClass",
        "EndpointSlice",
        "Endpoints",
        "Event",
        "FlowSchema",
        "HorizontalPodAutoscaler",
        "IPAddress",
        "Ingress",
        "IngressClass",
        "Job",
        "Lease",
        "LimitRange",
        "LocalSubjectAccessReview",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "NetworkPolicy",
        "NodeMetrics",
        "PodMetrics",
        "PodTemplate",
        "PriorityLevelConfiguration",
        "ResourceClaim",
        "ResourceClaimTemplate",
        "ResourceQuota",
        "ResourceSlice",
        "Role",
        "RoleBinding",
        "RuntimeClass",
        "Secret",
        "ServiceAccount",
        "ServiceCIDR",
        "Status",
        "StorageVersion",
        "Table",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
        "VolumeAttributesClass",
        "Workload",
    ]
)


@dataclass
class Manifests:
    """What the files hold. `problems` is what could not be used, `ignored` counts kinds the scheduler does not
    read, `notes` are remarks that change nothing."""

    nodes: list[Node] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    objects: list[tuple[str, KubeObject]] = field(default_factory=list)
    problems: list[InputError] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    @property
    def pending(self) -> list[Pod]:
        """Pods without a node, in the order of the files."""
        return [p for p in self.pods if not p.spec.node_name]

    @property
    def placed(self) -> list[Pod]:
        """Pods that are on a node."""
        return [p for p in self.pods if p.spec.node_name]


def read_manifests(sources: Iterable[tuple[str, str]]) -> Manifests:
    """Read (file name, text) pairs. Never raises for bad input: see `Manifests.problems`."""
    return _Reader().read(sources)


class _Reader:
    def __init__(self) -> None:
        self.found = Manifests()
        self.broken_nodes: set[str] = set()
        self.seen: dict[tuple[str, str, str], Document] = {}

    def read(self, sources: Iterable[tuple[str, str]]) -> Manifests:
        documents: list[Document] = []
        files: dict[str | None, int] = {}
        for name, text in sources:
            files.setdefault(name, len(files))
            documents += self._documents(name, text)
        objects: dict[tuple[str, str, str], tuple[Document, KubeObject]] = {}
        for document in documents:
            obj = self._object(document)
            if obj is not None:
                kind = str(document.raw["kind"])
                namespace = obj.namespace or ("default" if kind in NAMESPACED or kind == "Pod" else "")
                # Generated names are new ones each time.
                key = (kind, namespace, obj.name or f" {len(objects)}")
                if key in objects:
                    self.found.notes.append(
                        t(
                            f"{document.label} is defined twice; the later one counts ({document.source})",
                            f"{document.label} 定义了两次；以后一个为准（{document.source}）",
                        )
                    )
                objects[key] = (document, obj)
        self._sort_out(list(objects.values()))
        self.found.problems.sort(key=lambda p: (files.get(p.file, 0), p.document or 0))
        return self.found

    # --- text -> documents --------------------------------------------------------------------------------

    def _documents(self, name: str, text: str) -> list[Document]:
        try:
            return load_documents(text, name)
        except InputError as whole:
            if text.lstrip().startswith(("{", "[")):
                self.found.problems.append(whole)
                return []
        return self._one_by_one(name, text)

    def _one_by_one(self, name: str, text: str) -> list[Document]:
        """Each YAML document on its own, so that a malformed one costs only itself."""
        found: list[Document] = []
        starts = [0, *(m.start() for m in _MARKER.finditer(text))]
        number = 0
        for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
            part = text[start:end]
            if start == 0 and not _says_something(part):
                continue
            number += 1
            try:
                # Blank lines in front keep the line numbers of the file.
                documents = load_documents("\n" * text.count("\n", 0, start) + part, name)
            except InputError as e:
                self.found.problems.append(InputError(e.problem, file=name, document=number, hint=e.hint))
                continue
            found += [Document(d.raw, name, number) for d in documents]
        return found

    # --- documents -> objects -----------------------------------------------------------------------------

    def _object(self, document: Document) -> KubeObject | None:
        kind = document.raw.get("kind")
        if isinstance(kind, str) and kind not in KINDS:
            if kind in _BUILT_IN:
                self.found.ignored[kind] += 1
                return None
            self._problem(
                document,
                InputError(
                    t(f'kind "{kind}" is not a Kubernetes kind', f"“{kind}”不是 Kubernetes 的 kind"),
                    field="kind",
                    value=kind,
                    hint=_near(kind),
                ),
            )
            return None
        try:
            if not isinstance(kind, str):
                raise InputError(
                    t(f"kind must be text, got {kind!r}", f"kind 必须是文本，得到 {kind!r}"),
                    field="kind",
                    value=kind,
                    hint=t("write for example `kind: Pod`", "例如写 `kind: Pod`"),
                )
            raw = drop_nulls(document.raw)
            obj = from_dict(raw)
            if not obj.name and not obj.metadata.generate_name:
                raise InputError(
                    t("the object has no name", "对象没有名字"),
                    field="metadata.name",
                    hint=t("add metadata.name", "请添加 metadata.name"),
                )
        except InputError as e:
            self._problem(document, e)
            if kind == "Node" and isinstance(document.raw.get("metadata"), dict):
                self.broken_nodes.add(str(document.raw["metadata"].get("name")))
            return None
        return obj

    def _problem(self, document: Document, error: InputError) -> None:
        self.found.problems.append(
            error.located(file=document.source, document=document.number, object=document.label)
        )

    # --- objects -> cluster -------------------------------------------------------------------------------

    def _sort_out(self, objects: list[tuple[Document, KubeObject]]) -> None:
        found = self.found
        admission = Admission(o for _, o in objects)
        found.nodes = [o for _, o in objects if isinstance(o, Node)]
        names = {n.name for n in found.nodes}
        for document, obj in objects:
            if isinstance(obj, Node):
                continue
            if not isinstance(obj, Pod):
                kind = str(document.raw["kind"])
                found.objects.append((kind, admission.complete(kind, obj)))
                continue
            if obj.status.phase in _ENDED:
                continue
            try:
                pod = admission.admit(obj)
                node = pod.spec.node_name
                if node and node not in names:
                    if node in self.broken_nodes:
                        continue
                    raise InputError(
                        t(f'there is no node "{node}" in the input', f"输入中没有节点“{node}”"),
                        object=document.label,
                        field="spec.nodeName",
                        value=node,
                        hint=t(
                            "add the Node object, or remove spec.nodeName to let the scheduler choose",
                            "请添加这个 Node 对象，或删除 spec.nodeName 由调度器选择",
                        ),
                    )
            except InputError as e:
                self._problem(document, e)
                continue
            found.pods.append(pod)


def _says_something(part: str) -> bool:
    return any(line.strip() and not line.lstrip().startswith("#") for line in part.splitlines())


def _near(kind: str) -> str:
    import difflib

    near = difflib.get_close_matches(kind, [*KINDS, *sorted(_BUILT_IN)], n=1)
    if near:
        return t(f"did you mean {near[0]}?", f"是想写 {near[0]} 吗？")
    return t(
        "the scheduler does not look at it; remove it from the file",
        "调度器不会看它；请把它从文件中删除",
    )
