"""`metadata`: names, uids, and what a writer may change of it (spec 20 §8.1, §8.2)."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from typing import Any

from labkit.cluster.store_errors import ApiError, Cause, conflict, internal, invalid, uid_conflict
from labkit.cluster.store_types import ResourceType

_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
#: Kinds of metadata that the server owns: what a writer says there is replaced by what is stored.
_OWNED = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")


@dataclass(frozen=True)
class WriteOptions:
    """How a write is to be done; `warnings` collects what a client would see as `Warning:` headers."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    warnings: list[str] = field(default_factory=list)
    #: A create that comes from server-side apply has its managedFields already.
    applied: bool = False


DEFAULT_OPTIONS = WriteOptions()


class Ids:
    """Uids and name suffixes from a seed, so that the same history has the same names."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)

    def uid(self) -> str:
        """A UUID of version 4."""
        bits = self._random.getrandbits(128)
        bits = bits & ~(0xF000 << 64) | 0x4000 << 64
        bits = bits & ~(0xC000 << 48) | 0x8000 << 48
        text = f"{bits:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def name(self, prefix: str) -> str:
        """`prefix` and five characters; long prefixes are cut to keep the name within 63."""
        return prefix[:58] + "".join(self._random.choices(_NAME_ALPHABET, k=5))


def prepare_new(resource: ResourceType, obj: dict[str, Any], ids: Ids, now: str) -> None:
    """Fill the metadata of an object that is about to be created."""
    meta = obj["metadata"]
    if meta.get("resourceVersion"):
        raise internal("resourceVersion should not be set on objects to be created")
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = ids.name(meta["generateName"])
    meta["uid"] = ids.uid()
    meta["creationTimestamp"] = now
    for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"):
        meta.pop(key, None)
    if resource.has_generation:
        meta["generation"] = 1


def check_preconditions(resource: ResourceType, key: str, old: dict[str, Any], meta: dict[str, Any]) -> None:
    """409 when a write names another uid or resourceVersion than the object has."""
    stored = old["metadata"]
    uid, version = meta.get("uid"), meta.get("resourceVersion")
    if uid and uid != stored["uid"]:
        raise uid_conflict(resource, key, stored["name"], uid, stored["uid"])
    if version and version != stored["resourceVersion"]:
        raise conflict(resource, stored["name"])


def check_delete_preconditions(
    resource: ResourceType, old: dict[str, Any], wanted: dict[str, Any] | None
) -> None:
    """409 of a delete whose preconditions do not hold."""
    if not wanted:
        return
    stored = old["metadata"]
    for field_name, label in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        given = wanted.get(field_name)
        if given and given != stored[field_name]:
            raise ApiError(
                409,
                "Conflict",
                f'Operation cannot be fulfilled on {resource.kind_name} "{stored["name"]}": the {label} in the '
                f"precondition ({given}) does not match the {label} in record ({stored[field_name]}). The object might "
                + ("have been deleted and then recreated" if label == "UID" else "have been modified"),
                {
                    "name": stored["name"],
                    **({"group": resource.group} if resource.group else {}),
                    "kind": resource.kind,
                },
            )


def keep_owned(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Put the server's own metadata back into what a writer sent."""
    stored, meta = old["metadata"], new["metadata"]
    for key in _OWNED:
        if key in stored:
            meta[key] = stored[key]
        else:
            meta.pop(key, None)
    meta.pop("selfLink", None)
    if "generateName" in stored:
        meta["generateName"] = stored["generateName"]
    else:
        meta.pop("generateName", None)
    meta["name"] = stored["name"]
    if "namespace" in stored:
        meta["namespace"] = stored["namespace"]
    meta["resourceVersion"] = stored["resourceVersion"]


def check_finalizers(resource: ResourceType, old: dict[str, Any], new: dict[str, Any]) -> None:
    """422 when a finalizer is added to an object that is being deleted."""
    if "deletionTimestamp" not in old["metadata"]:
        return
    before = old["metadata"].get("finalizers") or ()
    added = [f for f in new["metadata"].get("finalizers") or () if f not in before]
    if added:
        listed = ", ".join(f'"{f}"' for f in sorted(added))
        message = (
            "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
            f"[]string{{{listed}}}"
        )
        # The real server finds it twice, and says so in the causes.
        problem = Cause("FieldValueForbidden", message, "metadata.finalizers")
        raise invalid(resource, new["metadata"]["name"], [problem, problem])


def changed(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether anything differs, managedFields aside."""
    if old is new:
        return False
    if old.keys() != new.keys():
        return True
    for key, value in new.items():
        if key == "metadata":
            before = old["metadata"]
            if before == value:
                continue
            ignored = ("managedFields",)
            if {k: v for k, v in before.items() if k not in ignored} != {
                k: v for k, v in value.items() if k not in ignored
            }:
                return True
        elif old[key] != value:
            return True
    return False


def spec_changed(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether anything but metadata and status differs: what raises `generation`."""
    keys = (old.keys() | new.keys()) - {"metadata", "status", "apiVersion", "kind"}
    return any(old.get(k) != new.get(k) for k in keys)


_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def is_dns_subdomain(name: str) -> bool:
    """RFC 1123 subdomain, at most 253 characters."""
    return len(name) <= 253 and _SUBDOMAIN.fullmatch(name) is not None


def is_dns_label(name: str) -> bool:
    """RFC 1123 label, at most 63 characters."""
    return len(name) <= 63 and _DNS_LABEL.fullmatch(name) is not None
