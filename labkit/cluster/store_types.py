"""The resources that the store serves: names, scope, verbs, subresources (spec 20 §3.1, §4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from labkit.cluster.store_errors import Named
from labkit.cluster.store_schema import Struct, struct, type_of_kind

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_STATUS_VERBS = ("get", "patch", "update")


@dataclass(frozen=True)
class Subresource:
    """`pods/binding`: its verbs, and the kind of its bodies (group, version, kind)."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""


@dataclass(frozen=True, eq=False)
class ResourceType(Named):
    """One resource of the API. `create_only` ones (reviews, bindings) are answered, never stored."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    has_generation: bool = False
    create_on_update: bool = False

    @cached_property
    def api_version(self) -> str:
        """`v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def schema(self) -> Struct:
        """The shape of its objects."""
        name = type_of_kind(self.api_version, self.kind)
        assert name is not None, f"data/api-types.json lacks {self.api_version} {self.kind}"
        return struct(name)

    @cached_property
    def create_only(self) -> bool:
        """Whether its objects are only answered."""
        return "get" not in self.verbs

    @cached_property
    def has_status(self) -> bool:
        """Whether status is written through a subresource."""
        return any(s.name == "status" for s in self.subresources)

    def subresource(self, name: str) -> Subresource | None:
        """The subresource of that name."""
        return next((s for s in self.subresources if s.name == name), None)


def _status(kind: str) -> Subresource:
    return Subresource("status", kind, _STATUS_VERBS)


_SCALE = Subresource("scale", "Scale", _STATUS_VERBS, "autoscaling", "v1")


def _row(
    group: str,
    kind: str,
    plural: str,
    short: str = "",
    *,
    cluster: bool = False,
    status: bool = False,
    scale: bool = False,
    all: bool = False,
    generation: bool = False,
    more: tuple[Subresource, ...] = (),
    verbs: tuple[str, ...] = ALL_VERBS,
    version: str = "v1",
    create_on_update: bool = False,
) -> ResourceType:
    subresources = more + ((_SCALE,) if scale else ()) + ((_status(kind),) if status else ())
    return ResourceType(
        group,
        version,
        kind,
        plural,
        not cluster,
        kind.lower(),
        tuple(short.split()),
        ("all",) if all else (),
        tuple(sorted(subresources, key=lambda s: s.name)),
        verbs,
        generation,
        create_on_update,
    )


_CREATE = ("create",)
_POD_SUBRESOURCES = (
    Subresource("binding", "Binding", _CREATE),
    Subresource("ephemeralcontainers", "Pod", _STATUS_VERBS),
    Subresource("eviction", "Eviction", _CREATE, "policy", "v1"),
    Subresource("log", "Pod", ("get",)),
    Subresource("resize", "Pod", _STATUS_VERBS),
)
_NAMESPACE_VERBS = tuple(v for v in ALL_VERBS if v != "deletecollection")
_STORAGE, _RESOURCE, _NETWORKING, _RBAC = (
    "storage.k8s.io",
    "resource.k8s.io",
    "networking.k8s.io",
    "rbac.authorization.k8s.io",
)
_AUTHZ, _AUTHN = "authorization.k8s.io", "authentication.k8s.io"

RESOURCES: tuple[ResourceType, ...] = (
    _row("", "Binding", "bindings", verbs=_CREATE),
    _row("", "ConfigMap", "configmaps", "cm"),
    _row("", "Endpoints", "endpoints", "ep"),
    _row("", "Event", "events", "ev", create_on_update=True),
    _row("", "LimitRange", "limitranges", "limits"),
    _row(
        "",
        "Namespace",
        "namespaces",
        "ns",
        cluster=True,
        status=True,
        verbs=_NAMESPACE_VERBS,
        more=(Subresource("finalize", "Namespace", ("update",)),),
    ),
    _row("", "Node", "nodes", "no", cluster=True, status=True),
    _row("", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", status=True),
    _row("", "PersistentVolume", "persistentvolumes", "pv", cluster=True, status=True),
    _row("", "Pod", "pods", "po", status=True, all=True, generation=True, more=_POD_SUBRESOURCES),
    _row("", "PodTemplate", "podtemplates", generation=True),
    _row(
        "",
        "ReplicationController",
        "replicationcontrollers",
        "rc",
        status=True,
        scale=True,
        all=True,
        generation=True,
    ),
    _row("", "ResourceQuota", "resourcequotas", "quota", status=True),
    _row("", "Secret", "secrets"),
    _row(
        "",
        "ServiceAccount",
        "serviceaccounts",
        "sa",
        more=(Subresource("token", "TokenRequest", _CREATE, _AUTHN, "v1"),),
    ),
    _row("", "Service", "services", "svc", status=True, all=True),
    _row("apps", "ControllerRevision", "controllerrevisions"),
    _row("apps", "DaemonSet", "daemonsets", "ds", status=True, all=True, generation=True),
    _row("apps", "Deployment", "deployments", "deploy", status=True, scale=True, all=True, generation=True),
    _row("apps", "ReplicaSet", "replicasets", "rs", status=True, scale=True, all=True, generation=True),
    _row("apps", "StatefulSet", "statefulsets", "sts", status=True, scale=True, all=True, generation=True),
    _row("events.k8s.io", "Event", "events", "ev", create_on_update=True),
    _row(_AUTHN, "SelfSubjectReview", "selfsubjectreviews", cluster=True, verbs=_CREATE),
    _row(_AUTHN, "TokenReview", "tokenreviews", cluster=True, verbs=_CREATE),
    _row(_AUTHZ, "LocalSubjectAccessReview", "localsubjectaccessreviews", verbs=_CREATE),
    _row(_AUTHZ, "SelfSubjectAccessReview", "selfsubjectaccessreviews", cluster=True, verbs=_CREATE),
    _row(_AUTHZ, "SelfSubjectRulesReview", "selfsubjectrulesreviews", cluster=True, verbs=_CREATE),
    _row(_AUTHZ, "SubjectAccessReview", "subjectaccessreviews", cluster=True, verbs=_CREATE),
    _row(
        "autoscaling",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        "hpa",
        version="v2",
        status=True,
        all=True,
    ),
    _row("batch", "CronJob", "cronjobs", "cj", status=True, all=True, generation=True),
    _row("batch", "Job", "jobs", status=True, all=True, generation=True),
    _row(_NETWORKING, "IngressClass", "ingressclasses", cluster=True, generation=True),
    _row(_NETWORKING, "Ingress", "ingresses", "ing", status=True, generation=True),
    _row(_NETWORKING, "IPAddress", "ipaddresses", "ip", cluster=True),
    _row(_NETWORKING, "NetworkPolicy", "networkpolicies", "netpol", generation=True),
    _row(_NETWORKING, "ServiceCIDR", "servicecidrs", cluster=True, status=True),
    _row("policy", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", status=True, generation=True),
    _row(_RBAC, "ClusterRoleBinding", "clusterrolebindings", cluster=True),
    _row(_RBAC, "ClusterRole", "clusterroles", cluster=True),
    _row(_RBAC, "RoleBinding", "rolebindings"),
    _row(_RBAC, "Role", "roles"),
    _row(_STORAGE, "CSIDriver", "csidrivers", cluster=True),
    _row(_STORAGE, "CSINode", "csinodes", cluster=True),
    _row(_STORAGE, "CSIStorageCapacity", "csistoragecapacities"),
    _row(_STORAGE, "StorageClass", "storageclasses", "sc", cluster=True),
    _row(_STORAGE, "VolumeAttachment", "volumeattachments", cluster=True, status=True),
    _row(_STORAGE, "VolumeAttributesClass", "volumeattributesclasses", "vac", cluster=True),
    _row("scheduling.k8s.io", "PriorityClass", "priorityclasses", "pc", cluster=True, generation=True),
    _row("coordination.k8s.io", "Lease", "leases", create_on_update=True),
    _row("node.k8s.io", "RuntimeClass", "runtimeclasses", cluster=True),
    _row("discovery.k8s.io", "EndpointSlice", "endpointslices", generation=True),
    _row(_RESOURCE, "DeviceClass", "deviceclasses", cluster=True, generation=True),
    _row(_RESOURCE, "ResourceClaim", "resourceclaims", status=True),
    _row(_RESOURCE, "ResourceClaimTemplate", "resourceclaimtemplates"),
    _row(_RESOURCE, "ResourceSlice", "resourceslices", cluster=True, generation=True),
)

#: Stored like the others, but not announced in discovery: a server with default settings does not serve them.
OPTIONAL_RESOURCES: tuple[ResourceType, ...] = (
    _row("scheduling.k8s.io", "PodGroup", "podgroups", status=True, version="v1alpha2"),
    _row("scheduling.k8s.io", "Workload", "workloads", version="v1alpha2"),
    _row("scheduling.x-k8s.io", "PodGroup", "podgroups", "pg pgs", status=True, version="v1alpha1"),
)
#: The kind name under which the out-of-tree PodGroup is found; `PodGroup` alone is the native one.
COSCHEDULING_POD_GROUP = "PodGroup.scheduling.x-k8s.io"

#: (group, version) in the order of discovery.
GROUP_VERSIONS: tuple[tuple[str, str], ...] = tuple(dict.fromkeys((r.group, r.version) for r in RESOURCES))

_BY_PLURAL = {(r.group, r.version, r.plural): r for r in RESOURCES}
_BY_KIND = {(r.api_version, r.kind): r for r in (*RESOURCES, *OPTIONAL_RESOURCES)}
# The core Event comes first in the table and is the one that is stored.
_BY_NAME: dict[str, ResourceType] = {}
for _r in RESOURCES:
    _BY_NAME.setdefault(_r.kind, _r)
for _r in OPTIONAL_RESOURCES:
    _BY_NAME[f"{_r.kind}.{_r.group}" if _r.kind in _BY_NAME else _r.kind] = _r

POD, NODE, NAMESPACE, EVENT = (_BY_NAME[k] for k in ("Pod", "Node", "Namespace", "Event"))
PRIORITY_CLASS, RESOURCE_QUOTA, LIMIT_RANGE = (
    _BY_NAME[k] for k in ("PriorityClass", "ResourceQuota", "LimitRange")
)
PDB, RUNTIME_CLASS, LEASE = (_BY_NAME[k] for k in ("PodDisruptionBudget", "RuntimeClass", "Lease"))
EVENTS_V1 = _BY_KIND["events.k8s.io/v1", "Event"]


def by_plural(group: str, version: str, plural: str) -> ResourceType | None:
    """The resource of a URL."""
    return _BY_PLURAL.get((group, version, plural))


def by_kind(api_version: str, kind: str) -> ResourceType | None:
    """The resource of an object."""
    return _BY_KIND.get((api_version, kind))


def resource_type(kind: str | ResourceType, api_version: str | None = None) -> ResourceType:
    """The resource of a kind name; KeyError names kinds that are not served."""
    if isinstance(kind, ResourceType):
        return kind
    found = _BY_KIND.get((api_version, kind)) if api_version else _BY_NAME.get(kind)
    if found is None:
        wanted = f"{api_version} {kind}" if api_version else kind
        raise KeyError(f"no kind {wanted!r} in this API; kinds: {', '.join(sorted(_BY_NAME))}")
    return found


def stored_type(resource: ResourceType) -> ResourceType:
    """Where its objects lie: events of both groups are the same objects (spec 20 §8.8)."""
    return EVENT if resource is EVENTS_V1 else resource
