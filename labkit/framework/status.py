"""What a plugin answers.

    Status                          code            is_success  is_rejected
    ├── None (no status)            Success         yes
    ├── Status.success()            Success         yes
    ├── Status.error(exc|text)      Error
    ├── Status.unschedulable(...)   Unschedulable               yes   preemption might help
    ├── Status.unresolvable(...)    UnschedulableAndUnresolvable yes  preemption on that node is pointless
    ├── Status.pending(...)         Pending                     yes   requeued without backoff
    ├── Status.wait(...)            Wait            Permit only
    └── Status.skip()               Skip            PreFilter, PreScore, Bind, PreBindPreFlight only

Source: scheduling framework, spec 01 §1.1.
"""

from __future__ import annotations

from enum import IntEnum


class Code(IntEnum):
    """Status codes; `label` is the text that metrics, traces and messages use."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def label(self) -> str:
        """`Success`, `UnschedulableAndUnresolvable`, ..."""
        return _LABELS[self]


_LABELS = ("Success", "Error", "Unschedulable", "UnschedulableAndUnresolvable", "Wait", "Skip", "Pending")
_REJECTED = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)


class Status:
    """A verdict: a code, its reasons, and the plugin that gave it. Immutable by convention.

    `error` holds the exception of an `Error` status (its text leads the reasons); `traceback` the text shown
    in a trace when a plugin raised.
    """

    __slots__ = ("_reasons", "code", "error", "plugin", "traceback")

    def __init__(
        self,
        code: Code,
        *reasons: str,
        plugin: str = "",
        error: BaseException | None = None,
        traceback: str = "",
    ) -> None:
        self.code = code
        self._reasons = reasons
        self.plugin = plugin
        self.error = error
        self.traceback = traceback

    @classmethod
    def success(cls) -> Status:
        """Fine; the same as returning None."""
        return cls(Code.SUCCESS)

    @classmethod
    def unschedulable(cls, *reasons: str, plugin: str = "") -> Status:
        """Rejected; preemption might help."""
        return cls(Code.UNSCHEDULABLE, *reasons, plugin=plugin)

    @classmethod
    def unresolvable(cls, *reasons: str, plugin: str = "") -> Status:
        """Rejected, and removing pods from the node would not help."""
        return cls(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, *reasons, plugin=plugin)

    @classmethod
    def pending(cls, *reasons: str, plugin: str = "") -> Status:
        """Rejected, but when requeued the pod bypasses backoff."""
        return cls(Code.PENDING, *reasons, plugin=plugin)

    @classmethod
    def wait(cls, *reasons: str, plugin: str = "") -> Status:
        """Permit only: hold the pod."""
        return cls(Code.WAIT, *reasons, plugin=plugin)

    @classmethod
    def skip(cls, *reasons: str, plugin: str = "") -> Status:
        """Nothing for this plugin to do."""
        return cls(Code.SKIP, *reasons, plugin=plugin) if reasons or plugin else _SKIP

    @classmethod
    def as_error_of(cls, error: BaseException | str, *, plugin: str = "", traceback: str = "") -> Status:
        """An internal failure; the pod is retried after error backoff."""
        exc = error if isinstance(error, BaseException) else RuntimeError(error)
        return cls(Code.ERROR, plugin=plugin, error=exc, traceback=traceback)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons; the error's text, if there is one, comes first."""
        return (str(self.error), *self._reasons) if self.error is not None else self._reasons

    @property
    def message(self) -> str:
        """All reasons joined by `, `."""
        return ", ".join(self.reasons)

    @property
    def is_success(self) -> bool:
        """Code is Success."""
        return self.code == Code.SUCCESS

    @property
    def is_skip(self) -> bool:
        """Code is Skip."""
        return self.code == Code.SKIP

    @property
    def is_wait(self) -> bool:
        """Code is Wait."""
        return self.code == Code.WAIT

    @property
    def is_rejected(self) -> bool:
        """Code is Unschedulable, UnschedulableAndUnresolvable or Pending."""
        return self.code in _REJECTED

    def with_plugin(self, plugin: str) -> Status:
        """The same status, attributed to `plugin`."""
        return Status(self.code, *self._reasons, plugin=plugin, error=self.error, traceback=self.traceback)

    def __repr__(self) -> str:
        by = f" by {self.plugin}" if self.plugin else ""
        return f"<{self.code.label}{by}: {self.message}>" if self.reasons else f"<{self.code.label}{by}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Status):
            return NotImplemented
        return (self.code, self.reasons, self.plugin) == (other.code, other.reasons, other.plugin)

    __hash__ = None  # type: ignore[assignment]


#: Said so often that one is enough.
_SKIP = Status(Code.SKIP)


def is_success(status: Status | None) -> bool:
    """None counts as Success."""
    return status is None or status.code == Code.SUCCESS
