"""Label selectors, node selectors and tolerations, with Kubernetes' exact semantics (spec 10 §10.0.2, §10.3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from labkit.objects.meta import LabelSelector
from labkit.objects.names import (
    aggregate,
    invalid,
    label_key_errors,
    label_value_errors,
    unsupported,
)
from labkit.objects.names import is_label_key as is_label_key
from labkit.objects.names import is_label_value as is_label_value
from labkit.objects.node import Node, Taint
from labkit.objects.pod import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, Toleration

Labels = Mapping[str, str]

_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_NODE_OPERATORS = (*_LABEL_OPERATORS, "Gt", "Lt")
_INT = re.compile(r"[+-]?[0-9]+")
_CANONICAL_INT = re.compile(r"0|-?[1-9][0-9]*")
_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1
#: Python refuses to read integers of thousands of digits.
_LONGEST_INT = 1000


class SelectorError(ValueError):
    """A selector that Kubernetes refuses to parse. `messages`: one for each thing that is wrong."""

    def __init__(self, *messages: str) -> None:
        super().__init__(aggregate(messages))
        self.messages = messages


class Requirement:
    """`key operator values`; call `matches(labels)`. SelectorError, with `path` before the field, when malformed."""

    __slots__ = ("_test", "key", "operator", "values")

    def __init__(self, key: str, operator: str, values: Sequence[str], path: str = "") -> None:
        if operator not in _NODE_OPERATORS:
            where = f"{path}.operator" if path else "operator"
            raise SelectorError(unsupported(where, operator, _NODE_OPERATORS))
        errors = _requirement_errors(key, operator, values, path)
        if errors:
            raise SelectorError(*errors)
        self.key = key
        self.operator = operator
        self.values = tuple(values)
        self._test = _test_of(operator, self.values)

    def matches(self, labels: Labels) -> bool:
        """True when `labels` satisfy the requirement."""
        return self._test(labels.get(self.key))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Requirement) and (self.key, self.operator, set(self.values)) == (
            other.key,
            other.operator,
            set(other.values),
        )

    def __hash__(self) -> int:
        return hash((self.key, self.operator, frozenset(self.values)))


class Selector:
    """Requirements that must all hold. `NOTHING` matches no object and is not empty."""

    __slots__ = ("_equal", "_rest", "nothing")

    def __init__(
        self,
        equal: Mapping[str, str] = {},
        requirements: Iterable[Requirement] = (),
        *,
        nothing: bool = False,
    ) -> None:
        self._equal = tuple(equal.items())
        self._rest = tuple(requirements)
        self.nothing = nothing

    @property
    def equal(self) -> dict[str, str]:
        """Labels that must be equal."""
        return dict(self._equal)

    @property
    def rest(self) -> tuple[Requirement, ...]:
        """All other requirements."""
        return self._rest

    @property
    def is_empty(self) -> bool:
        """No requirement at all: matches everything."""
        return not self.nothing and not self._equal and not self._rest

    def matches(self, labels: Labels) -> bool:
        """True when `labels` satisfy every requirement."""
        if self.nothing:
            return False
        for key, value in self._equal:
            if labels.get(key) != value:
                return False
        return all(r.matches(labels) for r in self._rest)

    def and_(self, *more: Requirement) -> Selector:
        """The same with further requirements; nothing stays nothing."""
        return self if self.nothing else Selector(dict(self._equal), (*self._rest, *more))


NOTHING = Selector(nothing=True)
EVERYTHING = Selector()


def compile_label_selector(selector: LabelSelector | None) -> Selector:
    """None selects nothing, an empty selector everything. SelectorError when it does not parse."""
    if selector is None:
        return NOTHING
    if not selector.match_labels and not selector.match_expressions:
        return EVERYTHING
    # Equality from matchLabels goes through the same validation as an In with one value.
    for key, value in sorted(selector.match_labels.items()):
        errors = _requirement_errors(key, "In", (value,), "")
        if errors:
            raise SelectorError(*errors)
    rest = []
    for e in selector.match_expressions:
        if e.operator not in _LABEL_OPERATORS:
            raise SelectorError(f'"{e.operator}" is not a valid label selector operator')
        rest.append(Requirement(e.key, e.operator, e.values))
    return Selector(selector.match_labels, rest)


def selector_from_map(labels: Mapping[str, str] | None) -> Selector:
    """Plain equality, unvalidated (nodeSelector, service selectors); empty or absent selects everything."""
    return Selector(labels) if labels else EVERYTHING


class NodeSelectorTermMatcher:
    """One term. `error` holds the parse error of a term that never matches; `path` is where the term stands."""

    __slots__ = ("_fields", "_labels", "empty", "error")

    def __init__(self, term: NodeSelectorTerm, path: str = "") -> None:
        self.empty = not term.match_expressions and not term.match_fields
        self.error: SelectorError | None = None
        self._labels: list[Requirement] = []
        self._fields = term.match_fields
        messages: list[str] = []
        below = f"{path}." if path else ""
        for i, e in enumerate(term.match_expressions):
            try:
                self._labels.append(Requirement(e.key, e.operator, e.values, f"{below}matchExpressions[{i}]"))
            except SelectorError as error:
                messages += error.messages
        for i, f in enumerate(term.match_fields):
            messages += _field_errors(f, f"{below}matchFields[{i}]")
        if messages:
            self.error = SelectorError(*messages)

    def matches(self, node: Node) -> bool:
        """Expressions on labels AND fields on the name; empty and broken terms never match."""
        if self.empty or self.error is not None:
            return False
        labels = node.metadata.labels
        for r in self._labels:
            if not r.matches(labels):
                return False
        name = node.metadata.name
        if self._fields and name:
            for f in self._fields:
                actual = name if f.key == "metadata.name" else ""
                if (actual == f.values[0]) != (f.operator == "In"):
                    return False
        return True


class NodeSelectorMatcher:
    """A node selector: terms are ORed; without a usable term it matches no node."""

    __slots__ = ("terms",)

    def __init__(self, selector: NodeSelector) -> None:
        terms = enumerate(selector.node_selector_terms)
        matchers = (NodeSelectorTermMatcher(t, f"nodeSelectorTerms[{i}]") for i, t in terms)
        self.terms = [m for m in matchers if not m.empty]

    @property
    def error(self) -> SelectorError | None:
        """All that is wrong with any term, or None."""
        messages = [m for t in self.terms if t.error is not None for m in t.error.messages]
        return SelectorError(*messages) if messages else None

    def matches(self, node: Node) -> bool:
        """True when some term matches."""
        return any(t.matches(node) for t in self.terms)


class RequiredNodeAffinity:
    """`spec.nodeSelector` AND the required node affinity of a pod."""

    __slots__ = ("_affinity", "_selector")

    def __init__(self, pod: Pod) -> None:
        self._selector = selector_from_map(pod.spec.node_selector) if pod.spec.node_selector else None
        affinity = pod.spec.affinity
        required = (
            affinity.node_affinity.required_during_scheduling_ignored_during_execution
            if affinity is not None and affinity.node_affinity is not None
            else None
        )
        self._affinity = NodeSelectorMatcher(required) if required is not None else None

    @property
    def is_empty(self) -> bool:
        """The pod asks for nothing: every node matches."""
        return self._selector is None and self._affinity is None

    def error_on(self, node: Node) -> SelectorError | None:
        """Why it cannot be said whether `node` is allowed: no term matches and some do not parse."""
        if self._affinity is None or self.matches(node):
            return None
        if self._selector is not None and not self._selector.matches(node.metadata.labels):
            return None
        return self._affinity.error

    def matches(self, node: Node) -> bool:
        """True when `node` is allowed."""
        if self._selector is not None and not self._selector.matches(node.metadata.labels):
            return False
        return self._affinity is None or self._affinity.matches(node)


def required_node_affinity(pod: Pod) -> RequiredNodeAffinity:
    """The pod's required node affinity, compiled once and kept on the (immutable) pod."""
    cached: RequiredNodeAffinity | None = pod.__dict__.get("_required_node_affinity")
    if cached is None:
        cached = RequiredNodeAffinity(pod)
        pod.__dict__["_required_node_affinity"] = cached
    return cached


