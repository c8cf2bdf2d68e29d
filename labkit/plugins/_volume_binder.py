"""Matching claims with volumes or provisioning for one node, and assuming the result (spec 14 §4.3 - §4.7)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from labkit.framework.handle import ObjectLister
from labkit.objects.node import Node
from labkit.objects.quantity import value_of
from labkit.objects.selectors import SelectorError, compile_label_selector
from labkit.objects.storage import (
    CSINode,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from labkit.plugins._migration import TranslationError, as_seen_by
from labkit.plugins._volumes import (
    BOUND_BY_CONTROLLER,
    NO_PROVISIONER,
    SELECTED_NODE,
    class_of_claim,
    class_of_volume,
    is_bound_to,
    volume_fits_node,
)


class BinderError(Exception):
    """Something in the cluster does not add up; ends the attempt as an error."""


@dataclass
class PodVolumes:
    """What binding on one node means: (claim, volume) pairs, and claims to provision."""

    static: list[tuple[PersistentVolumeClaim, PersistentVolume]] = field(default_factory=list)
    provision: list[PersistentVolumeClaim] = field(default_factory=list)


@dataclass
class Verdict:
    """The reasons of one node; `volumes` when there is none."""

    bound_ok: bool = True
    unbound_ok: bool = True
    storage_ok: bool = True
    volume_found: bool = True
    volumes: PodVolumes = field(default_factory=PodVolumes)


class AssumeCache:
    """Volumes and claims as the cluster has them, overlaid with what this scheduler has decided."""

    def __init__(self, objects: ObjectLister) -> None:
        self.objects = objects
        self._volumes: dict[str, PersistentVolume] = {}
        self._claims: dict[str, PersistentVolumeClaim] = {}

    def volume(self, name: str) -> PersistentVolume | None:
        """The volume, overlay first; a newer object in the cluster drops the overlay."""
        known: PersistentVolume | None = self.objects.get("PersistentVolume", "", name)
        overlay = self._volumes.get(name)
        if overlay is None or known is None:
            return known
        if overlay.metadata.resource_version != known.metadata.resource_version:
            del self._volumes[name]
            return known
        return overlay

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """The claim, overlay first."""
        known: PersistentVolumeClaim | None = self.objects.get("PersistentVolumeClaim", namespace, name)
        overlay = self._claims.get(f"{namespace}/{name}")
        if overlay is None or known is None:
            return known
        if overlay.metadata.resource_version != known.metadata.resource_version:
            del self._claims[f"{namespace}/{name}"]
            return known
        return overlay

    def volumes(self) -> Iterable[PersistentVolume]:
        """All volumes, overlays included, in order of addition."""
        for volume in self.objects.list("PersistentVolume"):
            found = self.volume(volume.name)
            if found is not None:
                yield found

    def assume(self, volumes: PodVolumes, node_name: str) -> PodVolumes:
        """Overlay the decisions for `node_name`; returns the changed objects."""
        changed = PodVolumes()
        for claim, volume in volumes.static:
            assumed = bound_volume(volume, claim)
            self._volumes[volume.name] = assumed
            changed.static.append((claim, assumed))
        for claim in volumes.provision:
            selected = _annotated_claim(claim, SELECTED_NODE, node_name)
            self._claims[claim.key] = selected
            changed.provision.append(selected)
        return changed

    def restore(self, volumes: PodVolumes) -> None:
        """Drop the overlays of `volumes`."""
        for _, volume in volumes.static:
            self._volumes.pop(volume.name, None)
        for claim in volumes.provision:
            self._claims.pop(claim.key, None)


def bound_volume(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """`volume` with its claimRef pointing at `claim`."""
    annotations = dict(volume.metadata.annotations)
    if not is_bound_to(volume, claim):
        annotations[BOUND_BY_CONTROLLER] = "yes"
    reference = ObjectReference(
        kind="PersistentVolumeClaim",
        api_version="v1",
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.uid,
        resource_version=claim.metadata.resource_version,
    )
    return msgspec.structs.replace(
        volume,
        metadata=msgspec.structs.replace(volume.metadata, annotations=annotations),
        spec=msgspec.structs.replace(volume.spec, claim_ref=reference),
    )


def _annotated_claim(claim: PersistentVolumeClaim, key: str, value: str) -> PersistentVolumeClaim:
    annotations = {**claim.metadata.annotations, key: value}
    return msgspec.structs.replace(
        claim, metadata=msgspec.structs.replace(claim.metadata, annotations=annotations)
    )


def check_node(
    cache: AssumeCache,
    node: Node,
    bound: Sequence[PersistentVolumeClaim],
    delayed: Sequence[PersistentVolumeClaim],
    volumes_by_class: dict[str, list[PersistentVolume]],
) -> Verdict:
    """What `node` can offer to the pod's claims. BinderError ends the attempt."""
    verdict = Verdict()
    csi_node: CSINode | None = cache.objects.get("CSINode", "", node.name) if bound else None
    for claim in bound:
        volume = cache.volume(claim.spec.volume_name)
        if volume is None:
            verdict.volume_found = False
            break
        try:
            volume = as_seen_by(volume, csi_node)
        except TranslationError as e:
            raise BinderError(f"could not translate pv: {e}") from e
        if not volume_fits_node(volume, node):
            verdict.bound_ok = False
            break
    to_match: list[PersistentVolumeClaim] = []
    to_provision: list[PersistentVolumeClaim] = []
    for claim in delayed:
        selected = claim.metadata.annotations.get(SELECTED_NODE)
        if selected is None:
            to_match.append(claim)
        elif selected == node.name:
            to_provision.append(claim)
        else:
            verdict.unbound_ok = False
            return verdict
    taken: set[str] = set()
    for claim in sorted(to_match, key=requested_storage):
        found = find_volume(claim, volumes_by_class.get(class_of_claim(claim), ()), node, taken)
        if found is None:
            verdict.unbound_ok = False
            to_provision.append(claim)
        else:
            taken.add(found.name)
            verdict.volumes.static.append((claim, found))
    if to_provision:
        verdict.unbound_ok, verdict.storage_ok = check_provisioning(cache.objects, to_provision, node)
        verdict.volumes.provision = to_provision
    return verdict


