"""What the API server fills into a pod before the scheduler sees it, as far as scheduling reads it.

For pods that were never stored by an API server; a stored pod passes through unchanged.
Source: Kubernetes API defaulting and the Priority admission plugin.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from labkit.errors import InputError
from labkit.i18n import t
from labkit.objects.cluster import PriorityClass
from labkit.objects.meta import KubeObject, LabelSelector, LabelSelectorRequirement
from labkit.objects.pod import Container, Pod, PodAffinity, PodAffinityTerm, ResourceRequirements
from labkit.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

#: Priority classes that every cluster has.
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
#: Kinds that live in a namespace, as far as the scheduler reads them (pods apart).
NAMESPACED = frozenset(
    [
        "PersistentVolumeClaim",
        "PodDisruptionBudget",
        "Service",
        "ReplicationController",
        "ReplicaSet",
        "StatefulSet",
        "PodGroup",
        "CSIStorageCapacity",
    ]
)
DEFAULT_SCHEDULER = "default-scheduler"


class Admission:
    """Completes objects; among `objects` are the cluster's priority and storage classes."""

    def __init__(self, objects: Iterable[KubeObject] = ()) -> None:
        objects = list(objects)
        self._classes = {c.name: c for c in objects if isinstance(c, PriorityClass)}
        storage = [c for c in objects if isinstance(c, StorageClass) and _is_default(c)]
        storage.sort(key=lambda c: c.name)
        # The newest one wins, then the first by name.
        self._storage = max(storage, key=lambda c: c.metadata.creation_timestamp).name if storage else None
        defaults = [c for c in self._classes.values() if c.global_default]
        self._default = min(defaults, key=lambda c: (c.value, c.name)) if defaults else None
        self._uids: set[str] = set()
        self._generated = 0

    def admit(self, pod: Pod) -> Pod:
        """The pod with its defaults. InputError when its priority class does not exist."""
        meta = pod.metadata
        name, namespace = meta.name, meta.namespace or "default"
        if not name:
            self._generated += 1
            name = f"{meta.generate_name}{self._generated:05d}"
        uid = meta.uid
        if not uid or uid in self._uids:
            uid = f"pod-{namespace}-{name}"
        self._uids.add(uid)
        priority, policy = self._priority(pod)
        spec = pod.spec
        host = spec.host_network
        return replace(
            pod,
            metadata=replace(meta, name=name, namespace=namespace, uid=uid),
            spec=replace(
                spec,
                scheduler_name=spec.scheduler_name or DEFAULT_SCHEDULER,
                priority=priority,
                preemption_policy=policy,
                containers=[_container(c, host) for c in spec.containers],
                init_containers=[_container(c, host) for c in spec.init_containers],
                resources=_requests_from_limits(spec.resources) if spec.resources else None,
                affinity=_affinity(pod),
            ),
        )

    def complete(self, kind: str, obj: KubeObject) -> KubeObject:
        """Any other object with the namespace it is created in, the default storage class of a new claim, and the phase
        that a controller gives a new volume."""
        if kind in NAMESPACED and not obj.namespace:
            obj = replace(obj, metadata=replace(obj.metadata, namespace="default"))
        if isinstance(obj, PersistentVolume) and not obj.status.phase:
            phase = "Bound" if obj.spec.claim_ref is not None and obj.spec.claim_ref.uid else "Available"
            obj = replace(obj, status=replace(obj.status, phase=phase))
        if isinstance(obj, PersistentVolumeClaim) and not obj.uid and obj.spec.storage_class_name is None:
            obj = replace(obj, spec=replace(obj.spec, storage_class_name=self._storage))
        return obj

    def _priority(self, pod: Pod) -> tuple[int, str | None]:
        spec = pod.spec
        if spec.priority is not None:
            return spec.priority, spec.preemption_policy
        name = spec.priority_class_name
        if name in SYSTEM_CLASSES and name not in self._classes:
            return SYSTEM_CLASSES[name], spec.preemption_policy
        found = self._classes.get(name) if name else self._default
        if found is None and name:
            raise InputError(
                t(
                    f'no PriorityClass with name "{name}" was found',
                    f"找不到名为“{name}”的 PriorityClass",
                ),
                object=f"Pod {pod.key}",
                field="spec.priorityClassName",
                value=name,
                hint=t("add the PriorityClass to the input", "请把这个 PriorityClass 加到输入中"),
            )
        if found is None:
            return 0, spec.preemption_policy
        return found.value, spec.preemption_policy or found.preemption_policy


def _is_default(storage_class: StorageClass) -> bool:
    return storage_class.metadata.annotations.get("storageclass.kubernetes.io/is-default-class") == "true"


def _container(container: Container, host_network: bool) -> Container:
    ports = container.ports
    if host_network:
        ports = [p if p.host_port else replace(p, host_port=p.container_port) for p in ports]
    return replace(container, resources=_requests_from_limits(container.resources), ports=ports)


def _requests_from_limits(resources: ResourceRequirements) -> ResourceRequirements:
    if not resources.limits:
        return resources
    return replace(resources, requests={**resources.limits, **resources.requests})


def _affinity(pod: Pod) -> Any:
    affinity = pod.spec.affinity
    if affinity is None or pod.metadata.uid:
        # A pod with a UID was stored: its keys are merged into the selectors already.
        return affinity
    return replace(
        affinity,
        pod_affinity=_merged(affinity.pod_affinity, pod),
        pod_anti_affinity=_merged(affinity.pod_anti_affinity, pod),
    )


def _merged(terms: PodAffinity | None, pod: Pod) -> PodAffinity | None:
    if terms is None:
        return None
    return replace(
        terms,
        required_during_scheduling_ignored_during_execution=[
            _merge_keys(term, pod) for term in terms.required_during_scheduling_ignored_during_execution
        ],
        preferred_during_scheduling_ignored_during_execution=[
            replace(weighted, pod_affinity_term=_merge_keys(weighted.pod_affinity_term, pod))
            for weighted in terms.preferred_during_scheduling_ignored_during_execution
        ],
    )


def _merge_keys(term: PodAffinityTerm, pod: Pod) -> PodAffinityTerm:
    """`matchLabelKeys` and `mismatchLabelKeys` become requirements of the selector, with the pod's own values."""
    if term.label_selector is None:
        return term
    labels = pod.metadata.labels
    more = [
        LabelSelectorRequirement(key=key, operator=operator, values=[labels[key]])
        for keys, operator in ((term.match_label_keys, "In"), (term.mismatch_label_keys, "NotIn"))
        for key in keys
        if key in labels
    ]
    if not more:
        return term
    selector = term.label_selector
    return replace(
        term,
        label_selector=LabelSelector(
            match_labels=selector.match_labels, match_expressions=[*selector.match_expressions, *more]
        ),
    )
