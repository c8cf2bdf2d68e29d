"""Reading a configuration: defaults, strict decoding, and what the public types hold."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.config import (
    ConfigError,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    FeatureGates,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    VolumeBindingArgs,
    build_profiles,
    check_config,
    completed_yaml,
    default_config,
    load_config,
)
from labkit.config.args import UtilizationShapePoint

from tests.config.support import configuration, profile, refusal

YAML = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 40
leaderElection: {leaderElect: no, leaseDuration: 1m30s}
profiles:
- schedulerName: packer
  percentageOfNodesToScore: 7
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources: [{name: cpu, weight: 3}, {name: nvidia.com/gpu}]
  - name: Mine
    args: {depth: 2, names: [a, b]}
extenders:
- urlPrefix: http://127.0.0.1:8888/
  filterVerb: filter
  ignorable: true
  managedResources: [{name: example.com/licence, ignoredByScheduler: true}]
- urlPrefix: http://127.0.0.1:8889/
  bindVerb: bind
  httpTimeout: 100ms
"""


def test_defaults() -> None:
    """No file at all: one profile, and every number of the reference table."""
    config = default_config()
    assert [profile.scheduler_name for profile in config.profiles] == ["default-scheduler"]
    assert config.profiles[0].percentage_of_nodes_to_score is None
    assert (config.parallelism, config.percentage_of_nodes_to_score) == (16, 0)
    assert (config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds) == (1, 10)
    assert (config.enable_profiling, config.enable_contention_profiling) == (True, True)
    assert (config.client_connection.qps, config.client_connection.burst) == (50, 100)
    election = config.leader_election
    assert (election.lease_duration, election.renew_deadline, election.retry_period) == (15, 10, 2)
    assert config.extenders == []
    assert config.delay_cache_until_active is False


def test_default_args() -> None:
    """Every plugin with args has them, defaulted, whether or not the file names it."""
    args = default_config().profiles[0].plugin_config
    two = [ResourceSpec("cpu", 1), ResourceSpec("memory", 1)]
    assert args["DefaultPreemption"] == DefaultPreemptionArgs(
        min_candidate_nodes_percentage=10, min_candidate_nodes_absolute=100
    )
    assert args["InterPodAffinity"] == InterPodAffinityArgs(hard_pod_affinity_weight=1)
    assert args["NodeAffinity"] == NodeAffinityArgs(added_affinity=None)
    assert args["NodeResourcesBalancedAllocation"] == NodeResourcesBalancedAllocationArgs(resources=two)
    fit = args["NodeResourcesFit"]
    assert isinstance(fit, NodeResourcesFitArgs)
    assert (fit.scoring_strategy.type, fit.scoring_strategy.resources) == ("LeastAllocated", two)
    assert args["PodTopologySpread"] == PodTopologySpreadArgs(defaulting_type="System")
    assert args["VolumeBinding"] == VolumeBindingArgs(bind_timeout_seconds=600)
    dynamic = args["DynamicResources"]
    assert isinstance(dynamic, DynamicResourcesArgs)
    assert (dynamic.filter_timeout, dynamic.binding_timeout) == (10, 600)


def test_a_real_file() -> None:
    """YAML as people write it -> typed values."""
    config = load_config(YAML)
    packer = config.profiles[0]
    assert config.leader_election.leader_elect is False
    assert (config.leader_election.lease_duration, str(config.leader_election.lease_duration)) == (
        90,
        "1m30s",
    )
    assert (packer.scheduler_name, packer.percentage_of_nodes_to_score) == ("packer", 7)
    strategy = packer.plugin_config["NodeResourcesFit"].scoring_strategy
    assert strategy.resources == [ResourceSpec("cpu", 3), ResourceSpec("nvidia.com/gpu", 1)]
    assert packer.plugin_config["Mine"] == {"depth": 2, "names": ["a", "b"]}
    assert [extender.http_timeout for extender in config.extenders] == [5, 0.1]
    assert config.extenders[0].managed_resources == [("example.com/licence", True)]
    assert [extender.bind_verb for extender in config.ordered_extenders()] == ["bind", ""]


def test_extender_resources_replace_ignored_resources() -> None:
    """What extenders manage alone, NodeResourcesFit ignores, in every profile; the user's own list is lost."""
    source = profile(
        None,
        {"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/mine"]}},
    )
    source["extenders"] = [{"managedResources": [{"name": "example.com/theirs", "ignoredByScheduler": True}]}]
    config = load_config(source)
    build_profiles(config, FeatureGates())
    assert config.profiles[0].plugin_config["NodeResourcesFit"].ignored_resources == ["example.com/theirs"]


