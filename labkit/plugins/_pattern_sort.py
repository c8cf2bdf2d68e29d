"""Pattern-defeating quicksort, step by step as the reference's sort of slices makes it (spec 13 §5).

That sort is not stable, yet where equal elements end up is decided by the order they came in. Which of several
equally important pods are spared by a preemption follows from it, so it is worth having.
The algorithm: Orson Peters, "Pattern-defeating Quicksort", arXiv:2106.05123; the numbers below are the reference's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")

#: Up to here an insertion sort does it.
_SHORT = 12
#: From here on the pivot is a median of medians, and a nearly sorted stretch is mended instead of partitioned.
_LONG = 50
_MENDS = 5
#: All three comparisons of each of four medians came out as "wrong way round".
_ALL_WRONG = 12
_MASK = 2**64 - 1


def pattern_sorted(items: Sequence[T], less: Callable[[T, T], bool]) -> list[T]:
    """`items` in ascending order of `less`; equal ones in the order in which the reference leaves them."""
    run = _Run(list(items), less)
    run.sort(0, len(run.items), len(run.items).bit_length())
    return run.items


class _Run(Generic[T]):
    """One list being sorted in place."""

    def __init__(self, items: list[T], less: Callable[[T, T], bool]) -> None:
        self.items = items
        self._less = less

    def less(self, i: int, j: int) -> bool:
        return self._less(self.items[i], self.items[j])

    def swap(self, i: int, j: int) -> None:
        self.items[i], self.items[j] = self.items[j], self.items[i]

    def sort(self, low: int, high: int, patience: int) -> None:
        """Sort [low, high); after `patience` lopsided partitions by heap."""
        balanced = in_order = True
        while high - low > _SHORT:
            if patience == 0:
                self._heap(low, high)
                return
            if not balanced:
                self._scatter(low, high)
                patience -= 1
            pivot, swaps = self._pivot(low, high)
            rising = swaps == 0
            if swaps == _ALL_WRONG:
                self.items[low:high] = self.items[low:high][::-1]
                pivot = low + high - 1 - pivot
                rising = True
            if balanced and in_order and rising and self._mend(low, high):
                return
            if low > 0 and not self.less(low - 1, pivot):
                # Nothing here is smaller than the pivot: put its equals first and go on behind them.
                low = self._split_off_equals(low, high, pivot)
                continue
            middle, in_order = self._partition(low, high, pivot)
            left, right = middle - low, high - middle
            balanced = min(left, right) >= (high - low) // 8
            if left < right:
                self.sort(low, middle, patience)
                low = middle + 1
            else:
                self.sort(middle + 1, high, patience)
                high = middle
        self._insert(low, high)

    def _insert(self, low: int, high: int) -> None:
        for i in range(low + 1, high):
            self._sink(i, low)

    def _sink(self, i: int, floor: int) -> None:
        while i > floor and self.less(i, i - 1):
            self.swap(i, i - 1)
            i -= 1

    # --- where to split -----------------------------------------------------------------------------------------

    def _pivot(self, low: int, high: int) -> tuple[int, int]:
        """(place of the pivot, how many of the comparisons made for it came out the wrong way round)."""
        quarter = (high - low) // 4
        places = [low + quarter * k for k in (1, 2, 3)]
        swaps = 0
        if high - low >= _LONG:
            for k, at in enumerate(places):
                places[k], wrong = self._median(at - 1, at, at + 1)
                swaps += wrong
        middle, wrong = self._median(*places)
        return middle, swaps + wrong

    def _median(self, a: int, b: int, c: int) -> tuple[int, int]:
        wrong = 0
        if self.less(b, a):
            a, b, wrong = b, a, wrong + 1
        if self.less(c, b):
            b, wrong = c, wrong + 1
        if self.less(b, a):
            b, wrong = a, wrong + 1
        return b, wrong

    def _partition(self, low: int, high: int, pivot: int) -> tuple[int, bool]:
        """(where the pivot ends up, whether nothing had to move)."""
        self.swap(low, pivot)
        i, j, moves = low + 1, high - 1, 0
        while True:
            while i <= j and self.less(i, low):
                i += 1
            while i <= j and not self.less(j, low):
                j -= 1
            if i > j:
                self.swap(j, low)
                return j, moves == 0
            self.swap(i, j)
            i, j, moves = i + 1, j - 1, moves + 1

    def _split_off_equals(self, low: int, high: int, pivot: int) -> int:
        self.swap(low, pivot)
        i, j = low + 1, high - 1
        while True:
            while i <= j and not self.less(low, i):
                i += 1
            while i <= j and self.less(low, j):
                j -= 1
            if i > j:
                return i
            self.swap(i, j)
            i, j = i + 1, j - 1

    # --- special cases ------------------------------------------------------------------------------------------

    def _mend(self, low: int, high: int) -> bool:
        """Try to put a nearly sorted stretch right; whether it is sorted now."""
        i = low + 1
        for _ in range(_MENDS):
            while i < high and not self.less(i, i - 1):
                i += 1
            if i == high:
                return True
            if high - low < _LONG:
                return False
            self.swap(i, i - 1)
            if i - low >= 2:
                self._sink(i - 1, 0)
            if high - i >= 2:
                j = i + 1
                while j < high and self.less(j, j - 1):
                    self.swap(j, j - 1)
                    j += 1
        return False

    def _scatter(self, low: int, high: int) -> None:
        """Break up a pattern that made for lopsided partitions; "at random", but always the same."""
        length = high - low
        x = length
        mask = (1 << length.bit_length()) - 1
        centre = low + length // 4 * 2
        for i in (centre - 1, centre, centre + 1):
            x ^= x << 13 & _MASK
            x ^= x >> 7
            x ^= x << 17 & _MASK
            other = x & mask
            self.swap(i, low + (other - length if other >= length else other))

    def _heap(self, low: int, high: int) -> None:
        size = high - low
        for root in range((size - 1) // 2, -1, -1):
            self._sift(low, root, size)
        for last in range(size - 1, -1, -1):
            self.swap(low, low + last)
            self._sift(low, 0, last)

    def _sift(self, low: int, root: int, size: int) -> None:
        while (child := 2 * root + 1) < size:
            if child + 1 < size and self.less(low + child, low + child + 1):
                child += 1
            if not self.less(low + root, low + child):
                return
            self.swap(low + root, low + child)
            root = child