def tolerates(toleration: Toleration, taint: Taint, comparison_operators: bool = False) -> bool:
    """Does `toleration` tolerate `taint`? `comparison_operators` is the gate for Lt and Gt."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    operator = toleration.operator
    if operator in ("", "Equal"):
        return toleration.value == taint.value
    if operator == "Exists":
        return True
    if comparison_operators and operator in ("Lt", "Gt"):
        left, right = _canonical_int(taint.value), _canonical_int(toleration.value)
        if left is None or right is None:
            return False
        return left < right if operator == "Lt" else left > right
    return False


def find_untolerated_taint(
    taints: Iterable[Taint],
    tolerations: Sequence[Toleration],
    effects: Sequence[str] = ("NoSchedule", "NoExecute"),
    comparison_operators: bool = False,
) -> Taint | None:
    """The first taint with one of `effects` that no toleration tolerates."""
    for taint in taints:
        if taint.effect in effects and not any(
            tolerates(t, taint, comparison_operators) for t in tolerations
        ):
            return taint
    return None


# --- requirement checks -----------------------------------------------------------------------------------


def parse_int64(text: str) -> int | None:
    """A base-10 int64 as Go's ParseInt reads it, or None."""
    if len(text) > _LONGEST_INT or not _INT.fullmatch(text):
        return None
    number = int(text)
    return number if _MIN_INT64 <= number <= _MAX_INT64 else None


