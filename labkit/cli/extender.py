"""`labkit extender`: serve plugins to kube-scheduler, and check anybody's extender."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:
    import typer

    from labkit.extender.checker import Finding, Target


def register(app: typer.Typer) -> None:
    """Add the sub-commands."""
    import typer

    group = typer.Typer(no_args_is_help=True, help="Serve plugins as a scheduler extender, or check one.")
    app.add_typer(group, name="extender")

    @group.command()
    def serve(
        plugin: Annotated[list[str], typer.Option("--plugin", help="module:Class, repeatable")],
        host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
        port: Annotated[int, typer.Option(help="0 = any free port", min=0, max=65535)] = 8888,
        tls_cert: Annotated[str | None, typer.Option(help="PEM file")] = None,
        tls_key: Annotated[str | None, typer.Option(help="PEM file")] = None,
        client_ca: Annotated[
            str | None, typer.Option(help="PEM file; clients must then show a certificate")
        ] = None,
        deadline: Annotated[float, typer.Option(help="seconds a request may take", min=0.05)] = 4.0,
        kubeconfig: Annotated[
            str | None, typer.Option(help="cluster for Bind plugins and node look-ups")
        ] = None,
        in_cluster: Annotated[bool, typer.Option(help="use the pod's service account")] = False,
        verbose: Annotated[bool, typer.Option("--verbose", "-v", help="print each request")] = False,
    ) -> None:
        """Serve labkit plugins as /filter, /prioritize, /preempt and /bind until interrupted."""
        from labkit.extender.server import ExtenderServer
        from labkit.extender.service import ExtenderService, load_plugin

        sys.path.insert(0, str(Path.cwd()))
        plugins = [load_plugin(p) for p in plugin]
        client, source = _cluster(kubeconfig, in_cluster)
        service = ExtenderService(plugins, client=client, node_source=source)
        server = ExtenderServer(
            service,
            host=host,
            port=port,
            tls_cert=tls_cert,
            tls_key=tls_key,
            client_ca=client_ca,
            deadline=deadline,
        )
        verbs = [v for v in ("filter", "prioritize", "preempt", "bind") if service.serves(v)]
        typer.echo(f"urlPrefix: {server.url}   verbs: {', '.join(verbs)}")
        _until_interrupted(server, service, verbose)

    @group.command()
    def check(
        url: Annotated[str, typer.Argument(help="the extender's urlPrefix")],
        config: Annotated[
            str | None, typer.Option(help="KubeSchedulerConfiguration that names this extender")
        ] = None,
        output: Annotated[str, typer.Option("--output", "-o", help="table or json")] = "table",
        insecure: Annotated[bool, typer.Option(help="do not verify the TLS certificate")] = False,
    ) -> None:
        """Send the protocol's cases to an extender; exit 1 when one fails."""
        from labkit.errors import LabError
        from labkit.extender.checker import check as run
        from labkit.extender.checker import failed

        if output not in ("table", "json"):
            raise LabError(f"--output {output!r} is neither table nor json")
        findings = run(_target(url, config, verify_tls=not insecure))
        if output == "json":
            typer.echo(json.dumps([asdict(f) for f in findings], ensure_ascii=False, indent=2))
        else:
            _show(findings)
        raise typer.Exit(1 if failed(findings) else 0)


def _target(url: str, config: str | None, *, verify_tls: bool) -> Target:
    from labkit.errors import LabError
    from labkit.extender.checker import Target

    target = Target(url, verify_tls=verify_tls)
    if config is None:
        return target
    from labkit.config import load_config

    try:
        text = Path(config).read_text(encoding="utf-8")
    except OSError as e:
        raise LabError(f"--config {config}: {e.strerror}") from e
    extenders = load_config(text).extenders
    wanted = next((e for e in extenders if e.url_prefix.rstrip("/") == url.rstrip("/")), None)
    if wanted is None and len(extenders) == 1:
        wanted = extenders[0]
    if wanted is None:
        known = ", ".join(e.url_prefix for e in extenders) or "none"
        raise LabError(f"--config {config} has no extender with urlPrefix {url}; it has: {known}")
    return replace(
        target,
        filter=wanted.filter_verb,
        prioritize=wanted.prioritize_verb,
        preempt=wanted.preempt_verb,
        bind=wanted.bind_verb,
        node_cache_capable=wanted.node_cache_capable,
        timeout=wanted.http_timeout,
        guessed=False,
    )


def _show(findings: list[Finding]) -> None:
    import rich.box
    import rich.console
    import rich.table

    glyphs = {"pass": "✓ pass", "fail": "✕ FAIL", "warn": "! warn", "skip": "– skip"}
    table = rich.table.Table(box=rich.box.SIMPLE_HEAD)
    for column in ("case", "verdict", "seen", "what kube-scheduler does"):
        table.add_column(column, overflow="fold")
    for f in findings:
        style = {"fail": "red", "warn": "yellow", "pass": "green"}.get(f.verdict, "")
        table.add_row(
            f.case,
            f"[{style}]{glyphs[f.verdict]}[/]" if style else glyphs[f.verdict],
            rich.markup.escape(f.seen),
            rich.markup.escape(f.consequence),
        )
    rich.console.Console().print(table)
    counts = {v: sum(f.verdict == v for f in findings) for v in glyphs}
    print(f"{counts['pass']} passed, {counts['fail']} failed, {counts['warn']} warnings")


def _cluster(kubeconfig: str | None, in_cluster: bool) -> tuple[Any, Any]:
    if not kubeconfig and not in_cluster:
        return None, None
    from labkit.cluster.live import connect
    from labkit.cluster.reflector import node_source

    client = connect(kubeconfig=kubeconfig, in_cluster=in_cluster)
    return client, node_source(client)


def _until_interrupted(server: Any, service: Any, verbose: bool) -> None:
    import signal
    import threading
    import time

    def stop(*_: object) -> None:
        # shutdown() waits for the serving loop, which must not happen inside a signal handler.
        threading.Thread(target=server.stop).start()

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    seen = 0
    while not server.stopped:
        if verbose:
            for r in [r for r in list(service.log) if r.number > seen]:
                seen = r.number
                print(
                    f"{r.number} {r.verb} {r.pod} {r.form} {r.nodes} nodes, {r.kept} kept {r.error}",
                    flush=True,
                )
        time.sleep(0.1)
