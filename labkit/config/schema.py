"""The Go types behind `kubescheduler.config.k8s.io/v1` (spec 03 §2 to §4), as data for the decoder."""

from __future__ import annotations

from labkit.config.gotypes import (
    Bool,
    Bytes,
    Float32,
    GoDuration,
    GoType,
    Int,
    Pointer,
    Raw,
    Slice,
    Struct,
    Text,
    TextMap,
)
from labkit.config.points import CONFIG_KEYS

GROUP = "kubescheduler.config.k8s.io"
VERSION = "v1"
API_VERSION = f"{GROUP}/{VERSION}"
CONFIG_KIND = "KubeSchedulerConfiguration"

_TEXT, _BOOL = Text(), Bool()
_INT32, _INT64 = Int(32), Int(64)
_DURATION = GoDuration()
_META: dict[str, GoType] = {"kind": _TEXT, "apiVersion": _TEXT}
_IN_META = dict.fromkeys(_META, "TypeMeta")

_LEADER_ELECTION = Struct(
    "LeaderElectionConfiguration",
    {
        "leaderElect": Pointer(_BOOL),
        "leaseDuration": _DURATION,
        "renewDeadline": _DURATION,
        "retryPeriod": _DURATION,
        "resourceLock": _TEXT,
        "resourceName": _TEXT,
        "resourceNamespace": _TEXT,
    },
    package="v1alpha1",
)
_CLIENT_CONNECTION = Struct(
    "ClientConnectionConfiguration",
    {
        "kubeconfig": _TEXT,
        "acceptContentTypes": _TEXT,
        "contentType": _TEXT,
        "qps": Float32(),
        "burst": _INT32,
    },
    package="v1alpha1",
)
_PLUGIN = Struct("Plugin", {"name": _TEXT, "weight": Pointer(_INT32)})
_PLUGIN_SET = Struct("PluginSet", {"enabled": Slice(_PLUGIN), "disabled": Slice(_PLUGIN)})
_PLUGINS = Struct("Plugins", dict.fromkeys(CONFIG_KEYS.values(), _PLUGIN_SET))
_PLUGIN_CONFIG = Struct("PluginConfig", {"name": _TEXT, "args": Raw()})
_PROFILE = Struct(
    "KubeSchedulerProfile",
    {
        "schedulerName": Pointer(_TEXT),
        "percentageOfNodesToScore": Pointer(_INT32),
        "plugins": Pointer(_PLUGINS),
        "pluginConfig": Slice(_PLUGIN_CONFIG),
    },
)
_TLS = Struct(
    "ExtenderTLSConfig",
    {
        "insecure": _BOOL,
        "serverName": _TEXT,
        "certFile": _TEXT,
        "keyFile": _TEXT,
        "caFile": _TEXT,
        "certData": Bytes(),
        "keyData": Bytes(),
        "caData": Bytes(),
    },
)
_EXTENDER = Struct(
    "Extender",
    {
        "urlPrefix": _TEXT,
        "filterVerb": _TEXT,
        "preemptVerb": _TEXT,
        "prioritizeVerb": _TEXT,
        "weight": _INT64,
        "bindVerb": _TEXT,
        "enableHTTPS": _BOOL,
        "tlsConfig": Pointer(_TLS),
        "httpTimeout": _DURATION,
        "nodeCacheCapable": _BOOL,
        "managedResources": Slice(
            Struct("ExtenderManagedResource", {"name": _TEXT, "ignoredByScheduler": _BOOL})
        ),
        "ignorable": _BOOL,
    },
)
CONFIGURATION = Struct(
    CONFIG_KIND,
    {
        **_META,
        "parallelism": Pointer(_INT32),
        "leaderElection": _LEADER_ELECTION,
        "clientConnection": _CLIENT_CONNECTION,
        "enableProfiling": Pointer(_BOOL),
        "enableContentionProfiling": Pointer(_BOOL),
        "percentageOfNodesToScore": Pointer(_INT32),
        "podInitialBackoffSeconds": Pointer(_INT64),
        "podMaxBackoffSeconds": Pointer(_INT64),
        "profiles": Slice(_PROFILE),
        "extenders": Slice(_EXTENDER),
        "delayCacheUntilActive": _BOOL,
    },
    inside=_IN_META
    | dict.fromkeys(("enableProfiling", "enableContentionProfiling"), "DebuggingConfiguration"),
)