def test_extender_resources_need_the_fit_plugin() -> None:
    """Without args of NodeResourcesFit in a profile the extenders cannot be built."""
    source = profile({"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}})
    source["extenders"] = [{"managedResources": [{"name": "example.com/x", "ignoredByScheduler": True}]}]
    assert refusal(source) == (
        "init",
        "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config",
    )


def test_text_bytes_and_data_are_the_same() -> None:
    """The same configuration as text, bytes and data."""
    import yaml

    assert load_config(YAML) == load_config(YAML.encode()) == load_config(yaml.safe_load(YAML))


def test_loading_twice_shares_nothing() -> None:
    """Changing one loaded configuration does not change the next."""
    first = default_config()
    first.profiles[0].plugins["score"].enabled.clear()
    first.profiles[0].plugin_config["NodeResourcesFit"].ignored_resources.append("x")
    first.profiles[0].plugins["multi_point"].enabled.clear()
    assert default_config() != first
    assert default_config().profiles[0].plugin_config["NodeResourcesFit"].ignored_resources == []
    assert len(default_config().profiles[0].plugins["multi_point"].enabled) == 20


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("", "Object 'Kind' is missing in ''"),
        ({"kind": "KubeSchedulerConfiguration"}, "Object 'apiVersion' is missing in '{\"kind\": \"KubeSchedulerConfiguration\"}'"),
        (configuration(profiles=["x"]), "json: cannot unmarshal string into Go struct field KubeSchedulerConfiguration.profiles of type v1.KubeSchedulerProfile"),
        (configuration(extenders=[{"httpTimeout": 5}]), "json: cannot unmarshal number into Go struct field Extender.extenders.httpTimeout of type string"),
        (configuration(leaderElection={"leaseDuration": "15 seconds"}), 'time: unknown unit " seconds" in duration "15 seconds"'),
        (configuration(zoo=1, bar=2), 'strict decoding error: unknown field "zoo", unknown field "bar"'),
        ("parallelism: 1\nparallelism: 2\nzoo: 1\nbar: 1\nkind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/v1\n",
         'strict decoding error: yaml: unmarshal errors:\n  line 2: key "parallelism" already set in map, unknown field "bar", unknown field "zoo"'),
        (profile(None, {"name": "NodeResourcesFit", "args": {"foo": 1}}),
         'strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args for plugin NodeResourcesFit: strict decoding error: unknown field "foo"'),
        (profile(None, {"name": "NodeResourcesFit", "args": {"kind": "NodeAffinityArgs"}}),
         "decoding .profiles[0].pluginConfig[0]: args for plugin NodeResourcesFit were not of type NodeResourcesFitArgs.kubescheduler.config.k8s.io, got NodeAffinityArgs.kubescheduler.config.k8s.io"),
    ],
)  # fmt: skip
def test_refused_while_loading(source: Any, text: str) -> None:
    """Input -> the text of the first failing stage."""
    with pytest.raises(ConfigError) as caught:
        load_config(source)
    assert (caught.value.stage, caught.value.message) == ("load", text)


def test_file_name_in_the_error() -> None:
    """The name of the file goes to `source` and into the text that is shown, not into the message."""
    with pytest.raises(ConfigError) as caught:
        load_config(configuration(parallelism=0), name="my.yaml")
    error = caught.value
    assert error.source == "my.yaml"
    assert str(error).startswith("my.yaml: parallelism: Invalid value: 0")


def test_check_config_accepts_and_refuses() -> None:
    """check_config runs through to the profiles."""
    check_config(None)
    with pytest.raises(ConfigError, match="does not exist"):
        check_config(profile({"filter": {"enabled": [{"name": "Nobody"}]}}))


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "{a: " * 5_000, "- " * 20_000, "\x00", "\udcff", "&a [*a]"]
)
def test_hostile_text_is_refused_calmly(text: str) -> None:
    """Deep nesting, control characters, endless aliases: a ConfigError, nothing else."""
    with pytest.raises(ConfigError):
        load_config(text)


def test_alias_bomb_is_refused() -> None:
    """A document whose aliases multiply is refused before it fills the memory."""
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(ConfigError, match="excessive aliasing"):
        load_config("\n".join(levels))


def test_completed_yaml_can_be_read_again() -> None:
    """The completed configuration is a configuration, and completing it again changes nothing."""
    once = load_config(YAML)
    build_profiles(once, FeatureGates())
    text = completed_yaml(once)
    again = load_config(text)
    build_profiles(again, FeatureGates())
    assert completed_yaml(again) == text


def test_storage_capacity_scoring_gate() -> None:
    """With its gate on, VolumeBinding has a default shape; with the gate off a shape is refused."""
    gates = FeatureGates({"StorageCapacityScoring": True})
    args = default_config(gates).profiles[0].plugin_config["VolumeBinding"]
    assert args.shape == [UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0)]
    stage, text = refusal(
        profile(None, {"name": "VolumeBinding", "args": {"shape": [{"utilization": 0, "score": 1}]}})
    )
    assert stage == "validate"
    assert text.endswith("remove it or turn on the feature gate StorageCapacityScoring")