def _canonical_int(text: str) -> int | None:
    return parse_int64(text) if _CANONICAL_INT.fullmatch(text) else None


def _requirement_errors(key: str, operator: str, values: Sequence[str], path: str) -> list[str]:
    found = []
    below = f"{path}." if path else ""
    if not is_label_key(key):
        found.append(invalid(f"{below}key", key, "; ".join(label_key_errors(key))))
    detail = None
    if operator in ("In", "NotIn") and not values:
        detail = "for 'in', 'notin' operators, values set can't be empty"
    elif operator in ("Exists", "DoesNotExist") and values:
        detail = "values set must be empty for exists and does not exist"
    elif operator in ("Gt", "Lt") and len(values) != 1:
        detail = "for 'Gt', 'Lt' operators, exactly one value is required"
    if detail is not None:
        found.append(invalid(f"{below}values", values, detail))
    if operator in ("Gt", "Lt"):
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        found += [
            invalid(f"{below}values[{i}]", v, detail) for i, v in enumerate(values) if parse_int64(v) is None
        ]
    for i, value in enumerate(values):
        if not is_label_value(value):
            found.append(invalid(f"{below}values[{i}][{key}]", value, "; ".join(label_value_errors(value))))
    return found


def _field_errors(field: NodeSelectorRequirement, path: str) -> list[str]:
    if field.operator not in ("In", "NotIn"):
        return [unsupported(f"{path}.operator", field.operator, ("In", "NotIn"))]
    if len(field.values) != 1:
        return [invalid(f"{path}.values", field.values, "must have one element")]
    return []


def _test_of(operator: str, values: tuple[str, ...]) -> Callable[[str | None], bool]:
    if operator == "In":
        if len(values) == 1:
            only = values[0]
            return lambda v: v == only
        allowed = frozenset(values)
        return lambda v: v in allowed
    if operator == "NotIn":
        banned = frozenset(values)
        return lambda v: v not in banned
    if operator == "Exists":
        return lambda v: v is not None
    if operator == "DoesNotExist":
        return lambda v: v is None
    operand = int(values[0])

    def compare(v: str | None) -> bool:
        number = parse_int64(v) if v is not None else None
        if number is None:
            return False
        return number > operand if operator == "Gt" else number < operand

    return compare
