"""VolumeBinding (spec 14 §4)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from labkit.framework.clock import RealClock
from labkit.framework.cycle_state import CycleState, MissingStateError
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint
from labkit.framework.handle import Handle
from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import Plugin
from labkit.framework.results import PreBindPreFlightResult
from labkit.framework.status import Status
from labkit.objects.pod import Pod
from labkit.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from labkit.plugins._volume_binder import AssumeCache, BinderError, PodVolumes, check_node
from labkit.plugins._volume_hints import (
    capacity_rose,
    claim_of_pod,
    csi_node_changed,
    driver_changed,
    topologies_changed,
)
from labkit.plugins._volumes import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    claim_volumes,
    class_of_claim,
    class_of_volume,
    is_fully_bound,
    not_found,
    ownership_problem,
    volume_fits_node,
)

_KEY = "VolumeBinding"
_DEFAULT_TIMEOUT = 600.0
_AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
_NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
_NO_STORAGE = "node(s) did not have enough free storage"
_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
_UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


_T = TypeVar("_T")


class _State:
    """Shared by clones, as in the reference: a dry run sees the same claims."""

    __slots__ = ("all_bound", "bound", "by_node", "delayed", "reserved", "volumes_by_class")

    def __init__(self) -> None:
        self.bound: list[PersistentVolumeClaim] = []
        self.delayed: list[PersistentVolumeClaim] = []
        self.volumes_by_class: dict[str, list[PersistentVolume]] = {}
        self.by_node: dict[str, PodVolumes] = {}
        self.all_bound = False
        self.reserved: PodVolumes | None = None


class VolumeBinding(Plugin):
    """Finds nodes where the pod's claims are, or can be, bound; binds them before the pod."""

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        raw = (
            args.get("bindTimeoutSeconds")
            if isinstance(args, dict)
            else getattr(args, "bind_timeout_seconds", None)
        )
        self._timeout = _DEFAULT_TIMEOUT if raw is None else float(raw)
        self._cache: AssumeCache | None = None

    @property
    def cache(self) -> AssumeCache:
        """Volumes and claims with this scheduler's own decisions."""
        if self._cache is None:
            assert self.handle is not None
            self._cache = AssumeCache(self.handle.objects)
        return self._cache

    # --- filtering ----------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Sort the claims into bound, to be bound with the pod, and hopeless. Skip without claims."""
        claims: list[PersistentVolumeClaim] = []
        for volume, name in claim_volumes(pod):
            claim = self.cache.claim(pod.namespace, name)
            if claim is None:
                text = not_found("persistentvolumeclaim", name)
                if volume.ephemeral is not None:
                    text = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
                return Status.unresolvable(text)
            if claim.status.phase == "Lost":
                return Status.unresolvable(
                    f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
                )
            if claim.metadata.deletion_timestamp:
                return Status.unresolvable(f'persistentvolumeclaim "{name}" is being deleted')
            if volume.ephemeral is not None and (problem := ownership_problem(pod, claim)):
                return Status.unresolvable(problem)
            claims.append(claim)
        if not claims:
            # Reserve runs for every pod and looks for the state.
            state.write(_KEY, _State())
            return Status.skip()
        return self._classify(state, claims)

    def _classify(self, state: CycleState, claims: Sequence[PersistentVolumeClaim]) -> Status | None:
        assert self.handle is not None
        found = _State()
        immediate = False
        for claim in claims:
            if is_fully_bound(claim):
                found.bound.append(claim)
                continue
            name = class_of_claim(claim)
            storage_class: StorageClass | None = (
                self.handle.objects.get("StorageClass", "", name) if name else None
            )
            if storage_class is not None and storage_class.volume_binding_mode is None:
                return Status.as_error_of(f'VolumeBindingMode not set for StorageClass "{name}"')
            waits = storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
            if waits and not claim.spec.volume_name:
                found.delayed.append(claim)
            else:
                immediate = True
        if immediate:
            return Status.unresolvable(_UNBOUND_IMMEDIATE)
        wanted = {class_of_claim(c) for c in found.delayed}
        if wanted:
            for volume in self.cache.volumes():
                name = class_of_volume(volume)
                if name in wanted:
                    found.volumes_by_class.setdefault(name, []).append(volume)
        state.write(_KEY, found)
        return None

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """All reasons at once; preemption cannot help."""
        found: _State | None = state.get(_KEY)
        if found is None:
            raise MissingStateError("not found")
        try:
            verdict = check_node(self.cache, node.node, found.bound, found.delayed, found.volumes_by_class)
        except BinderError as e:
            return Status.as_error_of(e)
        reasons = [
            text
            for ok, text in (
                (verdict.bound_ok, _AFFINITY),
                (verdict.unbound_ok, _NO_VOLUME),
                (verdict.storage_ok, _NO_STORAGE),
                (verdict.volume_found, _GONE),
            )
            if not ok
        ]
        if reasons:
            return Status.unresolvable(*reasons, plugin=self.name)
        found.by_node[node.name] = verdict.volumes
        return None

    # --- scoring: switched off unless StorageCapacityScoring is on ------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skip: scoring by storage capacity is an alpha feature that is off."""
        return Status.skip()

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """0 where PreScore is disabled in a profile."""
        return 0

    # --- booking and binding --------------------------------------------------------------------------------

    def decided_volumes(self, state: CycleState, node_name: str) -> PodVolumes:
        """What binding the pod to `node_name` would bind and provision."""
        found: _State | None = state.get(_KEY)
        return found.by_node.get(node_name, PodVolumes()) if found is not None else PodVolumes()

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Assume the bindings, so that no other pod takes the same volume."""
        found: _State | None = state.get(_KEY)
        if found is None:
            raise MissingStateError("not found")
        if not found.delayed:
            found.all_bound = True
            return None
        found.reserved = self.cache.assume(found.by_node.get(node_name, PodVolumes()), node_name)
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Forget the assumed bindings."""
        found: _State | None = state.get(_KEY)
        if found is not None and found.reserved is not None:
            self.cache.restore(found.reserved)
            found.reserved = None

    def pre_bind_pre_flight(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> tuple[PreBindPreFlightResult | None, Status | None]:
        """Skip when every claim is bound already."""
        found: _State | None = state.get(_KEY)
        if found is None or found.all_bound or found.reserved is None:
            return None, Status.skip()
        return PreBindPreFlightResult(allow_parallel=True), None

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Write the bindings, then wait until the volume controller has completed them."""
        found: _State | None = state.get(_KEY)
        if found is None or found.reserved is None:
            return None
        try:
            self._write(found.reserved, node_name)
            self._wait(pod, found.reserved, node_name)
        except Exception as e:
            return Status.as_error_of(f"binding volumes: {e}")
        return None

    def _write(self, volumes: PodVolumes, node_name: str) -> None:
        assert self.handle is not None
        client = self.handle.client
        for claim, volume in volumes.static:
            patch: dict[str, Any] = {"spec": {"claimRef": msgspec.to_builtins(volume.spec.claim_ref)}}
            if BOUND_BY_CONTROLLER in volume.metadata.annotations:
                patch["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
            client.patch("PersistentVolume", volume.name, None, patch)
            del claim
        for claim in volumes.provision:
            patch = {"metadata": {"annotations": {SELECTED_NODE: node_name}}}
            client.patch("PersistentVolumeClaim", claim.name, claim.namespace, patch)

    def _wait(self, pod: Pod, volumes: PodVolumes, node_name: str) -> None:
        assert self.handle is not None
        deadline = self.handle.clock.now() + self._timeout
        pause = 0.05
        while not self._bound(volumes, node_name):
            if self.handle.clock.now() >= deadline or not isinstance(self.handle.clock, RealClock):
                # Virtual time does not pass inside a call: controllers of the lab bind at once or not at all.
                raise BinderError("context deadline exceeded")
            time.sleep(pause)
            pause = min(1.0, 2 * pause)

    def _bound(self, volumes: PodVolumes, node_name: str) -> bool:
        assert self.handle is not None
        node = self.handle.snapshot.by_name.get(node_name)
        if node is None:
            raise BinderError(f'failed to get node "{node_name}": node "{node_name}" not found')
        claims = [c for c, _ in volumes.static] + volumes.provision
        for claim in claims:
            now = self._read("PersistentVolumeClaim", PersistentVolumeClaim, claim.name, claim.namespace)
            if now is None:
                raise BinderError(not_found("persistentvolumeclaim", claim.name))
            if claim in volumes.provision:
                self._still_selected(now, node_name)
            if not is_fully_bound(now):
                return False
            volume = self._read("PersistentVolume", PersistentVolume, now.spec.volume_name or "", None)
            if volume is None:
                return False
            if not volume_fits_node(volume, node.node):
                raise BinderError(
                    f'pv "{volume.name}" node affinity doesn\'t match node "{node_name}": no matching NodeSelectorTerms'
                )
        return True

    def _read(self, kind: str, cls: type[_T], name: str, namespace: str | None) -> _T | None:
        # From the API: while this call waits, no news reach the informer.
        assert self.handle is not None
        try:
            raw = self.handle.client.get(kind, name, namespace)
        except Exception as e:
            if getattr(e, "code", None) == 404:
                return None
            raise
        return msgspec.convert(raw, cls)

    @staticmethod
    def _still_selected(claim: PersistentVolumeClaim, node_name: str) -> None:
        if claim.spec.volume_name:
            return
        if not claim.metadata.annotations:
            raise BinderError(f'selectedNode annotation reset for PVC "{claim.name}"')
        if claim.metadata.annotations.get(SELECTED_NODE) != node_name:
            raise BinderError(f'provisioning failed for PVC "{claim.name}"')

    # --- events ---------------------------------------------------------------------------------------------

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Classes, claims, volumes, nodes, drivers and capacities that come or change."""
        changed = ActionType.ADD | ActionType.UPDATE
        node = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        return [
            ClusterEventWithHint(ClusterEvent("storage.k8s.io/StorageClass", changed), topologies_changed),
            ClusterEventWithHint(ClusterEvent("PersistentVolumeClaim", changed), claim_of_pod),
            ClusterEventWithHint(ClusterEvent("PersistentVolume", changed)),
            ClusterEventWithHint(ClusterEvent("Node", node)),
            ClusterEventWithHint(ClusterEvent("storage.k8s.io/CSINode", changed), csi_node_changed),
            ClusterEventWithHint(ClusterEvent("storage.k8s.io/CSIDriver", ActionType.UPDATE), driver_changed),
            ClusterEventWithHint(ClusterEvent("storage.k8s.io/CSIStorageCapacity", changed), capacity_rose),
        ]
