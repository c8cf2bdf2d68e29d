"""Validation: what the API refuses with 422, and in which words (spec 20 §6, §8)."""

from __future__ import annotations

from typing import Any

from labkit.cluster.store_errors import invalid
from labkit.cluster.store_metadata import is_dns_label, is_dns_subdomain
from labkit.cluster.store_problems import (
    NOT_A_LABEL_KEY,
    NOT_A_LABEL_VALUE,
    NOT_A_SUBDOMAIN,
    Problems,
    why_no_dns_label,
)
from labkit.cluster.store_types import EVENT, ResourceType
from labkit.cluster.store_validation_kinds import CREATE_CHECKS, UPDATE_CHECKS
from labkit.objects.names import is_label_key, is_label_value

Json = dict[str, Any]
_LABEL_NAMES = ("Namespace", "Service")
_PATH_NAMES = ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
MAX_ANNOTATIONS = 256 * 1024


def validate_create(resource: ResourceType, obj: Json) -> None:
    """ApiError 422 with every problem of a new object."""
    problems = Problems()
    _metadata(resource, obj["metadata"], problems)
    check = CREATE_CHECKS.get(resource.kind)
    if check is not None:
        check(obj, problems)
    _raise(resource, obj, problems)


def validate_update(resource: ResourceType, old: Json, obj: Json, subresource: str | None) -> None:
    """ApiError 422 with every problem of a changed object."""
    problems = Problems()
    _maps(obj["metadata"], problems)
    if subresource is None or subresource in ("resize", "ephemeralcontainers"):
        update_check = UPDATE_CHECKS.get(resource.kind)
        if update_check is not None:
            update_check(old, obj, problems)
        elif (check := CREATE_CHECKS.get(resource.kind)) is not None:
            check(obj, problems)
    _raise(resource, obj, problems)


def _raise(resource: ResourceType, obj: Json, problems: Problems) -> None:
    if problems:
        raise invalid(resource, obj["metadata"].get("name", ""), problems.found)


def check_new_style_event(obj: Json) -> None:
    """422 for an events.k8s.io event that lacks what that group asks for."""
    problems = Problems()
    if not obj.get("eventTime"):
        problems.required("eventTime")
    else:
        for field, bound in (
            ("reportingController", 0),
            ("reportingInstance", 128),
            ("action", 128),
            ("reason", 128),
        ):
            value = obj.get(field) or ""
            if not value:
                problems.required(field)
            elif bound and len(value) > bound:
                problems.invalid(field, "", f"can have at most {bound} characters")
        if len(obj.get("note") or "") > 1024:
            problems.invalid("message", "", "can have at most 1024 characters")
        if obj.get("type") not in ("Normal", "Warning"):
            problems.invalid("type", "", f"has invalid value: {obj.get('type') or ''}")
    if problems:
        raise invalid(EVENT, obj["metadata"].get("name", ""), problems.found)


def _metadata(resource: ResourceType, meta: Json, problems: Problems) -> None:
    name = meta.get("name") or ""
    if not name:
        problems.required("metadata.name", "name or generateName is required")
    elif (text := name_problem(resource, name)) is not None:
        problems.invalid("metadata.name", name, text)
    _maps(meta, problems)


def name_problem(resource: ResourceType, name: str) -> str | None:
    """Why a name does not do for the resource; None when it does."""
    if resource.kind in _PATH_NAMES:
        bad = [c for c in "/%" if c in name]
        if name in (".", ".."):
            return f"may not be '{name}'"
        return f"may not contain '{bad[0]}'" if bad else None
    if resource.kind in _LABEL_NAMES:
        if len(name) > 63:
            return "must be no more than 63 characters"
        return None if is_dns_label(name) else why_no_dns_label(name)
    if len(name) > 253:
        return "must be no more than 253 characters"
    return None if is_dns_subdomain(name) else NOT_A_SUBDOMAIN


def _maps(meta: Json, problems: Problems) -> None:
    labels, annotations = meta.get("labels"), meta.get("annotations")
    if labels:
        check_labels(labels, "metadata.labels", problems)
    if annotations:
        total = 0
        for key, value in annotations.items():
            total += len(key) + len(value)
            if not is_label_key(key.lower()):
                problems.invalid("metadata.annotations", key, NOT_A_LABEL_KEY)
        if total > MAX_ANNOTATIONS:
            problems.add(
                "FieldValueTooLong",
                "metadata.annotations",
                f"Too long: may not be more than {MAX_ANNOTATIONS} bytes",
            )
    for owner in meta.get("ownerReferences") or ():
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                why = "version must not be empty" if field == "apiVersion" else "must not be empty"
                problems.invalid(f"metadata.ownerReferences.{field}", owner.get(field) or "", why)
    for i, finalizer in enumerate(meta.get("finalizers") or ()):
        if not is_label_key(finalizer):
            problems.invalid(f"metadata.finalizers[{i}]", finalizer, NOT_A_LABEL_KEY)
        elif "/" not in finalizer and finalizer not in ("kubernetes", "orphan", "foregroundDeletion"):
            problems.invalid(
                f"metadata.finalizers[{i}]",
                finalizer,
                "name is neither a standard finalizer name nor is it fully qualified",
            )


def check_labels(labels: Json, path: str, problems: Problems) -> None:
    """Keys and values of a label map."""
    for key, value in labels.items():
        if not is_label_key(key):
            problems.invalid(path, key, NOT_A_LABEL_KEY)
        if not is_label_value(value):
            problems.invalid(
                path, value, NOT_A_LABEL_VALUE if len(value) <= 63 else "must be no more than 63 characters"
            )
