"""The command: `yawollet` inside a machine, `perdure yawollet` elsewhere.

The first flags are those that a machine's user data passes to yawol's agent. Perdure's own flags come last.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

_OURS = "Paths and ports, as in the machine image"
_LOG_LEVELS = {"debug": "DEBUG", "info": "INFO", "warn": "WARNING", "warning": "WARNING", "error": "ERROR"}


class _Command(TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Drop `--zap-devel` and `--zap-devel=true`, which have no effect. Go's programs accept both."""
        return super().parse_args(ctx, [each for each in args if each.partition("=")[0] != "--zap-devel"])


def register(app: typer.Typer) -> None:
    app.command(hidden=True, cls=_Command)(yawollet)  # the program `yawollet` is the same


def yawollet(
    namespace: Annotated[str, typer.Option(help="Namespace of the LoadBalancer and the LoadBalancerMachine.")],
    loadbalancer_name: Annotated[str, typer.Option(help="The LoadBalancer to serve.")],
    loadbalancer_machine_name: Annotated[str, typer.Option(help="The LoadBalancerMachine that gets the reports.")],
    listen_address: Annotated[str, typer.Option(help="The address that Envoy listens on; all if empty.")] = "",
    listen_interface: Annotated[str, typer.Option(help="Let Envoy listen at this interface's last IPv4 address.")] = "",
    requeue_time: Annotated[str, typer.Option(help="Longest time between two passes, 5 to 170 seconds.")] = "30",
    keepalived_stats_file: Annotated[
        str, typer.Option(help="Where keepalived writes its statistics; empty if there is no keepalived.")
    ] = "/tmp/keepalived.stats",  # noqa: S108 - where the machine image puts it
    metrics_bind_address: Annotated[
        str, typer.Option(help="Address that serves the metrics of the agent's process; 0 turns this off.")
    ] = "0",
    health_probe_bind_address: Annotated[
        str, typer.Option(help="Address that serves readyz; 0 turns this off.")
    ] = "127.0.0.1:8080",
    kubeconfig: Annotated[
        str, typer.Option(help="The kubeconfig file; without it KUBECONFIG or the pod's ServiceAccount is used.")
    ] = "",
    zap_log_level: Annotated[str, typer.Option(hidden=True)] = "",
    zap_encoder: Annotated[str, typer.Option(hidden=True)] = "",
    zap_stacktrace_level: Annotated[str, typer.Option(hidden=True)] = "",
    zap_time_encoding: Annotated[str, typer.Option(hidden=True)] = "",
    ads_bind_address: Annotated[
        str, typer.Option(help="The address at which Envoy fetches its configuration.", rich_help_panel=_OURS)
    ] = "127.0.0.1:18000",
    envoy_admin_address: Annotated[
        str, typer.Option(help="The address of Envoy's admin interface.", rich_help_panel=_OURS)
    ] = "127.0.0.1:9000",
    keepalived_pid_file: Annotated[Path, typer.Option(help="keepalived's PID file.", rich_help_panel=_OURS)] = Path(
        "/run/keepalived.pid"
    ),
    snapshot_file: Annotated[
        Path, typer.Option(help="The file with the configuration that Envoy accepted last.", rich_help_panel=_OURS)
    ] = Path("/var/lib/yawollet/snapshot.json"),
    state: Annotated[Path | None, typer.Option("--state", hidden=True)] = None,
) -> None:
    """Configure Envoy inside a load balancer's machine, and report the machine's health."""
    import asyncio

    from engine.settings import Settings
    from engine.telemetry import configure_logging
    from yawollet import options as given
    from yawollet.main import run

    try:
        listen = (
            given.interface_address(listen_interface) if listen_interface and not listen_address else listen_address
        )
        ads, admin = given.server_address(ads_bind_address), given.server_address(envoy_admin_address)
        if ads is None or admin is None:
            raise ValueError("--ads-bind-address and --envoy-admin-address must not be 0: the agent needs Envoy")
        options = given.Options(
            namespace=namespace,
            load_balancer=loadbalancer_name,
            machine=loadbalancer_machine_name,
            listen_address=listen or given.EVERY_ADDRESS,
            requeue=given.requeue_time(requeue_time),
            stats_file=Path(keepalived_stats_file) if keepalived_stats_file else None,
            pid_file=keepalived_pid_file,
            health=given.server_address(health_probe_bind_address),
            metrics=given.server_address(metrics_bind_address),
            kubeconfig=kubeconfig,
            ads=ads,
            admin=admin,
            snapshot_file=snapshot_file,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    level = _LOG_LEVELS.get(zap_log_level)
    settings = Settings.model_validate({"log_level": level}) if level else Settings()
    configure_logging(settings, "yawollet")
    asyncio.run(run(options, settings))


def main() -> None:
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(cls=_Command)(yawollet)
    app()


if __name__ == "__main__":
    main()
