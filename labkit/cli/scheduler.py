"""`labkit scheduler run`: the lab's scheduler against a live cluster."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

if TYPE_CHECKING:
    import typer


def register(app: typer.Typer) -> None:
    """Add the sub-commands."""
    import typer

    group = typer.Typer(no_args_is_help=True, help="Run the scheduler against a cluster.")
    app.add_typer(group, name="scheduler")

    @group.callback()
    def callback() -> None:
        """Run the scheduler against a cluster."""

    @group.command()
    def run(
        kubeconfig: Annotated[str | None, typer.Option(help="default: $KUBECONFIG or ~/.kube/config")] = None,
        context: Annotated[str | None, typer.Option(help="context of the kubeconfig")] = None,
        in_cluster: Annotated[bool, typer.Option(help="use the pod's service account")] = False,
        config: Annotated[Path | None, typer.Option(help="KubeSchedulerConfiguration")] = None,
        plugin: Annotated[list[str] | None, typer.Option("--plugin", help="module:Class, repeatable")] = None,
        leader_elect: Annotated[
            bool | None, typer.Option("--leader-elect/--no-leader-elect", help="overrides the configuration")
        ] = None,
        feature_gates: Annotated[str | None, typer.Option(help="A=true,B=false")] = None,
        host: Annotated[str, typer.Option(help="address of /healthz and /metrics")] = "127.0.0.1",
        metrics_port: Annotated[int, typer.Option(help="0 = any free port", min=0, max=65535)] = 0,
    ) -> None:
        """Schedule pods until SIGTERM; exit 1 when leadership is lost."""
        from labkit.cluster.live import connect
        from labkit.cluster.live_scheduler import HealthServer, LiveScheduler
        from labkit.config import FeatureGates, load_config
        from labkit.engine.metrics import Metrics
        from labkit.errors import LabError
        from labkit.extender.client import build_extenders
        from labkit.extender.service import load_plugin

        gates = FeatureGates.parse(feature_gates)
        try:
            text = config.read_text(encoding="utf-8") if config else None
        except OSError as e:
            raise LabError(f"--config {config}: {e.strerror}") from e
        loaded = load_config(text, gates=gates, name=str(config) if config else None)
        if leader_elect is not None:
            loaded.leader_election.leader_elect = leader_elect
        sys.path.insert(0, str(Path.cwd()))
        plugins = [load_plugin(p) for p in plugin or ()]
        path = kubeconfig or loaded.client_connection.kubeconfig or None
        client = connect(path, in_cluster=in_cluster, context=context)
        live = LiveScheduler(
            client,
            loaded,
            plugins=plugins,
            metrics=Metrics(),
            extenders=build_extenders(loaded),
            tell=lambda text: typer.echo(text, err=True),
        )
        health = HealthServer(live, host, metrics_port, live.scheduler.metrics)
        signal.signal(signal.SIGTERM, lambda *_: live.stop())
        signal.signal(signal.SIGINT, lambda *_: live.stop())
        profiles = ", ".join(live.scheduler.frameworks)
        typer.echo(f"scheduling for {profiles}; health on http://{host}:{health.port}")
        live.run()
        health.stop()
        if live.lost_leadership:
            typer.echo("leadership was lost", err=True)
            raise typer.Exit(1)
