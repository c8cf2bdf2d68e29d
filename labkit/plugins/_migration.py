"""Volumes whose in-tree plugin was migrated to a CSI driver: node affinity and handle (spec 14 §3.3, §4.4).

Where a node's kubelet says that it serves an in-tree plugin through the plugin's CSI driver, the scheduler looks at
the volume as that driver would describe it: the zone is then a label of the driver's own, not the cluster's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from labkit.objects.pod import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from labkit.objects.storage import CSINode, PersistentVolume, VolumeNodeAffinity

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"

_ZONE = "topology.kubernetes.io/zone"
_REGION = "topology.kubernetes.io/region"
_BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
_BETA_REGION = "failure-domain.beta.kubernetes.io/region"

#: In-tree volume type -> (in-tree plugin, the zone label of the driver that took over, if it has one). Portworx
#: volumes are translated as well, which always works and leaves their node affinity as it is.
_DRIVER_ZONE: dict[str, tuple[str, str | None]] = {
    "azure_disk": ("kubernetes.io/azure-disk", None),
    "aws_elastic_block_store": ("kubernetes.io/aws-ebs", "topology.ebs.csi.aws.com/zone"),
    "gce_persistent_disk": ("kubernetes.io/gce-pd", "topology.gke.io/zone"),
    "cinder": ("kubernetes.io/cinder", "topology.cinder.csi.openstack.org/zone"),
}


class TranslationError(Exception):
    """The volume cannot be described as the driver's."""


def as_seen_by(volume: PersistentVolume, csi_node: CSINode | None) -> PersistentVolume:
    """`volume` with the node affinity that counts on the node of `csi_node`; TranslationError when there is none."""
    for field, (plugin, driver_zone) in _DRIVER_ZONE.items():
        details = getattr(volume.spec, field)
        if details is not None:
            migrated = csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "") if csi_node is not None else ""
            if plugin not in migrated.split(","):
                return volume
            csi_handle(field, details, volume.labels)
            return _translated(volume, driver_zone) if driver_zone is not None else volume
    return volume


def csi_handle(field: str, details: dict[str, Any], labels: Mapping[str, str]) -> str:
    """The driver's handle for an in-tree volume of type `field`; TranslationError when it cannot be told.

    `labels` are the PersistentVolume's, none for a volume written into a pod.
    """
    if field == "gce_persistent_disk":
        return f"projects/UNSPECIFIED/{_place(labels)}/disks/{details.get('pdName', '')}"
    if field == "azure_disk":
        kind = details.get("kind")
        if kind is not None and str(kind).lower() != "managed":
            raise TranslationError(f"kind({kind}) is not supported in csi migration")
        return str(details.get("diskURI", ""))
    volume_id = str(details.get("volumeID", ""))
    if field == "aws_elastic_block_store" and volume_id.startswith("aws://"):
        path = volume_id.removeprefix("aws://").partition("/")[2].strip("/")
        if not path.startswith("vol-") or "/" in path:
            raise TranslationError(
                f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({volume_id})"
            )
        return path
    return volume_id


def _place(labels: Mapping[str, str]) -> str:
    zones = (labels.get(_BETA_ZONE) or labels.get(_ZONE, "")).split("__")
    return f"regions/{_region_of(zones)}" if len(zones) > 1 else f"zones/{zones[0] or 'UNSPECIFIED'}"


def _region_of(zones: list[str]) -> str:
    regions = set()
    for zone in zones:
        pieces = zone.split("-")
        if len(pieces) != 3:
            raise TranslationError(
                "failed to get region from zones: zone in unexpected format, expected: {locale}-{region}-{zone}, "
                f"got: {zone}"
            )
        regions.add("-".join(pieces[:2]))
    if len(regions) != 1:
        got = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise TranslationError(
            f"failed to get region from zones: multiple or no regions gotten from zones, got: map[{got}]"
        )
    return regions.pop()


def _translated(volume: PersistentVolume, driver_zone: str) -> PersistentVolume:
    affinity = volume.spec.node_affinity
    terms = list(affinity.required.node_selector_terms) if affinity and affinity.required else []
    zone, region = _labels_in_use(volume, terms)
    renamed = {}
    if any(r.values for r in _requirements(terms, zone)):
        renamed[zone] = driver_zone
    elif zone in volume.labels:
        zones = sorted({z.strip() for z in volume.labels[zone].split("__")} - {""})
        if zones:
            here = NodeSelectorRequirement(key=driver_zone, operator="In", values=zones)
            terms = [
                msgspec.structs.replace(t, match_expressions=[*t.match_expressions, here])
                for t in terms or [NodeSelectorTerm()]
            ]
    if region == _BETA_REGION and any(r.values for r in _requirements(terms, region)):
        renamed[region] = _REGION
    terms = [
        msgspec.structs.replace(
            t,
            match_expressions=[
                msgspec.structs.replace(r, key=renamed.get(r.key, r.key)) for r in t.match_expressions
            ],
        )
        for t in terms
    ]
    if not terms:
        return volume
    required = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))
    return msgspec.structs.replace(volume, spec=msgspec.structs.replace(volume.spec, node_affinity=required))


def _requirements(terms: list[NodeSelectorTerm], key: str) -> Iterator[NodeSelectorRequirement]:
    return (r for t in terms for r in t.match_expressions if r.key == key)


def _labels_in_use(volume: PersistentVolume, terms: list[NodeSelectorTerm]) -> tuple[str, str]:
    """(zone label, region label): the affinity decides between today's and the beta ones, then the volume's labels."""
    today, beta = (_ZONE, _REGION), (_BETA_ZONE, _BETA_REGION)
    for pair in (today, beta):
        if any(True for _ in _requirements(terms, pair[0])):
            return pair
    return beta if _ZONE not in volume.labels and _BETA_ZONE in volume.labels else today