def requested_storage(claim: PersistentVolumeClaim) -> int:
    """Requested bytes; 0 when absent."""
    return value_of(claim.spec.resources.requests.get("storage", 0))


def _capacity(volume: PersistentVolume) -> int:
    return value_of(volume.spec.capacity.get("storage", 0))


def find_volume(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume], node: Node, taken: set[str]
) -> PersistentVolume | None:
    """The smallest suitable volume, or the one that is bound to the claim in advance."""
    requested = requested_storage(claim)
    mode = claim.spec.volume_mode or "Filesystem"
    attributes = claim.spec.volume_attributes_class_name or ""
    try:
        selector = compile_label_selector(claim.spec.selector) if claim.spec.selector is not None else None
    except SelectorError as e:
        raise BinderError(f"error creating internal label selector for claim: {claim.key}: {e}") from e
    best: PersistentVolume | None = None
    for volume in volumes:
        if volume.name in taken:
            continue
        if volume.spec.claim_ref is not None and not is_bound_to(volume, claim):
            continue
        if _capacity(volume) < requested or (volume.spec.volume_mode or "Filesystem") != mode:
            continue
        if (volume.spec.volume_attributes_class_name or "") != attributes:
            continue
        if volume.metadata.deletion_timestamp:
            continue
        fits = volume_fits_node(volume, node)
        if is_bound_to(volume, claim):
            return volume if fits else None
        if volume.status.phase != "Available" or not fits:
            continue
        if selector is not None and not selector.matches(volume.labels):
            continue
        if class_of_volume(volume) != class_of_claim(claim):
            continue
        if not set(claim.spec.access_modes) <= set(volume.spec.access_modes):
            continue
        if best is None or _capacity(volume) < _capacity(best):
            best = volume
    return best


def check_provisioning(
    objects: ObjectLister, claims: Sequence[PersistentVolumeClaim], node: Node
) -> tuple[bool, bool]:
    """(unbound claims satisfied, enough storage) when `claims` are to be provisioned for `node`."""
    for claim in claims:
        class_name = class_of_claim(claim)
        if not class_name:
            raise BinderError(f'no class for claim "{claim.key}"')
        storage_class: StorageClass | None = objects.get("StorageClass", "", class_name)
        if storage_class is None:
            raise BinderError(f'failed to find storage class "{class_name}"')
        if storage_class.provisioner in ("", NO_PROVISIONER) or not _topology_allows(storage_class, node):
            return False, True
        if not _enough_capacity(objects, storage_class, claim, node):
            return True, False
    return True, True


def _topology_allows(storage_class: StorageClass, node: Node) -> bool:
    terms = storage_class.allowed_topologies
    if not terms:
        return True
    return any(
        bool(term.match_label_expressions)
        and all(node.labels.get(e.key) in e.values for e in term.match_label_expressions)
        for term in terms
    )


def _enough_capacity(
    objects: ObjectLister, storage_class: StorageClass, claim: PersistentVolumeClaim, node: Node
) -> bool:
    if "storage" not in claim.spec.resources.requests:
        return True
    driver = objects.get("CSIDriver", "", storage_class.provisioner)
    if driver is None or not driver.spec.storage_capacity:
        return True
    requested = requested_storage(claim)
    for capacity in objects.list("CSIStorageCapacity"):
        limit = (
            capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
        )
        if capacity.storage_class_name != storage_class.name or limit is None or value_of(limit) < requested:
            continue
        try:
            reaches = compile_label_selector(capacity.node_topology).matches(node.labels)
        except SelectorError:
            continue
        if reaches:
            return True
    return False
