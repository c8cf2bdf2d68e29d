"""The configuration editor: a KubeSchedulerConfiguration, checked while it is typed, and what it would change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labkit.config import ConfigError, SchedulerConfig, load_config
from labkit.i18n import get_language, t
from labkit.what_if import WhatIf, gates_of, own_plugins
from labkit.widgets import view as v
from labkit.widgets.config_plugins import (
    Running,
    no_effect,
    points_table,
    running,
    weights_table,
    would_run,
)
from labkit.widgets.config_settings import settings, settings_table
from labkit.widgets.plugin_editor import comparison
from labkit.widgets.view import Block

if TYPE_CHECKING:
    from typing import Any

    from labkit.lab import Lab

#: More waiting pods than this are decided on demand: typing must not wait for them.
_LIVE = 60


class ConfigEditorController:
    """A file and its consequences for the lab. Nothing in the lab changes.

    `error` is kube-scheduler's refusal of the text, or None; `accepted` is the last configuration that was not
    refused, and `plugins` what runs under it.
    """

    def __init__(self, lab: Lab, text: str) -> None:
        self.lab = lab
        self.text = self._first = text.strip("\n") + "\n"
        self.error: ConfigError | None = None
        self.accepted: SchedulerConfig | None = None
        self.plugins: dict[str, Running] = {}
        self.profile = ""
        self.result: WhatIf | None = None
        self.shown = ""
        self._compared: tuple[SchedulerConfig, int] | None = None
        self._read()

    def handle(self, id: str, value: Any) -> None:
        """`code` is the text, `profile` and `pod` pick what to look at, `compare` decides the pods, `reset` begins anew."""
        if id == "code":
            self.text = str(value)
        elif id == "reset":
            self.text = self._first
        elif id == "profile":
            self.profile = str(value)
        elif id == "pod":
            self.shown = str(value)
        self._read(compare=id == "compare")

    def _read(self, *, compare: bool = False) -> None:
        """All that kube-scheduler does with the file at start-up, up to the first refusal."""
        try:
            config = load_config(self.text, gates=gates_of(self.lab))
            plugins = would_run(self.lab, config)
        except ConfigError as error:
            self.error = error
            return
        self.error, self.accepted, self.plugins = None, config, plugins
        if self.profile not in plugins:
            self.profile = next(iter(plugins))
        state = (config, self.lab.history)
        if self._compared == state:
            return
        self.result = None
        if compare or self._waiting() <= _LIVE:
            self._compare(state)

    def _waiting(self) -> int:
        return sum(not (p.get("spec") or {}).get("nodeName") for p in self.lab.look("Pod"))

    def _compare(self, state: tuple[SchedulerConfig, int]) -> None:
        self.result, self._compared = self.lab.what_if(config=self.text), state
        pods = [d.pod for d in self.result.differences]
        if self.shown not in pods:
            moved = [d.pod for d in self.result.changed]
            self.shown = (moved or pods or [""])[0]

    # --- what is shown ------------------------------------------------------------------------------------

    def view(self) -> list[Block]:
        """The file and the verdict on it; plugins; the pods before and after."""
        editor = [
            v.controls(v.code("code", "KubeSchedulerConfiguration (YAML)", self.text, rows=self._rows())),
            *self._verdict(),
            v.buttons(
                v.button(
                    "reset", t("Back to the first text", "恢复初始内容"), disabled=self.text == self._first
                )
            ),
        ]
        blocks: list[Block] = [
            v.toolbar(t("Configuration editor", "配置编辑器"), sub=self.summary()),
            v.card(None, *editor),
        ]
        if self.accepted is None:
            return blocks
        blocks.append(self._plugins())
        if self.result is not None:
            return [*blocks, *self._lost(), *comparison(self.result, self.shown)]
        waiting = self._waiting()
        words = t(f"Decide {waiting} waiting pods twice", f"把 {waiting} 个等待的 Pod 各决定两次")
        return [*blocks, v.buttons(v.button("compare", words, primary=True, disabled=self.error is not None))]

    def _rows(self) -> int:
        return min(30, max(10, self.text.count("\n") + 2))

    def _verdict(self) -> list[Block]:
        if self.error is None:
            return [
                v.notice("pass", t("kube-scheduler accepts this file.", "kube-scheduler 接受这个文件。")),
                *self._idle(),
            ]
        stage = {
            "load": t("1 of 3, reading the file", "第 1 步（共 3 步），读取文件"),
            "validate": t("2 of 3, validation", "第 2 步（共 3 步），校验"),
            "init": t("3 of 3, building the profiles", "第 3 步（共 3 步），构建 profile"),
        }[self.error.stage]
        found: list[Block] = [
            v.notice("error", self.error.message),
            v.verdict(
                self._what_to_do(self.error),
                t(
                    f"Refused at stage {stage}; a later stage may find more.",
                    f"在{stage}时被拒绝；后面的步骤可能还会发现问题。",
                ),
            ),
        ]
        if self.accepted is not None:
            words = t("Below: the last text that was accepted.", "下面显示的是上一次被接受的内容。")
            found.append(v.text(words, mute=True))
        return found

    def _what_to_do(self, error: ConfigError) -> str:
        hint = error.hint_in(get_language())
        if hint is None:
            hint = t(
                "Find the place that the message names, and compare it with the field's documentation.",
                "找到报错中指出的位置，对照该字段的文档修改。",
            )
        return t(f"What to do: {hint}", f"怎么办：{hint}")

    def _idle(self) -> list[Block]:
        if self.accepted is None:
            return []
        own = [getattr(p, "__name__", type(p).__name__) for p in own_plugins(self.lab)]
        return [
            v.notice(
                "wait",
                t(
                    f"Accepted, but without effect: no plugin is called {name} (disabled at {point}, profile {profile}).",
                    f"被接受，但毫无作用：没有叫 {name} 的插件（profile {profile}，在 {point} 处禁用）。",
                ),
            )
            for profile, point, name in no_effect(self.accepted, own)
        ]

    def _plugins(self) -> Block:
        now = running(self.lab.scheduler.frameworks)
        before = now.get(self.profile)
        profile = self.profile
        items: list[Block] = []
        if len(self.plugins) > 1:
            items.append(
                v.controls(v.select("profile", "profile", self.profile, [(p, p) for p in self.plugins]))
            )
        if before is None:
            before = next(iter(now.values()))
            profile = other = next(iter(now))
            items.append(
                v.text(
                    t(
                        f"The lab has no profile {self.profile} now; compared with {other}.",
                        f"lab 现在没有 profile {self.profile}；与 {other} 相比。",
                    ),
                    mute=True,
                )
            )
        after = self.plugins[self.profile]
        items += [
            v.heading(t("Score plugins and their weights", "Score 插件及其权重")),
            weights_table(before, after),
            v.heading(t("Plugins by extension point", "各扩展点的插件")),
            points_table(before, after),
            v.heading(t("Settings and arguments that differ", "不同的设置与参数")),
            settings_table(*self._settings(profile)),
        ]
        return v.card(t(f"What runs in {self.profile}", f"{self.profile} 中运行什么"), *items)

    def _settings(self, profile: str) -> tuple[dict[str, str], dict[str, str]]:
        """Of the lab (its `profile`) and of the file."""
        assert self.accepted is not None
        return settings(self.lab.scheduler.config, profile), settings(self.accepted, self.profile)

    def _lost(self) -> list[Block]:
        """Pods that no profile of the file schedules."""
        assert self.result is not None
        lost = [d.pod.removeprefix("default/") for d in self.result.differences if d.after is None]
        if not lost:
            return []
        words = t(
            f"No profile of this file schedules {', '.join(lost[:8])}: their schedulerName is not in it.",
            f"这个文件里没有 profile 调度 {', '.join(lost[:8])}：其中没有它们的 schedulerName。",
        )
        return [v.notice("fail", words)]

    def summary(self) -> str:
        """Refused and why, or how many pods end differently."""
        if self.error is not None:
            return t(f"refused: {self.error.message}", f"被拒绝：{self.error.message}")
        if self.result is None:
            return t("accepted", "已接受")
        if not self.result.differences:
            return t("accepted; no pod is waiting", "已接受；没有等待中的 Pod")
        said = self.result.summary()
        return t(f"accepted; {said}", f"已接受；{said}")
