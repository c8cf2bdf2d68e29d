"""What the API server says no with: an error that is a Kubernetes Status (spec 20 §6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from labkit.errors import LabError


@dataclass(frozen=True)
class Cause:
    """One entry of `details.causes`."""

    reason: str
    message: str
    field: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As in a Status; empty parts are left out."""
        parts = {"reason": self.reason, "message": self.message, "field": self.field}
        return {k: v for k, v in parts.items() if v}


class ApiError(LabError):
    """A refusal with the code, reason, message and details that the real API server would give."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        *,
        metadata: dict[str, Any] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.details = details
        self.metadata = metadata or {}
        self.retry_after = retry_after

    def __str__(self) -> str:
        return self.message

    def to_status(self) -> dict[str, Any]:
        """The Status object."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        if self.retry_after is not None:
            status.setdefault("details", {})["retryAfterSeconds"] = self.retry_after
        status["code"] = self.code
        return status


def success(details: dict[str, Any] | None = None, code: int | None = 201) -> dict[str, Any]:
    """The Status object of a success."""
    status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        status["details"] = details
    if code is not None:
        status["code"] = code
    return status


class Named:
    """The resource an error speaks of, as errors spell it. `ResourceType` is one."""

    group: str
    kind: str
    plural: str

    @property
    def resource_name(self) -> str:
        """`pods`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def kind_name(self) -> str:
        """`Pod`, `Deployment.apps`."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


def _details(resource: Named, name: str = "", kind: str | None = None, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"name": name} if name else {}
    if resource.group:
        found["group"] = resource.group
    return {**found, "kind": kind or resource.plural, **more}


def not_found(resource: Named, name: str) -> ApiError:
    """404 of an object."""
    return ApiError(404, "NotFound", f'{resource.resource_name} "{name}" not found', _details(resource, name))


def already_exists(resource: Named, name: str) -> ApiError:
    """409 of a create."""
    message = f'{resource.resource_name} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, _details(resource, name))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(resource: Named, name: str, why: str = MODIFIED, subresource: str = "") -> ApiError:
    """409 of a write that comes too late."""
    part = f"/{subresource}" if subresource else ""
    message = f'Operation cannot be fulfilled on {resource.resource_name}{part} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(resource, name, resource.plural + part))


def uid_conflict(resource: Named, key: str, name: str, given: str, actual: str) -> ApiError:
    """409 of a write that names another uid than the object has."""
    registry = f"/registry/{_REGISTRY.get(resource.plural, resource.plural)}/{key}"
    return conflict(
        resource,
        name,
        f"StorageError: invalid object, Code: 4, Key: {registry}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {given}, UID in object meta: {actual}",
    )


_REGISTRY = {"nodes": "minions", "services": "services/specs", "endpoints": "services/endpoints"}


def forbidden(resource: Named, name: str, why: str, causes: Sequence[Cause] = ()) -> ApiError:
    """403 of admission."""
    about = f'{resource.resource_name} "{name}"' if name else resource.resource_name
    more: dict[str, Any] = {"causes": [c.to_dict() for c in causes]} if causes else {}
    return ApiError(403, "Forbidden", f"{about} is forbidden: {why}", _details(resource, name, **more))


def bad_request(message: str) -> ApiError:
    """400."""
    return ApiError(400, "BadRequest", message)


def internal(message: str) -> ApiError:
    """500 without a reason, as the real server answers for errors it does not class."""
    return ApiError(500, "", message)


def expired(message: str = "The resourceVersion for the provided list is too old.", **more: Any) -> ApiError:
    """410."""
    return ApiError(410, "Expired", message, **more)


def too_large_version(given: int, current: int) -> ApiError:
    """504 of a read at a resourceVersion that does not exist yet."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {given}, current: {current}"
    return ApiError(504, "Timeout", message, {"causes": [cause]}, retry_after=1)


def cannot_patch() -> ApiError:
    """422 of a JSON patch whose test fails or whose path is missing."""
    return ApiError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def method_not_allowed() -> ApiError:
    """405."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, {})


def no_such_resource() -> ApiError:
    """404 of a resource type that this server does not serve."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def unauthorized() -> ApiError:
    """401."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def invalid(resource: Named, name: str, problems: Sequence[Cause]) -> ApiError:
    """422 of validation; one problem is told plainly, several in brackets."""
    told = [f"{p.field}: {p.message}" if p.field else p.message for p in problems]
    different = list(dict.fromkeys(told))
    text = different[0] if len(different) == 1 else f"[{', '.join(different)}]"
    causes = [p.to_dict() for p in problems]
    message = f'{resource.kind_name} "{name}" is invalid: {text}'
    return ApiError(422, "Invalid", message, _details(resource, name, resource.kind, causes=causes))


def invalid_options(kind: str, problem: Cause) -> ApiError:
    """422 of bad query parameters."""
    message = f'{kind}.meta.k8s.io "" is invalid: {problem.field}: {problem.message}'
    details = {"group": "meta.k8s.io", "kind": kind, "causes": [problem.to_dict()]}
    return ApiError(422, "Invalid", message, details)
