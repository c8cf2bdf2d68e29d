"""`labkit apiserver`: a Kubernetes API without a cluster behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:
    import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    import typer

    @app.command()
    def apiserver(
        port: Annotated[int, typer.Option(help="0 = any free port", min=0, max=65535)] = 6443,
        data_dir: Annotated[
            str | None, typer.Option(help="keep the cluster here; without it, it lives in memory")
        ] = None,
        host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
        allow_remote: Annotated[
            bool,
            typer.Option("--allow-remote", help="let --host be an address that other machines can reach"),
        ] = False,
        kubeconfig: Annotated[str | None, typer.Option(help="where to write the kubeconfig")] = None,
        token: Annotated[str | None, typer.Option(help="the admin's token; default: a random one")] = None,
        insecure_http: Annotated[
            bool, typer.Option("--insecure-http", help="plain HTTP without authentication, on loopback only")
        ] = False,
        controllers: Annotated[
            bool,
            typer.Option(
                "--controllers",
                help="run controllers and a kubelet for each node: workloads make pods, pods run",
            ),
        ] = False,
        scheduler: Annotated[
            bool, typer.Option("--scheduler", help="run the lab's scheduler in this process: pods get nodes")
        ] = False,
        seed: Annotated[str | None, typer.Option(help="fixes uids and generated names")] = None,
    ) -> None:
        """Serve the Kubernetes API: kubectl, Python clients and kube-scheduler work against it."""
        from labkit.cluster.apiserver import run_apiserver

        def beside(store: Any) -> Any:
            from labkit.cluster.controllers.plane import ControlPlane

            return ControlPlane(store, controllers=controllers, scheduler=scheduler).stop

        run_apiserver(
            port,
            data_dir,
            host=host,
            tls=not insecure_http,
            token=token,
            kubeconfig=kubeconfig,
            allow_remote=allow_remote,
            seed=seed,
            announce=typer.echo,
            beside=beside if controllers or scheduler else None,
            reap_pods=not controllers,
        )
