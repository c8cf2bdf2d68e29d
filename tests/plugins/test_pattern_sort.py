"""The unstable sort leaves equal elements where the reference's sort of slices leaves them."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labkit.plugins._pattern_sort import pattern_sorted

LENGTHS = (12, 13, 20, 49, 50, 64, 110, 300, 1000)

#: Keys by index and length; few distinct ones, so that much is tied.
KEYS: dict[str, Callable[[int, int], int]] = {
    "equal": lambda i, n: 0,
    "saw": lambda i, n: i % 7,
    "square": lambda i, n: i * i % 11,
    "falling": lambda i, n: (n - i) // 3,
    "pipe": lambda i, n: min(i, n - i),
    "mixed": lambda i, n: i * 7919 % 101 % 17,
    "nearly": lambda i, n: 0 if i % 37 == 5 else i // 2,
}

#: CRC-32 of the order of the indexes, recorded with Go 1.26's sort.Slice.
RECORDED = {
    "equal": (
        *(232101735, 1286024942, 1374899100, 3677695144, 2613725059),
        *(1740561595, 2840812631, 840005404, 3414642366),
    ),
    "saw": (
        *(1399803306, 2411232383, 185362787, 173016860, 2947553712),
        *(2360587958, 599458872, 1705571727, 446748552),
    ),
    "square": (
        *(2007087074, 1643481738, 2266879431, 2899804890, 3520788706),
        *(467491074, 1853121744, 1737655755, 743302036),
    ),
    "falling": (
        *(1600835174, 1022573932, 2386001850, 685708481, 3367919985),
        *(412216525, 1085647268, 3597122482, 537957103),
    ),
    "pipe": (
        *(164573765, 3061012902, 1943768224, 3925182967, 2575331552),
        *(3364048265, 3323133539, 2805210086, 2262086156),
    ),
    "mixed": (
        *(1665061715, 1538943027, 2397448927, 4249728670, 304083391),
        *(514327840, 1844684729, 3085050322, 2803344375),
    ),
    "nearly": (
        *(716781252, 1686203691, 1906088460, 1488973484, 4239704500),
        *(856121787, 4153498974, 2253494474, 3936582342),
    ),
}


def fingerprint(order: list[int]) -> int:
    return zlib.crc32(" ".join(map(str, order)).encode())


@pytest.mark.parametrize("name", KEYS)
def test_same_order_as_recorded(name: str) -> None:
    def order(n: int) -> list[int]:
        return pattern_sorted(range(n), lambda a, b: KEYS[name](a, n) < KEYS[name](b, n))

    assert tuple(fingerprint(order(n)) for n in LENGTHS) == RECORDED[name]


class Adversary:
    """McIlroy's opponent of quicksort: decides what is greater only when asked, so that every pivot is bad."""

    def __init__(self, n: int) -> None:
        self.undecided = n
        self.values = [n] * n
        self.decided = self.candidate = 0

    def less(self, a: int, b: int) -> bool:
        values, open_ = self.values, self.undecided
        if values[a] == values[b] == open_:
            values[a if a == self.candidate else b] = self.decided
            self.decided += 1
        if values[a] == open_:
            self.candidate = a
        elif values[b] == open_:
            self.candidate = b
        return values[a] < values[b]


@pytest.mark.parametrize(
    ("n", "first", "again"), [(100, 4120604014, 3318366608), (1000, 734428257, 3696310038)]
)
def test_bad_pivots_end_in_the_recorded_order_too(n: int, first: int, again: int) -> None:
    adversary = Adversary(n)
    assert fingerprint(pattern_sorted(range(n), adversary.less)) == first
    keys = [v // 4 for v in adversary.values]
    assert fingerprint(pattern_sorted(range(n), lambda a, b: keys[a] < keys[b])) == again


@given(st.lists(st.integers(0, 40), max_size=400))
def test_sorts(numbers: list[int]) -> None:
    assert pattern_sorted(numbers, lambda a, b: a < b) == sorted(numbers)
