"""Typed Kubernetes objects, quantities, selectors, YAML and JSON.

Here belongs what the Kubernetes API says about objects, as far as scheduling reads them.
Objects are immutable by convention; facts derived from them are kept on them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labkit.objects.codec import KINDS as KINDS
    from labkit.objects.codec import from_dict as from_dict
    from labkit.objects.codec import to_dict as to_dict
    from labkit.objects.documents import Document as Document
    from labkit.objects.documents import load_documents as load_documents
    from labkit.objects.meta import KubeObject as KubeObject
    from labkit.objects.meta import LabelSelector as LabelSelector
    from labkit.objects.meta import ObjectMeta as ObjectMeta
    from labkit.objects.node import Node as Node
    from labkit.objects.node import Taint as Taint
    from labkit.objects.pod import Binding as Binding
    from labkit.objects.pod import Container as Container
    from labkit.objects.pod import NodeSelector as NodeSelector
    from labkit.objects.pod import Pod as Pod
    from labkit.objects.pod import Toleration as Toleration
    from labkit.objects.quantity import Quantity as Quantity
    from labkit.objects.quantity import QuantityError as QuantityError
    from labkit.objects.quantity import milli_value_of as milli_value_of
    from labkit.objects.quantity import parse_quantity as parse_quantity
    from labkit.objects.quantity import value_of as value_of
    from labkit.objects.selectors import SelectorError as SelectorError
    from labkit.objects.selectors import compile_label_selector as compile_label_selector
    from labkit.objects.selectors import find_untolerated_taint as find_untolerated_taint
    from labkit.objects.selectors import required_node_affinity as required_node_affinity
    from labkit.objects.selectors import selector_from_map as selector_from_map
    from labkit.objects.selectors import tolerates as tolerates

_WHERE: dict[str, tuple[str, ...]] = {
    "codec": (
        "KINDS",
        "from_dict",
        "to_dict",
    ),
    "documents": (
        "Document",
        "load_documents",
    ),
    "meta": (
        "KubeObject",
        "LabelSelector",
        "ObjectMeta",
    ),
    "node": (
        "Node",
        "Taint",
    ),
    "pod": (
        "Binding",
        "Container",
        "NodeSelector",
        "Pod",
        "Toleration",
    ),
    "quantity": (
        "Quantity",
        "QuantityError",
        "milli_value_of",
        "parse_quantity",
        "value_of",
    ),
    "selectors": (
        "SelectorError",
        "compile_label_selector",
        "find_untolerated_taint",
        "required_node_affinity",
        "selector_from_map",
        "tolerates",
    ),
}
__all__ = [
    "KINDS",
    "Binding",
    "Container",
    "Document",
    "KubeObject",
    "LabelSelector",
    "Node",
    "NodeSelector",
    "ObjectMeta",
    "Pod",
    "Quantity",
    "QuantityError",
    "SelectorError",
    "Taint",
    "Toleration",
    "compile_label_selector",
    "find_untolerated_taint",
    "from_dict",
    "load_documents",
    "milli_value_of",
    "parse_quantity",
    "required_node_affinity",
    "selector_from_map",
    "to_dict",
    "tolerates",
    "value_of",
]


def __getattr__(name: str) -> Any:
    # Imported when first used: a module of this package costs only itself.
    for module, names in _WHERE.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
