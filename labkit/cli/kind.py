"""`labkit kind`: a kind cluster with the lab's scheduler, or with your extender behind its kube-scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

if TYPE_CHECKING:
    import typer


def register(app: typer.Typer) -> None:
    """Add the sub-commands."""
    import typer

    group = typer.Typer(no_args_is_help=True, help="Create and prepare a kind cluster.")
    app.add_typer(group, name="kind")

    @group.command()
    def up(
        name: Annotated[str, typer.Option(help="name of the cluster")] = "labkit",
        directory: Annotated[Path, typer.Option("--dir", help="where the generated files go")] = Path(
            "build/kind"
        ),
        scheduler_config: Annotated[
            Path | None, typer.Option(help="KubeSchedulerConfiguration for the cluster's own kube-scheduler")
        ] = None,
        extender_host: Annotated[
            str | None,
            typer.Option(help="this machine as kind's nodes see it; default: the gateway of network kind"),
        ] = None,
        image: Annotated[
            str | None, typer.Option(help="node image; default: Kubernetes 1.36 for your kind release")
        ] = None,
        scheduler: Annotated[
            bool, typer.Option("--scheduler/--no-scheduler", help="run the lab's scheduler in the cluster")
        ] = True,
        kwok: Annotated[int, typer.Option(help="this many KWOK nodes", min=0, max=10_000)] = 0,
        kwok_manifests: Annotated[
            str | None, typer.Option(help="folder or URL with kwok.yaml and stage-fast.yaml")
        ] = None,
    ) -> None:
        """Create the cluster and start the lab's scheduler in it."""
        from labkit.cluster.kind import KindCluster, require_programs

        require_programs()
        KindCluster(name, typer.echo).up(
            directory,
            image=image,
            config=scheduler_config,
            extender_host=extender_host,
            kwok=kwok,
            kwok_manifests=kwok_manifests,
            scheduler=scheduler,
        )

    @group.command()
    def down(name: Annotated[str, typer.Option(help="name of the cluster")] = "labkit") -> None:
        """Delete the cluster."""
        from labkit.cluster.kind import KindCluster, require_programs

        require_programs()
        KindCluster(name, typer.echo).down()

    @group.command()
    def config(
        name: Annotated[str, typer.Option(help="name of the cluster")] = "labkit",
        directory: Annotated[Path, typer.Option("--dir", help="where the generated files go")] = Path(
            "build/kind"
        ),
        scheduler_config: Annotated[
            Path | None, typer.Option(help="KubeSchedulerConfiguration for the cluster's own kube-scheduler")
        ] = None,
        extender_host: Annotated[
            str | None,
            typer.Option(help="this machine as kind's nodes see it; default: the gateway of network kind"),
        ] = None,
        image: Annotated[
            str | None, typer.Option(help="node image; default: Kubernetes 1.36 for your kind release")
        ] = None,
    ) -> None:
        """Write kind's cluster configuration; needs neither Docker nor kind."""
        import shutil

        from labkit.cluster.kind import KindCluster, write_files

        if extender_host is None and (shutil.which("docker") or shutil.which("podman")):
            extender_host = KindCluster(name, typer.echo).gateway()
        path = write_files(
            directory, name=name, image=image, config=scheduler_config, extender_host=extender_host
        )
        typer.echo(f"kind create cluster --config {path}")
