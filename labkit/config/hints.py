"""One more line for the common mistakes: what to do, in English and Chinese (spec 03 §11)."""

from __future__ import annotations

import re
from typing import NamedTuple


class _Hint(NamedTuple):
    pattern: re.Pattern[str]
    en: str
    zh: str


def _hint(pattern: str, en: str, zh: str) -> _Hint:
    return _Hint(re.compile(pattern), en, zh)


_RETIRED = "NodeResources(?:LeastAllocated|MostAllocated)|RequestedToCapacityRatio"
_HINTS: tuple[_Hint, ...] = (
    _hint(
        r'unknown field "profiles\[\d+\]\.extenders"',
        "Move `extenders` to the top level, beside `profiles`: extenders are shared by all profiles.",
        "请把 `extenders` 移到最外层，与 `profiles` 并列：extender 由所有 profile 共用。",
    ),
    _hint(
        r'unknown field "extenders\[\d+\]\.(?:url|filter|prioritize|bind|preempt|apiVersion|enableHttps)"',
        "An extender has urlPrefix, filterVerb, prioritizeVerb, bindVerb, preemptVerb and enableHTTPS (this spelling).",
        "extender 的字段是 urlPrefix、filterVerb、prioritizeVerb、bindVerb、preemptVerb 和 enableHTTPS（大小写须一致）。",
    ),
    _hint(
        r'unknown field "(?:algorithmSource|hardPodAffinitySymmetricWeight|disablePreemption|'
        r'healthzBindAddress|metricsBindAddress|bindTimeoutSeconds)"',
        "This field was removed; in v1 such settings are plugin args under profiles[].pluginConfig, or flags.",
        "该字段已被移除；在 v1 中，这类设置写在 profiles[].pluginConfig 的插件 args 里，或用命令行参数。",
    ),
    _hint(
        r'unknown field "featureGates"',
        "Feature gates are not part of the file: set them with --feature-gates.",
        "特性门控不写在文件里：请用 --feature-gates 设置。",
    ),
    _hint(
        r'unknown field "profiles\[\d+\]\.plugins\.\w+\.enabled\[\d+\]\.args"',
        "Plugin args go to profiles[].pluginConfig as {name, args}.",
        "插件的 args 应写在 profiles[].pluginConfig 中，形如 {name, args}。",
    ),
    _hint(
        r"strict decoding error: .*unknown field",
        "Remove the field or correct its name; names are case-sensitive.",
        "请删除该字段或改正其名称；字段名区分大小写。",
    ),
    _hint(
        r"key .* already set in map|duplicate field",
        "Keep only one of the two keys.",
        "请只保留其中一个键。",
    ),
    _hint(
        r'"NodeSelector" does not exist',
        "nodeSelector is checked by the plugin NodeAffinity; there is no plugin NodeSelector.",
        "nodeSelector 由插件 NodeAffinity 检查；没有名为 NodeSelector 的插件。",
    ),
    _hint(
        rf'"(?:{_RETIRED})" does not exist',
        "Use the plugin NodeResourcesFit and set scoringStrategy.type in its args.",
        "请使用插件 NodeResourcesFit，并在其 args 中设置 scoringStrategy.type。",
    ),
    _hint(
        r'Plugin "[^"]*" does not exist',
        "No plugin has this name: check the spelling, or register your plugin before building the profile.",
        "没有叫这个名字的插件：请检查拼写，或先注册自己的插件再构建 profile。",
    ),
    _hint(
        r"does not extend \w+ plugin",
        "Enable the plugin only at extension points it serves, or under multiPoint.",
        "只能在插件支持的扩展点启用它，或在 multiPoint 下启用。",
    ),
    _hint(
        r"already registered as",
        "Name the plugin only once in this list.",
        "该列表中同一插件只能出现一次。",
    ),
    _hint(
        r"only one queue sort plugin required",
        'Enable exactly one queueSort plugin, for example PrioritySort (multiPoint.disabled "*" removes it).',
        '必须且只能启用一个 queueSort 插件，例如 PrioritySort（multiPoint.disabled "*" 会把它去掉）。',
    ),
    _hint(
        r"at least one bind plugin is needed",
        "Enable a bind plugin, for example DefaultBinder.",
        "请启用一个 bind 插件，例如 DefaultBinder。",
    ),
    _hint(
        r"of type v1\.PluginSet",
        "An extension point is an object: `filter: {enabled: [{name: NodeName}], disabled: []}`.",
        "扩展点的值是对象：`filter: {enabled: [{name: NodeName}], disabled: []}`。",
    ),
    _hint(
        r"(?:enabled|disabled) of type v1\.Plugin\b",
        "List entries are objects: write `- name: NodeName` instead of `- NodeName`.",
        "列表项是对象：请写 `- name: NodeName`，而不是 `- NodeName`。",
    ),
    _hint(
        r"(?:httpTimeout|Duration|Deadline|Period|Timeout) of type string|missing unit in duration|unknown unit",
        'Durations are text with a unit, for example "5s", "100ms" or "1m30s".',
        '时长是带单位的文本，例如 "5s"、"100ms" 或 "1m30s"。',
    ),
    _hint(
        r'no kind "Policy" is registered',
        "Policy files are gone since 1.23: write a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1).",
        "Policy 文件自 1.23 起已移除：请改写为 KubeSchedulerConfiguration（kubescheduler.config.k8s.io/v1）。",
    ),
    _hint(
        r'no kind "KubeSchedulerConfiguration" is registered|Object \'apiVersion\' is missing',
        "Set `apiVersion: kubescheduler.config.k8s.io/v1`; it is the only version.",
        "请设置 `apiVersion: kubescheduler.config.k8s.io/v1`；只有这一个版本。",
    ),
    _hint(
        r"no kind \"[^\"]*Args\" is registered",
        "Leave apiVersion and kind out of args, or set them to kubescheduler.config.k8s.io/v1 and <plugin>Args.",
        "args 中可以不写 apiVersion 和 kind；若要写，应为 kubescheduler.config.k8s.io/v1 和 <插件名>Args。",
    ),
    _hint(
        r"no kind \"|Object 'Kind' is missing",
        "Set `kind: KubeSchedulerConfiguration`.",
        "请设置 `kind: KubeSchedulerConfiguration`。",
    ),
    _hint(
        r"scoringStrategy\.type: Unsupported value",
        "Set scoringStrategy.type to LeastAllocated, MostAllocated or RequestedToCapacityRatio.",
        "请把 scoringStrategy.type 设为 LeastAllocated、MostAllocated 或 RequestedToCapacityRatio。",
    ),
    _hint(
        r"was invalid in version",
        "Use NodeVolumeLimits; the limits of single cloud providers were removed.",
        "请使用 NodeVolumeLimits；各云厂商单独的限制插件已移除。",
    ),
    _hint(
        r"schedulerName: Required value",
        "With more than one profile, give each its own schedulerName.",
        "有多个 profile 时，每个都要写自己的 schedulerName。",
    ),
    _hint(
        r"schedulerName: Duplicate value",
        "Each profile needs a schedulerName of its own.",
        "各 profile 的 schedulerName 不能相同。",
    ),
    _hint(
        r"plugins\.queueSort: Invalid value",
        "Configure queueSort the same way in every profile: they share one queue.",
        "所有 profile 共用一个队列，queueSort 的配置必须完全相同。",
    ),
    _hint(
        r"must be greater than `RenewDeadline`",
        "Make leaseDuration longer than renewDeadline; the value shown is renewDeadline's.",
        "请让 leaseDuration 大于 renewDeadline；上面显示的是 renewDeadline 的值。",
    ),
    _hint(
        r"total score of Score plugins could overflow",
        "Weights must be positive; to switch scoring off, disable the plugin at score.",
        "权重必须为正数；要停用打分，请在 score 下禁用该插件。",
    ),
    _hint(
        r"must have a positive weight applied to it",
        "Give an extender with prioritizeVerb a weight of 1 or more.",
        "带有 prioritizeVerb 的 extender 需要设置大于等于 1 的 weight。",
    ),
    _hint(
        r"defaultingType: Invalid value: \"System\"",
        "Set `defaultingType: List` to use your own defaultConstraints.",
        "要使用自己的 defaultConstraints，请设置 `defaultingType: List`。",
    ),
    _hint(
        r"^yaml: .*(?:cannot start any token|a tab character)",
        "Indent with spaces, not with tabs, and quote text that starts with @, ` or %.",
        "请用空格而不是制表符缩进，并给以 @、` 或 % 开头的文本加引号。",
    ),
    _hint(
        r"^yaml: ",
        "The file is not valid YAML near this line: check indentation, colons and quotes.",
        "文件在这一行附近不是合法的 YAML：请检查缩进、冒号和引号。",
    ),
)


def hint_for(message: str, language: str = "en") -> str | None:
    """What to do about a configuration error, in "en" or "zh"; None when it is not a common mistake."""
    for hint in _HINTS:
        if hint.pattern.search(message):
            return hint.zh if language.startswith("zh") else hint.en
    return None
