"""The configuration after defaulting: what the rest of the lab reads (spec 03 §2 to §4)."""

from __future__ import annotations

from typing import Any

import msgspec

from labkit.config.gotext import Duration, seconds

DEFAULT_SCHEDULER_NAME = "default-scheduler"
EXTENDER_TIMEOUT = seconds(5)


class LeaderElection(msgspec.Struct, kw_only=True):
    """`leaderElection`. Durations are in seconds."""

    leader_elect: bool = True
    lease_duration: Duration = seconds(15)
    renew_deadline: Duration = seconds(10)
    retry_period: Duration = seconds(2)
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnection(msgspec.Struct, kw_only=True):
    """`clientConnection`. `qps` is requests per second."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float = 50.0
    burst: int = 100


class PluginRef(msgspec.Struct, frozen=True):
    """A plugin in an `enabled` list; weight 0 means unset."""

    name: str
    weight: int = 0


class PluginSet(msgspec.Struct):
    """What is enabled and disabled at one extension point, after merging with the defaults."""

    enabled: list[PluginRef] = []
    disabled: list[str] = []


class ProfileConfig(msgspec.Struct, kw_only=True):
    """One scheduler name and its plugins.

    `plugins` has the merged set of every key (`pre_enqueue` ... `multi_point`); `plugin_config` maps a plugin
    name to its typed args, or for a plugin without an args type to whatever was given.
    `percentage_of_nodes_to_score` None means: use the global one.
    """

    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    percentage_of_nodes_to_score: int | None = None
    plugins: dict[str, PluginSet] = {}
    plugin_config: dict[str, Any] = {}


class ExtenderTLSConfig(msgspec.Struct, kw_only=True):
    """`tlsConfig` of an extender; data wins over files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class ExtenderConfig(msgspec.Struct, kw_only=True):
    """One extender (spec 04 §1). `http_timeout` is in seconds; `managed_resources` has (name, ignored_by_scheduler)."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = False
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: Duration = EXTENDER_TIMEOUT
    node_cache_capable: bool = False
    managed_resources: list[tuple[str, bool]] = []
    ignorable: bool = False


class SchedulerConfig(msgspec.Struct, kw_only=True):
    """A whole KubeSchedulerConfiguration after defaulting."""

    parallelism: int = 16
    leader_election: LeaderElection = msgspec.field(default_factory=LeaderElection)
    client_connection: ClientConnection = msgspec.field(default_factory=ClientConnection)
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: int = 0
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    profiles: list[ProfileConfig] = []
    extenders: list[ExtenderConfig] = []
    delay_cache_until_active: bool = False

    def profile(self, scheduler_name: str) -> ProfileConfig | None:
        """The profile of that name, or None."""
        return next((p for p in self.profiles if p.scheduler_name == scheduler_name), None)

    def ordered_extenders(self) -> list[ExtenderConfig]:
        """The extenders in the order of calling: the ignorable ones last (spec 04 §1)."""
        return sorted(self.extenders, key=lambda extender: extender.ignorable)


class OpaqueArgs(msgspec.Struct, frozen=True):
    """Args of a plugin without an args type, on their way through validation: JSON text and data."""

    text: str
    data: Any
