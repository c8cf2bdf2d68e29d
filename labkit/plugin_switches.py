"""`lab.plugins`: what runs, and changing it while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from labkit.errors import LabError
from labkit.framework.plugin import EXTENSION_POINTS, plugin_name
from labkit.plugins.registry import IN_TREE

if TYPE_CHECKING:
    from labkit.engine.framework import Framework
    from labkit.lab import Lab


class PluginSwitches:
    """`lab.plugins`: what runs, and changing it while it runs. `profile` None means all profiles."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    def _frameworks(self, profile: str | None) -> list[Framework]:
        found = self._lab.scheduler.frameworks
        if profile is None:
            return list(found.values())
        if profile not in found:
            raise LabError(f"there is no profile {profile!r}", hint="profiles: " + ", ".join(found))
        return [found[profile]]

    def replace(self, plugin: Any, *, weight: int | None = None, profile: str | None = None) -> None:
        """Run `plugin` (object or class without arguments) from now on, in the place of its namesake."""
        shared = not isinstance(plugin, type)
        own_handle = shared and getattr(plugin, "handle", None) is not None

        def change() -> None:
            made = plugin if shared else plugin()
            if shared and not own_handle and hasattr(made, "handle"):
                # After a rewind the scheduler that it was given is no more.
                made.handle = None
            for framework in self._frameworks(profile):
                framework.replace(made, weight=weight)

        self._change(change)

    enable = replace

    def disable(self, name: str, *points: str, profile: str | None = None) -> None:
        """Take a plugin out, everywhere or at the extension points given (`score`, `filter`, ...).

        LabError for a plugin or an extension point that does not exist.
        """
        check_switch(self._frameworks(profile), name, points)
        self.change(lambda f: f.remove(name, points or None), profile=profile)

    def set_weight(self, name: str, weight: int, *, profile: str | None = None) -> None:
        """Change the weight of a score plugin. LabError when it does not run."""

        def change() -> None:
            for framework in self._frameworks(profile):
                try:
                    framework.set_weight(name, weight)
                except KeyError as e:
                    known = ", ".join(framework.weights())
                    raise LabError(str(e.args[0]), hint=f"score plugins: {known}") from None

        self._change(change)

    def change(self, action: Callable[[Framework], Any], *, profile: str | None = None) -> None:
        """Do `action` to each profile's plugins; `Lab.rewind` repeats it, so it must not hold on to a scheduler."""
        self._change(lambda: [action(f) for f in self._frameworks(profile)])

    def _change(self, change: Callable[[], Any]) -> None:
        def action() -> None:
            change()
            self._lab.scheduler.plugins_changed()

        self._lab._do(action)

    def names(self, point: str, *, profile: str | None = None) -> list[str]:
        """Plugins of an extension point, in call order."""
        return [plugin_name(p) for f in self._frameworks(profile)[:1] for p in f.plugins(point)]

    def weights(self, *, profile: str | None = None) -> dict[str, int]:
        """Score plugin -> weight."""
        found: dict[str, int] = self._frameworks(profile)[0].weights()
        return found

    def __repr__(self) -> str:
        return f"<plugins: {', '.join(f'{n} ×{w}' for n, w in self.weights().items())}>"


def check_switch(frameworks: Iterable[Framework], name: str, points: Iterable[str] = ()) -> None:
    """LabError, with what there is, for a plugin or an extension point that does not exist."""
    known = {plugin_name(p) for f in frameworks for p in f.all_plugins()} | set(IN_TREE)
    if name not in known:
        raise LabError(f"there is no plugin called {name!r}", hint="plugins: " + ", ".join(sorted(known)))
    for point in points:
        if point not in EXTENSION_POINTS:
            raise LabError(
                f"there is no extension point called {point!r}",
                hint="extension points: " + ", ".join(EXTENSION_POINTS),
            )
