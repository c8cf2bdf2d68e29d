"""Hypothesis strategies that several packages' tests share: quantities, labels, selectors, small clusters."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

SUFFIXES: dict[str, Fraction] = {
    "": Fraction(1),
    **{s: Fraction(10) ** e for s, e in {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12}.items()},
    **{s: Fraction(2) ** e for s, e in {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40}.items()},
}


@st.composite
def quantities(draw: st.DrawFn, *, negative: bool = True) -> tuple[str, Fraction]:
    """(text, exact value before rounding to 10^-9), well inside an int64 of thousandths."""
    whole = draw(st.integers(0, 4000))
    zeros = draw(st.sampled_from(["", "0", "00"]))
    fraction = draw(st.one_of(st.none(), st.text("0123456789", max_size=6)))
    sign = draw(st.sampled_from(["", "+", "-"] if negative else ["", "+"]))
    if draw(st.booleans()):
        suffix = draw(st.sampled_from(sorted(SUFFIXES)))
        scale = SUFFIXES[suffix]
    else:
        exponent = draw(st.integers(-8, 8))
        suffix, scale = f"{draw(st.sampled_from('eE'))}{exponent}", Fraction(10) ** exponent
    digits = f"{zeros}{whole}" if fraction is None else f"{zeros}{whole}.{fraction}"
    number = Fraction(f"{whole}.{fraction}0" if fraction is not None else whole)
    return f"{sign}{digits}{suffix}", number * scale * (-1 if sign == "-" else 1)


#: Few keys and values, so that selectors do match.
keys = st.sampled_from(["a", "b", "zone", "example.com/x"])
values = st.sampled_from(["", "1", "2", "10", "x", "y"])
labels = st.dictionaries(keys, values, max_size=4)


@st.composite
def requirements(draw: st.DrawFn, *, numeric: bool = False) -> dict[str, Any]:
    """A valid match expression; `numeric` adds Gt and Lt, which node selectors know."""
    operators = ["In", "NotIn", "Exists", "DoesNotExist"] + (["Gt", "Lt"] if numeric else [])
    operator = draw(st.sampled_from(operators))
    found: dict[str, Any] = {"key": draw(keys), "operator": operator}
    if operator in ("In", "NotIn"):
        found["values"] = draw(st.lists(values, min_size=1, max_size=3))
    elif operator in ("Gt", "Lt"):
        found["values"] = [str(draw(st.integers(0, 12)))]
    return found


@st.composite
def tolerations(draw: st.DrawFn) -> dict[str, str]:
    """A toleration, any operator, from the same few keys as `taints`."""
    return {
        "key": draw(st.sampled_from(["", "a", "b"])),
        "operator": draw(st.sampled_from(["", "Equal", "Exists", "Lt", "Gt"])),
        "value": draw(values),
        "effect": draw(st.sampled_from(["", "NoSchedule", "PreferNoSchedule", "NoExecute"])),
    }


@st.composite
def taints(draw: st.DrawFn) -> dict[str, str]:
    """A taint."""
    return {
        "key": draw(st.sampled_from(["a", "b", "c"])),
        "value": draw(values),
        "effect": draw(st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"])),
    }


@st.composite
def resource_lists(draw: st.DrawFn) -> dict[str, str]:
    """Requests: some of cpu, memory, ephemeral storage, huge pages and a device, also explicit zeros."""
    amounts = {
        "cpu": st.sampled_from(["0", "100m", "0.4", "1", "1500m", "2"]),
        "memory": st.sampled_from(["0", "100m", "64Mi", "500M", "1Gi", "0.5Gi"]),
        "ephemeral-storage": st.sampled_from(["0", "1Gi"]),
        "hugepages-2Mi": st.sampled_from(["0", "4Mi"]),
        "nvidia.com/gpu": st.sampled_from(["0", "1", "2"]),
    }
    chosen = draw(st.sets(st.sampled_from(sorted(amounts))))
    return {name: draw(amounts[name]) for name in sorted(chosen)}
