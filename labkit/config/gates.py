"""Feature gates that matter to scheduling in Kubernetes 1.36, and `--feature-gates` (spec 01 §14, 03 §10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from labkit.errors import InputError

_ON = """DRAAdminAccess DRAConsumableCapacity DRADeviceBindingConditions DRADeviceTaints DRAExtendedResource
DRAPartitionableDevices DRAPrioritizedList DRAResourceClaimDeviceStatus DRASchedulerFilterTimeout
DynamicResourceAllocation ClearingNominatedNodeNameAfterBinding InPlacePodLevelResourcesVerticalScaling
InPlacePodVerticalScaling MatchLabelKeysInPodTopologySpread
MatchLabelKeysInPodTopologySpreadSelectorMerge MatchLabelKeysInPodAffinity NodeDeclaredFeatures
NodeInclusionPolicyInPodTopologySpread NominatedNodeNameForExpectation OpportunisticBatching PodLevelResources
PodSchedulingReadiness SchedulerAsyncPreemption SchedulerPopFromBackoffQ SchedulerQueueingHints SidecarContainers
VolumeAttributesClass"""
_OFF = """DRADeviceTaintRules DRAListTypeAttributes DRANodeAllocatableResources DRAWorkloadResourceClaims
GangScheduling GenericWorkload SchedulerAsyncAPICalls StorageCapacityScoring TaintTolerationComparisonOperators
TopologyAwareWorkloadScheduling VolumeLimitScaling WorkloadAwarePreemption"""
_ALPHA = frozenset(_OFF.split()) - {"DRADeviceTaintRules", "SchedulerAsyncAPICalls"}
_LOCKED = frozenset(
    [
        "DRAAdminAccess",
        "DynamicResourceAllocation",
        "InPlacePodVerticalScaling",
        "MatchLabelKeysInPodAffinity",
        "NodeInclusionPolicyInPodTopologySpread",
        "PodSchedulingReadiness",
        "SchedulerQueueingHints",
        "SidecarContainers",
        "VolumeAttributesClass",
    ]
)
_GA_UNLOCKED = frozenset(["DRAPrioritizedList"])
_NEEDS: dict[str, tuple[str, ...]] = {
    "DRADeviceBindingConditions": ("DRAResourceClaimDeviceStatus",),
    "DRADeviceTaintRules": ("DRADeviceTaints",),
    "DRAWorkloadResourceClaims": ("GenericWorkload",),
    "GangScheduling": ("GenericWorkload",),
    "InPlacePodLevelResourcesVerticalScaling": ("NodeDeclaredFeatures", "PodLevelResources"),
    "MatchLabelKeysInPodTopologySpreadSelectorMerge": ("MatchLabelKeysInPodTopologySpread",),
    "TopologyAwareWorkloadScheduling": ("GenericWorkload",),
    "WorkloadAwarePreemption": ("GangScheduling",),
}
#: Gate -> is it on unless said otherwise?
DEFAULT_GATES: dict[str, bool] = dict.fromkeys(_ON.split(), True) | dict.fromkeys(_OFF.split(), False)
_GROUPS = ("AllAlpha", "AllBeta")
_TRUE = frozenset(["1", "t", "T", "true", "TRUE", "True"])
_FALSE = frozenset(["0", "f", "F", "false", "FALSE", "False"])


class GateError(InputError):
    """A feature gate that cannot be set; `message` is kube-scheduler's text."""


class FeatureGates:
    """Which features are on. Immutable; `enabled(name)` is the question everyone asks.

    Made from a mapping, `FeatureGates({"GangScheduling": True, "GenericWorkload": True})`, or by `parse` from
    the text of `--feature-gates`. Raises GateError for an unknown or locked gate, and for a gate whose own
    requirements are off.
    """

    __slots__ = ("_changed", "_on")

    def __init__(self, changes: Mapping[str, bool] | None = None) -> None:
        self._changed = dict(changes or {})
        self._on = {**DEFAULT_GATES, **_of_groups(self._changed)}
        for name in self._changed:
            if name not in DEFAULT_GATES and name not in _GROUPS:
                raise GateError(f"unrecognized feature gate: {name}", hint=_known(name))
        single = {name: value for name, value in self._changed.items() if name not in _GROUPS}
        self._on |= single
        _refuse(
            f"cannot set feature gate {name} to {_word(value)}, feature is locked to {_word(DEFAULT_GATES[name])}"
            for name, value in sorted(single.items())
            if name in _LOCKED and value != DEFAULT_GATES[name]
        )
        lacking = {
            name: [need for need in needs if not self._on[need]]
            for name, needs in _NEEDS.items()
            if self._on[name]
        }
        wanted = sorted({need for missing in lacking.values() for need in missing})
        _refuse(
            (
                f"{name} is enabled, but depends on features that are disabled: [{' '.join(missing)}]"
                for name, missing in lacking.items()
                if missing
            ),
            hint=f"Also set {','.join(f'{need}=true' for need in wanted)}.",
        )

    @classmethod
    def parse(cls, text: str | Mapping[str, bool] | Iterable[str] | FeatureGates | None) -> FeatureGates:
        """From "A=true,B=false", an iterable of such texts, a mapping, or None for the defaults."""
        if isinstance(text, FeatureGates):
            return text
        if text is None or isinstance(text, Mapping):
            return cls(text)
        parts = (text if isinstance(text, str) else ",".join(text)).split(",")
        changes: dict[str, bool] = {}
        for part in filter(None, parts):
            name, equals, value = part.partition("=")
            name, value = name.strip(), value.strip()
            if not equals:
                raise GateError(f"missing bool value for {name}", hint=f"Write {name}=true or {name}=false.")
            if value not in _TRUE and value not in _FALSE:
                raise GateError(
                    f'invalid value of {name}={value}, err: strconv.ParseBool: parsing "{value}": invalid syntax',
                    hint=f"Write {name}=true or {name}=false.",
                )
            changes[name] = value in _TRUE
        return cls(changes)

    def enabled(self, name: str) -> bool:
        """Is the feature on? A gate that does not exist is a programming error: KeyError."""
        return self._on[name]

    def as_dict(self) -> dict[str, bool]:
        """Every gate and whether it is on."""
        return dict(self._on)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeatureGates) and self._on == other._on

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._on.items())))

    def __repr__(self) -> str:
        return f"FeatureGates({self._changed!r})"


def _refuse(messages: Iterable[str], hint: str | None = None) -> None:
    found = list(messages)
    if found:
        raise GateError(found[0] if len(found) == 1 else f"[{', '.join(found)}]", hint=hint)


def _of_groups(changes: Mapping[str, bool]) -> dict[str, bool]:
    result: dict[str, bool] = {}
    if "AllAlpha" in changes:
        result |= dict.fromkeys(sorted(_ALPHA), changes["AllAlpha"])
    if "AllBeta" in changes:
        beta = set(DEFAULT_GATES) - _ALPHA - _LOCKED - _GA_UNLOCKED
        result |= dict.fromkeys(sorted(beta), changes["AllBeta"])
    return result


def _word(value: bool) -> str:
    return "true" if value else "false"


def _known(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, DEFAULT_GATES, n=1)
    return (
        f"Did you mean {near[0]}?"
        if near
        else f"The gates that matter here are {', '.join(sorted(DEFAULT_GATES))}."
    )


DEFAULTS = FeatureGates()
