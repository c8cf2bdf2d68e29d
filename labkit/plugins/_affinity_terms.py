"""Parsed pod (anti-)affinity terms and what they match (spec 12 §12.1.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from labkit.framework.handle import ObjectLister
from labkit.objects.pod import Pod, PodAffinityTerm, WeightedPodAffinityTerm
from labkit.objects.selectors import SelectorError, compile_label_selector

_NO_LABELS: Mapping[str, str] = {}


class Term:
    """One term with compiled selectors; `weight` 0 for required terms."""

    __slots__ = ("key", "namespace_selector", "namespaces", "selector", "weight")

    def __init__(self, term: PodAffinityTerm, owner_namespace: str, weight: int = 0) -> None:
        if not term.namespaces and term.namespace_selector is None:
            self.namespaces = frozenset({owner_namespace})
        else:
            self.namespaces = frozenset(term.namespaces)
        self.selector = compile_label_selector(term.label_selector)
        self.namespace_selector = compile_label_selector(term.namespace_selector)
        self.key = term.topology_key
        self.weight = weight

    def matches(self, pod: Pod, namespace_labels: Mapping[str, str] = _NO_LABELS) -> bool:
        """True when the term selects `pod`, whose namespace has `namespace_labels`."""
        if pod.metadata.namespace not in self.namespaces and not self.namespace_selector.matches(
            namespace_labels
        ):
            return False
        return self.selector.matches(pod.metadata.labels)

    def with_known_namespaces(self, objects: ObjectLister) -> Term:
        """The term as it serves the incoming pod: existing namespaces that its selector matches become names.

        The selector itself stays and is evaluated against no labels: one that accepts missing keys thus matches
        every namespace, as in the reference.
        """
        selector = self.namespace_selector
        if selector.nothing or selector.is_empty:
            return self
        copy = Term.__new__(Term)
        found = {ns.name for ns in objects.list("Namespace") if selector.matches(ns.labels)}
        copy.namespaces = self.namespaces | found
        copy.selector, copy.namespace_selector = self.selector, selector
        copy.key, copy.weight = self.key, self.weight
        return copy


class PodTerms:
    """All terms of one pod. A list that does not parse is empty, and `error` says why."""

    __slots__ = ("error", "preferred", "preferred_anti", "preferred_error", "required", "required_anti")

    def __init__(self, pod: Pod) -> None:
        affinity = pod.spec.affinity
        own = affinity.pod_affinity if affinity is not None else None
        anti = affinity.pod_anti_affinity if affinity is not None else None
        self.error: SelectorError | None = None
        self.preferred_error: SelectorError | None = None
        ns = pod.metadata.namespace
        self.required: Sequence[Term] = ()
        self.required_anti: Sequence[Term] = ()
        self.preferred: Sequence[Term] = ()
        self.preferred_anti: Sequence[Term] = ()
        if own is not None:
            self.required = self._required(own.required_during_scheduling_ignored_during_execution, ns)
            self.preferred = self._preferred(own.preferred_during_scheduling_ignored_during_execution, ns)
        if anti is not None:
            self.required_anti = self._required(anti.required_during_scheduling_ignored_during_execution, ns)
            self.preferred_anti = self._preferred(
                anti.preferred_during_scheduling_ignored_during_execution, ns
            )

    def _required(self, terms: Iterable[PodAffinityTerm], namespace: str) -> Sequence[Term]:
        try:
            return tuple(Term(t, namespace) for t in terms)
        except SelectorError as e:
            self.error = self.error or e
            return ()

    def _preferred(self, terms: Iterable[WeightedPodAffinityTerm], namespace: str) -> Sequence[Term]:
        try:
            return tuple(Term(t.pod_affinity_term, namespace, t.weight) for t in terms)
        except SelectorError as e:
            self.preferred_error = self.preferred_error or e
            return ()


def pod_terms(pod: Pod) -> PodTerms:
    """The parsed terms of `pod`, kept on the (immutable) pod object."""
    cached: PodTerms | None = pod.__dict__.get("_pod_terms")
    if cached is None:
        cached = pod.__dict__["_pod_terms"] = PodTerms(pod)
    return cached


def all_match(terms: Sequence[Term], pod: Pod) -> bool:
    """True when there are terms and each matches `pod` (namespace labels left out of account)."""
    return bool(terms) and all(t.matches(pod) for t in terms)
