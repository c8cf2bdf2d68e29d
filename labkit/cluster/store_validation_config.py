"""Validation of objects that configure others: config maps, secrets, limits, quotas, schedules, bindings of roles."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from labkit.cluster.cron import CronError, parse_schedule, zone_of
from labkit.cluster.store_problems import Problems
from labkit.objects.quantity import parse_quantity

Json = dict[str, Any]
MAX_CONFIG_BYTES = 1 << 20
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_NOT_A_KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_COUNTED = (
    "cpu memory ephemeral-storage requests.cpu requests.memory requests.storage requests.ephemeral-storage limits.cpu "
    "limits.memory limits.ephemeral-storage pods resourcequotas services replicationcontrollers secrets "
    "persistentvolumeclaims configmaps services.nodeports services.loadbalancers"
)
#: What a quota may count without a domain in its name, and huge pages.
QUOTA_NAMES = frozenset(_COUNTED.split())


def secret_data(obj: Json) -> None:
    """`stringData` is for writing only: it goes into `data`, encoded."""
    for key, text in (obj.pop("stringData", None) or {}).items():
        obj.setdefault("data", {})[key] = base64.b64encode(text.encode()).decode()


def _keys(obj: Json, field: str, problems: Problems) -> None:
    for key in sorted(obj.get(field) or ()):
        path = f"{field}[{key}]"
        if len(key) > 253:
            problems.invalid(path, key, "must be no more than 253 bytes")
        if not _KEY.fullmatch(key):
            problems.invalid(path, key, _NOT_A_KEY)
        elif key in (".", ".."):
            problems.invalid(path, key, f"must not be '{key}'")
        elif key.startswith(".."):
            problems.invalid(path, key, "must not start with '..'")


def _size(encoded: Json | None) -> int:
    return sum(len(text) * 3 // 4 - text.count("=", -2) for text in (encoded or {}).values())


def check_config_map(obj: Json, problems: Problems) -> None:
    """Keys, and a mebibyte at most."""
    for field in ("data", "binaryData"):
        _keys(obj, field, problems)
    size = sum(len(text.encode()) for text in (obj.get("data") or {}).values()) + _size(obj.get("binaryData"))
    if size > MAX_CONFIG_BYTES:
        problems.add("FieldValueTooLong", "[]", f"Too long: may not be more than {MAX_CONFIG_BYTES} bytes")


def check_secret(obj: Json, problems: Problems) -> None:
    """Keys, base64, and a mebibyte at most."""
    _keys(obj, "data", problems)
    for key, text in (obj.get("data") or {}).items():
        try:
            base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            problems.invalid(f"data[{key}]", text, "must be base64")
    if _size(obj.get("data")) > MAX_CONFIG_BYTES:
        problems.add("FieldValueTooLong", "data", f"Too long: may not be more than {MAX_CONFIG_BYTES} bytes")


def check_limit_range(obj: Json, problems: Problems) -> None:
    """Least, most and defaults of each resource must be in order."""
    for i, limit in enumerate(obj["spec"].get("limits") or ()):
        path = f"spec.limits[{i}]"
        parts = {p: limit.get(p) or {} for p in ("min", "max", "default", "defaultRequest")}
        for name in sorted({n for amounts in parts.values() for n in amounts}):
            _limits_in_order(path, name, {p: a[name] for p, a in parts.items() if name in a}, problems)


#: field -> (the smaller, its words, the larger, its words, whose value is shown)
_ORDER = (
    ("min", "min", "min value", "max", "max value", "min"),
    ("defaultRequest", "min", "min value", "defaultRequest", "default request value", "defaultRequest"),
    ("defaultRequest", "defaultRequest", "default request value", "max", "max value", "defaultRequest"),
    (
        "defaultRequest",
        "defaultRequest",
        "default request value",
        "default",
        "default limit value",
        "defaultRequest",
    ),
    ("default", "min", "min value", "default", "default value", "min"),
    ("default", "default", "default value", "max", "max value", "max"),
)


def _limits_in_order(path: str, name: str, amounts: Json, problems: Problems) -> None:
    for field, small, small_words, large, large_words, shown in _ORDER:
        if small not in amounts or large not in amounts:
            continue
        if parse_quantity(amounts[small]) > parse_quantity(amounts[large]):
            problems.invalid(
                f"{path}.{field}[{name}]",
                amounts[shown],
                f"{small_words} {amounts[small]} is greater than {large_words} {amounts[large]}",
            )


def check_quota(obj: Json, problems: Problems) -> None:
    """Names of resources that a quota can count, and amounts."""
    for name, amount in sorted((obj["spec"].get("hard") or {}).items()):
        path = f"spec.hard[{name}]"
        if "/" not in name and name not in QUOTA_NAMES and "hugepages-" not in name:
            problems.invalid(path, name, "must be a standard resource type or fully qualified")
            problems.invalid(path, name, "must be a standard resource for quota")
        if parse_quantity(amount).amount < 0:
            problems.invalid(path, amount, "must be greater than or equal to 0")


def check_cron_job(obj: Json, problems: Problems) -> None:
    """The schedule: five fields, or a word such as @daily; the time zone."""
    spec = obj["spec"]
    schedule, zone = str(spec.get("schedule") or ""), spec.get("timeZone")
    if not schedule:
        problems.required("spec.schedule")
    else:
        try:
            parse_schedule(schedule)
        except CronError as e:
            problems.invalid("spec.schedule", schedule, str(e))
    try:
        zone_of(zone)
    except CronError as e:
        problems.invalid("spec.timeZone", zone, str(e))
    _not_negative(spec, "startingDeadlineSeconds", problems)
    problems.one_of(
        "spec.concurrencyPolicy", spec.get("concurrencyPolicy") or "", ("Allow", "Forbid", "Replace")
    )
    for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        _not_negative(spec, field, problems)


def _not_negative(spec: Json, field: str, problems: Problems) -> None:
    if (spec.get(field) or 0) < 0:
        problems.invalid(f"spec.{field}", spec[field], "must be greater than or equal to 0")


def check_role_binding(obj: Json, problems: Problems) -> None:
    """The kind of the role."""
    kinds = ("Role", "ClusterRole") if obj.get("kind") == "RoleBinding" else ("ClusterRole",)
    reference = obj.get("roleRef") or {}
    problems.one_of("roleRef.kind", reference.get("kind") or "", kinds)
    if not reference.get("name"):
        problems.required("roleRef.name")


def check_device_requests(obj: Json, problems: Problems) -> None:
    """Each request of a ResourceClaim says in one way what it wants."""
    spec = obj["spec"].get("spec") or {} if obj.get("kind") == "ResourceClaimTemplate" else obj["spec"]
    path = "spec.spec" if obj.get("kind") == "ResourceClaimTemplate" else "spec"
    for i, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        ways = [w for w in ("exactly", "firstAvailable") if request.get(w)]
        here = f"{path}.devices.requests[{i}]"
        if not ways:
            problems.required(here, "exactly one of `exactly` or `firstAvailable` is required")
        elif len(ways) > 1:
            problems.invalid(here, request, "exactly one of `exactly` or `firstAvailable` is required")
