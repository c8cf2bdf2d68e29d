"""Runs the API server: in a thread for a lab, or as the process of `labkit apiserver` (spec 20 §2)."""

from __future__ import annotations

import ipaddress
import secrets
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from labkit.cluster.apiserver.app import ApiServer
from labkit.cluster.apiserver.auth import ADMIN, Authenticator
from labkit.cluster.apiserver.kubeconfig import write_kubeconfig
from labkit.cluster.apiserver.tls import Certificates, ensure_certificates, write_private
from labkit.cluster.apiserver.workers import NamespaceCleaner, PodReaper
from labkit.cluster.store import Store
from labkit.cluster.store_disruption import DisruptionCounter
from labkit.errors import LabError

if TYPE_CHECKING:
    import uvicorn

BACKLOG = 2048
START_SECONDS = 10.0


class ServerHandle:
    """A running server. `url`, `kubeconfig_path`, `token`, `store`; `stop()` ends it."""

    def __init__(
        self,
        store: Store,
        app: ApiServer,
        server: uvicorn.Server,
        thread: threading.Thread,
        url: str,
        kubeconfig_path: Path,
        token: str,
        cleanup: Callable[[], None],
    ) -> None:
        self.store = store
        self.app = app
        self.url = url
        self.kubeconfig_path = kubeconfig_path
        self.token = token
        self._server = server
        self._thread = thread
        self._cleanup = cleanup

    @property
    def kubeconfig(self) -> Path:
        """The same as `kubeconfig_path`."""
        return self.kubeconfig_path

    @property
    def running(self) -> bool:
        """Whether it serves."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """End open watches, close the connections, remove what was temporary. The store stays open."""
        if self._thread.is_alive():
            self._server.should_exit = True
            self._thread.join(timeout=10)
        self._cleanup()

    def __enter__(self) -> ServerHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def serve(
    store: Store,
    port: int = 0,
    *,
    host: str = "127.0.0.1",
    tls: bool = True,
    token: str | None = None,
    kubeconfig: str | Path | None = None,
    directory: str | Path | None = None,
    allow_remote: bool = False,
    reap_pods: bool = False,
) -> ServerHandle:
    """Serve a store over HTTPS from a thread of this process; port 0 takes a free one.

    Writes a kubeconfig with a token and a client certificate (to `kubeconfig`, else beside the certificates in
    `directory`, else to a temporary place). Addresses that others can reach need `allow_remote`. Without `tls`
    only loopback is served, and every request counts as the admin's. `reap_pods` removes pods when their grace
    period is over, for clusters without a kubelet. LabError when the port or an address cannot be used.
    """
    _check_host(host, tls=tls, allow_remote=allow_remote)
    temporary = None
    if directory is None:
        directory = temporary = tempfile.mkdtemp(prefix="labkit-apiserver-")
    place = Path(directory)
    listener = _listen(host, port)
    port = listener.getsockname()[1]
    try:
        handle = _start(store, listener, host, port, tls, token, kubeconfig, place)
    except BaseException:
        listener.close()
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        raise
    cleanups: list[Callable[[], None]] = []
    if temporary is not None:
        cleanups.append(lambda: shutil.rmtree(temporary, ignore_errors=True))
    namespaces = NamespaceCleaner(store)
    cleanups.append(namespaces.stop)
    if reap_pods:
        cleanups.append(PodReaper(store).stop)

    def clean_up() -> None:
        while cleanups:
            cleanups.pop()()

    handle._cleanup = clean_up
    return handle


def _check_host(host: str, *, tls: bool, allow_remote: bool) -> None:
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if loopback:
        return
    if not tls:
        raise LabError(
            f"plain HTTP is served on loopback only, not on {host}", hint="leave TLS on, or use 127.0.0.1"
        )
    if not allow_remote:
        raise LabError(
            f"{host} can be reached from other machines", hint="say --allow-remote if that is what you want"
        )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named, for asyncio switches Nagle off only on sockets that say they are TCP.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as e:
        listener.close()
        raise LabError(
            f"cannot listen on {host}:{port}: {e.strerror}",
            hint="another program uses that port; give --port another number, or 0 for any free one",
        ) from e
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


def _start(
    store: Store,
    listener: socket.socket,
    host: str,
    port: int,
    tls: bool,
    token: str | None,
    kubeconfig: str | Path | None,
    directory: Path,
) -> ServerHandle:
    from labkit.cluster.apiserver.transport import make_server

    token = token or _kept_token(directory)
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    address = f"[{shown}]:{port}" if ":" in shown else f"{shown}:{port}"
    certificates: Certificates | None = None
    if tls:
        names = {"localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default.svc", shown}
        certificates = ensure_certificates(directory, sorted(names))
    authenticator = Authenticator({token: ADMIN}, open_to_all=not tls)
    server, app = make_server(store, authenticator, address, certificates)
    url = f"{'https' if tls else 'http'}://{address}"
    path = Path(kubeconfig) if kubeconfig is not None else directory / "kubeconfig"
    write_kubeconfig(path, url, token, certificates)
    failure: list[BaseException] = []

    def run() -> None:
        try:
            server.run(sockets=[listener])
        except BaseException as e:
            failure.append(e)

    thread = threading.Thread(target=run, name="labkit-apiserver", daemon=True)
    thread.start()
    deadline = time.monotonic() + START_SECONDS
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise LabError(f"the API server did not start: {failure[0] if failure else 'no answer'}")
        time.sleep(0.002)
    return ServerHandle(store, app, server, thread, url, path, token, lambda: None)


def _kept_token(directory: Path) -> str:
    """The directory's token, so that a restart does not lock its clients out."""
    path = directory / "token"
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.exists() and (kept := path.read_text().strip()):
            return kept
        token = secrets.token_hex(24)
        write_private(path, token.encode())
    except OSError as e:
        raise LabError(
            f"cannot write to {directory}: {e.strerror}", hint="give a directory that you may write to"
        ) from e
    return token


