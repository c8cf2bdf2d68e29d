"""What every widget is: a controller that knows, and a view that the browser draws.

Controllers hold the state and know nothing of browsers or kernels: `handle(id, value)` takes what a learner
did, `view()` gives the blocks to draw, `summary()` says it in words. `LabWidget` connects one to the page.
"""

from __future__ import annotations

from typing import Any, Protocol

import anywidget
import traitlets

from labkit.i18n import get_language
from labkit.widgets.style import asset
from labkit.widgets.view import Block, notice


class Controller(Protocol):
    """State and answers of one widget."""

    def handle(self, id: str, value: Any) -> None:
        """A control was moved to `value`, or a button was pressed (`value` None)."""

    def view(self) -> list[Block]:
        """What to draw now."""

    def summary(self) -> str:
        """The same in one line of text."""


class LabWidget(anywidget.AnyWidget):  # type: ignore[misc]  # anywidget is untyped
    """Shows a controller. What goes wrong in it is shown as a notice; the widget lives on."""

    _esm = asset("lab.js")
    _css = asset("lab.css")
    view = traitlets.Dict().tag(sync=True)

    def __init__(self, controller: Controller, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.controller = controller
        self._revision = 0
        #: The client whose message was handled last, and that message's number; see `render` in lab.js.
        self._answered: tuple[str, int] | None = None
        self.refresh()
        self.on_msg(self._on_message)

    def refresh(self, problem: Block | None = None) -> None:
        """Draw again, after the controller was changed from code."""
        self._revision += 1
        blocks = ([problem] if problem else []) + self.controller.view()
        view: dict[str, Any] = {
            "lang": "zh-CN" if get_language() == "zh" else "en",
            "label": self.controller.summary(),
            "revision": self._revision,
            "blocks": blocks,
        }
        if self._answered is not None:
            view["answered"] = list(self._answered)
        self.view = view

    def set(self, id: str, value: Any = None) -> None:
        """Do from code what a learner does with the control `id`."""
        self._on_message(self, {"event": "set", "id": id, "value": value}, [])

    def _on_message(self, _: Any, content: dict[str, Any], __: Any) -> None:
        problem = None
        if isinstance(content.get("number"), int):
            self._answered = (str(content.get("client", "")), content["number"])
        try:
            self.controller.handle(str(content.get("id", "")), content.get("value"))
        except Exception as e:
            problem = notice("error", f"{type(e).__name__}: {e}")
        self.refresh(problem)

    def __repr__(self) -> str:
        return f"<{type(self.controller).__name__.removesuffix('Controller')}: {self.controller.summary()}>"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        if data is not None and "text/plain" in data:
            data["text/plain"] = repr(self)
        return bundle
