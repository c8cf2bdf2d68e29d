"""The ASGI application: from a request to the store and back (spec 20)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from labkit.cluster.apiserver import discovery, openapi, reading, reviews, writing
from labkit.cluster.apiserver.auth import Attributes, Authenticator, authorize
from labkit.cluster.apiserver.bodies import ClientGone, read_body
from labkit.cluster.apiserver.impersonation import acting_user
from labkit.cluster.apiserver.requests import (
    Accepted,
    PathNotFound,
    Request,
    Target,
    negotiate,
    parse_path,
    parse_query,
)
from labkit.cluster.apiserver.responses import (
    Response,
    error_response,
    json_response,
    text_response,
    with_warnings,
    yaml_response,
)
from labkit.cluster.apiserver.watching import Hub, WatchResponse
from labkit.cluster.store import Store
from labkit.cluster.store_errors import ApiError, bad_request, internal, method_not_allowed

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
log = logging.getLogger(__name__)
_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_ENDPOINTS = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
#: Large bodies being read at once, and for how long; further ones wait, so that memory stays bounded.
_PARALLEL_BODIES, _SMALL_BODY, _BODY_SECONDS = 32, 64 * 1024, 60.0


class ApiServer:
    """The application. `certificate_of` gives the verified client certificate of a connection, if there is one."""

    def __init__(
        self,
        store: Store,
        authenticator: Authenticator,
        *,
        address: str = "127.0.0.1",
        certificate_of: Callable[[Any], dict[str, Any] | None] = lambda _: None,
    ) -> None:
        self.store = store
        self.authenticator = authenticator
        self.address = address
        self._certificate_of = certificate_of
        self.hub: Hub | None = None
        self._bodies: asyncio.Semaphore | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        if self.hub is None:
            self.hub = Hub(self.store)
            self._bodies = asyncio.Semaphore(_PARALLEL_BODIES)
        try:
            answer = await self._answer(scope, receive)
        except ClientGone:
            return
        except ApiError as e:
            answer = error_response(e)
        except PathNotFound:
            answer = text_response("404 page not found\n", 404)
        except RecursionError:
            answer = error_response(bad_request("the object is nested too deeply"))
        except Exception:
            log.exception("%s %s", scope.get("method"), scope.get("path"))
            answer = error_response(
                internal("an error on the server has prevented the request from succeeding")
            )
        if isinstance(answer, WatchResponse):
            await answer.run(receive, send)
            return
        await send(answer.start())
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else answer.body})

    async def _answer(self, scope: Scope, receive: Receive) -> Response | WatchResponse:
        pairs = [(k.decode("latin-1").lower(), v.decode("latin-1")) for k, v in scope["headers"]]
        headers = dict(pairs)
        user = self.authenticator.user(headers, self._certificate_of(scope.get("client")))
        user = acting_user(self.store, user, pairs)
        path = scope["path"]
        request = Request(scope["method"], path, parse_query(scope.get("query_string") or b""), headers, user)
        fixed = self._fixed_path(request)
        if fixed is not None:
            return fixed
        target = parse_path(path)
        watching = self._wants_watch(request, target)
        authorize(self.store, user, self._attributes(request, target, watching))
        accepted = negotiate(headers.get("accept"))
        if request.method in ("POST", "PUT", "PATCH", "DELETE"):
            request.body = await self._body(receive, headers.get("content-length"))
            return with_warnings(self._write(target, request, accepted), request.warnings)
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        if target.resource.kind == "Endpoints":
            request.warnings.append(_ENDPOINTS)
        if watching:
            assert self.hub is not None
            return WatchResponse(self.store, self.hub, target, request, accepted)
        if target.name is not None:
            return with_warnings(reading.get_one(self.store, target, request, accepted), request.warnings)
        return with_warnings(reading.get_list(self.store, target, request, accepted), request.warnings)

    async def _body(self, receive: Receive, declared: str | None) -> bytes:
        if declared is not None and declared.isdigit() and int(declared) <= _SMALL_BODY:
            return await read_body(receive, declared)
        assert self._bodies is not None
        async with self._bodies:
            try:
                return await asyncio.wait_for(read_body(receive, declared), _BODY_SECONDS)
            except TimeoutError:
                raise ApiError(408, "Timeout", "the body of the request did not arrive in time", {}) from None

    def _write(self, target: Target, request: Request, accepted: Accepted) -> Response:
        if request.method == "POST" and target.resource.create_only and target.resource.kind != "Binding":
            if target.name is not None:
                raise method_not_allowed()
            body = writing.read_object(request, target, target.resource.kind, target.resource.api_version)
            return json_response(reviews.answer(self.store, self.authenticator, request.user, body), 201)
        handler = {"POST": writing.post, "PUT": writing.put, "PATCH": writing.patch, "DELETE": writing.delete}
        return handler[request.method](self.store, target, request, accepted)

    @staticmethod
    def _wants_watch(request: Request, target: Target) -> bool:
        if request.method != "GET" or target.subresource is not None:
            return False
        return target.watch_path or (target.name is None and request.flag("watch"))

    @staticmethod
    def _attributes(request: Request, target: Target, watching: bool) -> Attributes:
        verb = _VERBS.get(request.method, request.method.lower())
        if watching:
            verb = "watch"
        elif target.name is None and verb in ("get", "delete"):
            verb = "list" if verb == "get" else "deletecollection"
        r = target.resource
        return Attributes(
            verb, r.group, r.plural, target.subresource or "", target.namespace or "", target.name or ""
        )

    def _fixed_path(self, request: Request) -> Response | None:
        """Answers of paths that name no resource."""
        parts = [p for p in request.path.split("/") if p]
        first = parts[0] if parts else ""
        if (len(parts) > 2 and first == "api") or (len(parts) > 3 and first == "apis"):
            return None
        authorize(
            self.store, request.user, Attributes(_VERBS.get(request.method, ""), path="/" + "/".join(parts))
        )
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        if not parts:
            return json_response(discovery.root_paths())
        if first in ("healthz", "livez", "readyz"):
            return _health(first, request)
        if first == "version" and len(parts) == 1:
            return json_response(discovery.VERSION)
        if first == "metrics" and len(parts) == 1:
            return text_response(self._metrics())
        if first == "openapi":
            return _openapi(parts, request)
        return self._discovery(parts, request)

    def _discovery(self, parts: list[str], request: Request) -> Response:
        found: Any = None
        content_type = "application/json"
        if parts in (["api"], ["apis"]):
            if negotiate(request.headers.get("accept")).discovery:
                found, content_type = discovery.aggregated(core=parts == ["api"]), discovery.AGGREGATED
            else:
                found = discovery.api_versions(self.address) if parts == ["api"] else discovery.groups()
        elif parts == ["api", "v1"]:
            found = discovery.resources("", "v1")
        elif parts[0] == "apis" and len(parts) == 2:
            found = discovery.group(parts[1])
        elif parts[0] == "apis" and len(parts) == 3:
            found = discovery.resources(parts[1], parts[2])
        if found is None:
            raise PathNotFound
        tag = discovery.etag(found)
        headers = {"etag": tag, "vary": "Accept", "cache-control": "public"}
        if request.headers.get("if-none-match") == tag:
            return Response(304, b"", content_type, headers)
        if negotiate(request.headers.get("accept")).form == "yaml":
            return yaml_response(found)
        return Response(200, msgspec.json.encode(found) + b"\n", content_type, headers)

    def _metrics(self) -> str:
        lines = [
            "# HELP apiserver_storage_objects Number of stored objects.",
            "# TYPE apiserver_storage_objects gauge",
            *(
                f'apiserver_storage_objects{{resource="{r.resource_name}"}} {len(self.store.objects(r))}'
                for r in self.store.stored_resources()
            ),
            "# HELP apiserver_longrunning_requests Open watches.",
            "# TYPE apiserver_longrunning_requests gauge",
            f'apiserver_longrunning_requests{{verb="WATCH"}} {self.hub.watches if self.hub else 0}',
            "# HELP apiserver_resource_version Version of the newest write.",
            "# TYPE apiserver_resource_version gauge",
            f"apiserver_resource_version {self.store.version}",
        ]
        return "\n".join(lines) + "\n"


def _health(name: str, request: Request) -> Response:
    if "verbose" in request.query:
        return text_response(f"[+]ping ok\n[+]store ok\n{name} check passed\n")
    return text_response("ok")


def _openapi(parts: list[str], request: Request) -> Response:
    if parts[1:] == ["v2"]:
        if openapi.PROTOBUF_V2 in request.headers.get("accept", ""):
            # "@" is no legal character of a media type: clients ask with it, and want the answer without.
            content_type = openapi.PROTOBUF_V2.replace("@", ".")
            return Response(200, openapi.swagger_protobuf(), content_type)
        return Response(200, openapi.swagger())
    if parts[1:] == ["v3"]:
        return json_response(openapi.index())
    if parts[1:4] == ["v3", "api", "v1"] and len(parts) == 4:
        return Response(200, openapi.document("", "v1"))
    if parts[1:3] == ["v3", "apis"] and len(parts) == 5 and discovery.resources(parts[3], parts[4]):
        return Response(200, openapi.document(parts[3], parts[4]))
    raise PathNotFound