def run_apiserver(
    port: int = 6443,
    data_dir: str | Path | None = None,
    *,
    host: str = "127.0.0.1",
    tls: bool = True,
    token: str | None = None,
    kubeconfig: str | Path | None = None,
    allow_remote: bool = False,
    seed: int | str | None = None,
    announce: Callable[[str], None] = print,
    started: Callable[[ServerHandle], None] | None = None,
    stop: threading.Event | None = None,
    beside: Callable[[Store], Callable[[], None]] | None = None,
    reap_pods: bool = True,
) -> None:
    """Serve a new or a kept cluster until SIGINT or SIGTERM (or `stop`). LabError for what cannot be used.

    `beside` starts what is to run beside the server (controllers, kubelets) and returns the way to stop it.
    `reap_pods`: as for `serve`; without it kubelets must end their pods.
    """
    import signal

    store = Store(seed=seed if seed is not None else secrets.token_hex(8), data_dir=data_dir)
    ended = stop or threading.Event()
    directory = Path(data_dir) / "tls" if data_dir is not None else None
    try:
        with serve(
            store,
            port,
            host=host,
            tls=tls,
            token=token,
            kubeconfig=kubeconfig,
            directory=directory,
            allow_remote=allow_remote,
            reap_pods=reap_pods,
        ) as handle:
            if threading.current_thread() is threading.main_thread():
                for number in (signal.SIGINT, signal.SIGTERM):
                    signal.signal(number, lambda *_: ended.set())
            budgets = DisruptionCounter(store)
            end_others = beside(store) if beside is not None else None
            announce(f"serving {handle.url}")
            announce(f"export KUBECONFIG={handle.kubeconfig_path}")
            if started is not None:
                started(handle)
            while handle.running and not ended.wait(0.5):
                pass
            if end_others is not None:
                end_others()
            budgets.stop()
    finally:
        store.close()