# --- plugin args ------------------------------------------------------------------------------------

_SHAPE = Slice(Struct("UtilizationShapePoint", {"utilization": _INT32, "score": _INT32}))
_RESOURCES = Slice(Struct("ResourceSpec", {"name": _TEXT, "weight": _INT64}))
_NODE_REQUIREMENTS = Slice(
    Struct(
        "NodeSelectorRequirement",
        {"key": _TEXT, "operator": Text("v1.NodeSelectorOperator"), "values": Slice(_TEXT)},
        always=("key", "operator"),
    )
)
_NODE_TERM = Struct(
    "NodeSelectorTerm", {"matchExpressions": _NODE_REQUIREMENTS, "matchFields": _NODE_REQUIREMENTS}
)
NODE_AFFINITY = Struct(
    "NodeAffinity",
    {
        "requiredDuringSchedulingIgnoredDuringExecution": Pointer(
            Struct("NodeSelector", {"nodeSelectorTerms": Slice(_NODE_TERM)}, always=("nodeSelectorTerms",))
        ),
        "preferredDuringSchedulingIgnoredDuringExecution": Slice(
            Struct(
                "PreferredSchedulingTerm",
                {"weight": _INT32, "preference": _NODE_TERM},
                always=("weight", "preference"),
            )
        ),
    },
)
_LABEL_SELECTOR = Struct(
    "LabelSelector",
    {
        "matchLabels": TextMap(),
        "matchExpressions": Slice(
            Struct(
                "LabelSelectorRequirement",
                {"key": _TEXT, "operator": Text("v1.LabelSelectorOperator"), "values": Slice(_TEXT)},
                always=("key", "operator"),
            )
        ),
    },
)
SPREAD_CONSTRAINT = Struct(
    "TopologySpreadConstraint",
    {
        "maxSkew": _INT32,
        "topologyKey": _TEXT,
        "whenUnsatisfiable": Text("v1.UnsatisfiableConstraintAction"),
        "labelSelector": Pointer(_LABEL_SELECTOR),
        "minDomains": Pointer(_INT32),
        "nodeAffinityPolicy": Pointer(Text("v1.NodeInclusionPolicy")),
        "nodeTaintsPolicy": Pointer(Text("v1.NodeInclusionPolicy")),
        "matchLabelKeys": Slice(_TEXT),
    },
    always=("maxSkew", "topologyKey", "whenUnsatisfiable"),
)


def _args(kind: str, fields: dict[str, GoType]) -> Struct:
    return Struct(kind, {**_META, **fields}, inside=_IN_META)


_ARGS = (
    _args(
        "DefaultPreemptionArgs",
        {"minCandidateNodesPercentage": Pointer(_INT32), "minCandidateNodesAbsolute": Pointer(_INT32)},
    ),
    _args(
        "DynamicResourcesArgs", {"filterTimeout": Pointer(_DURATION), "bindingTimeout": Pointer(_DURATION)}
    ),
    _args(
        "InterPodAffinityArgs",
        {"hardPodAffinityWeight": Pointer(_INT32), "ignorePreferredTermsOfExistingPods": _BOOL},
    ),
    _args("NodeAffinityArgs", {"addedAffinity": Pointer(NODE_AFFINITY)}),
    _args("NodeResourcesBalancedAllocationArgs", {"resources": _RESOURCES}),
    _args(
        "NodeResourcesFitArgs",
        {
            "ignoredResources": Slice(_TEXT),
            "ignoredResourceGroups": Slice(_TEXT),
            "scoringStrategy": Pointer(
                Struct(
                    "ScoringStrategy",
                    {
                        "type": Text("v1.ScoringStrategyType"),
                        "resources": _RESOURCES,
                        "requestedToCapacityRatio": Pointer(
                            Struct("RequestedToCapacityRatioParam", {"shape": _SHAPE})
                        ),
                    },
                )
            ),
        },
    ),
    _args(
        "PodTopologySpreadArgs",
        {
            "defaultConstraints": Slice(SPREAD_CONSTRAINT),
            "defaultingType": Text("v1.PodTopologySpreadConstraintsDefaulting"),
        },
    ),
    _args("VolumeBindingArgs", {"bindTimeoutSeconds": Pointer(_INT64), "shape": _SHAPE}),
)
#: Every kind of the API group and version.
KINDS: dict[str, Struct] = {kind.short: kind for kind in (CONFIGURATION, *_ARGS)}
