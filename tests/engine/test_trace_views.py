"""What a learner reads of a decision: text and HTML."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from labkit.engine.trace import Trace
from labkit.engine.trace_text import pad, table, width
from labkit.framework.results import PostFilterResult, PreFilterResult
from labkit.framework.status import Status
from labkit.i18n import language

from tests.engine.helpers import attempt, fake, framework_of

U = Status.unschedulable


def by_node(**answers: Any) -> Any:
    """An answer by node name; None for the others."""
    return lambda state, pod, node: answers.get(node.name)


def trace_of(*plugins: Any, **kwargs: Any) -> Trace:
    """The record of one attempt."""
    return attempt(framework_of(*plugins, **kwargs))[1]


def lines(trace: Trace) -> list[str]:
    """The text, line by line, without trailing blanks."""
    return [line.rstrip() for line in trace.to_text().splitlines()]


def test_rejections_nodes_by_plugins() -> None:
    """Which plugin decided where, who would have rejected too, who had nothing to say."""
    trace = trace_of(
        fake("Skips", pre_filter=Status.skip(), filter=U("never")),
        fake("First", filter=by_node(a=U("no first"))),
        fake("Agrees", filter=None),
        fake("Second", filter=by_node(a=U("no second"), b=U("x", "y"))),
        fake("S", score=1),
    )
    assert lines(trace) == [
        "p → c",
        "It is the only feasible node; Score was skipped.",
        "",
        "Node  Verdict   First  Second  Reason",
        "────  ────────  ─────  ──────  ────────",
        "c     ✓ pass    ✓      ✓       –",
        "a     ✕ First   ✕      (✕)     no first",
        "b     ✕ Second  ✓      ✕       x, y",
        "(✕) would reject too, but is not asked: the first ✕ decides",
        "✓ on every node: Agrees",
        "– nothing to do for this pod (PreFilter: Skip): Skips",
        "* Score skipped: one feasible node",
    ]


def test_scores_winner_and_what_decided() -> None:
    """Raw, normalised, weighted, a total that adds up, the winner first, and the plugin without which b would win."""

    def half(state: Any, pod: Any, scores: list[Any]) -> None:
        for s in scores:
            s.score //= 2

    trace = trace_of(
        fake("Fit", score=by_node(a=40, b=100, c=0), normalize_score=half),
        fake("Spread", score=by_node(a=90, b=10, c=5)),
        weights={"Fit": 2, "Spread": 1},
    )
    assert lines(trace)[:5] == [
        "p → a",
        "130 points, 20 more than b. Spread decided: without it b would win, 100 to 40.",
        "",
        "Scores: raw → normalised → weighted",
        "  Node          Fit ×2  Spread ×1  Total",
    ]
    body = [line.split() for line in lines(trace)[6:]]
    assert body == [
        ["▸", "a", "40", "→", "20", "→", "40", "90", "→", "90", "130"],
        ["b", "100", "→", "50", "→", "100", "10", "→", "10", "110"],
        ["c", "0", "→", "0", "5", "→", "5", "5"],
    ]


def test_ties_are_said_to_be_ties() -> None:
    """Equal totals: who the equals are and why this one."""
    assert trace_of(fake("S", score=5)).why() == (
        "5 points, as many as b. Equals are a, b, c; the first one in search order is taken."
    )


def test_no_node_fits_has_kube_schedulers_line() -> None:
    """Exactly the text of the FailedScheduling event, PostFilter with victims and candidates."""
    result = PostFilterResult(
        "b", victims=["default/v"], candidates={"b": {"victims": ["default/v"], "pdbViolations": 0}}
    )
    trace = trace_of(fake("F", filter=U("full")), fake("P", post_filter=(result, Status.success())))
    text = lines(trace)
    assert text[:2] == ["p: no node fits; room is made on b", "0/3 nodes are available: 3 full."]
    assert text[-4:] == [
        "PostFilter: Success",
        "  nominated node: b",
        "  victims: default/v",
        "  candidate b: victims default/v; budgets violated: 0",
    ]


def test_pre_filter_that_narrows_or_rejects() -> None:
    """Said before the nodes."""
    assert "PreFilter: R allows only b" in lines(
        trace_of(fake("R", pre_filter=PreFilterResult({"b"}), filter=None))
    )
    assert "PreFilter: ✕ R: never" in lines(trace_of(fake("R", pre_filter=Status.unresolvable("never"))))


def test_a_plugin_that_raises_is_shown_with_its_traceback() -> None:
    """! and the line of the learner's code."""

    def boom(state: Any, pod: Any, node: Any) -> None:
        raise KeyError("oops")

    trace = trace_of(fake("Mine", filter=boom))
    text = trace.to_text()
    assert text.splitlines()[0] == "p: the attempt ended in an error"
    assert "! Mine" in text or "Mine.filter on node" in text
    assert 'raise KeyError("oops")' in text
    assert "raise KeyError" in trace.to_html()


def test_chinese_columns_line_up() -> None:
    """A wide character takes two columns."""
    assert (width("节点a"), pad("节点", 6), pad("节点", 6, right=True)) == (5, "节点  ", "  节点")
    assert table([["节点", "n"], ["a", "100"]], numeric=[1]) == ["节点    n", "────  ───", "a     100"]
    with language("zh"):
        text = trace_of(fake("First", filter=by_node(a=U("no"))), fake("S", score=1)).to_text()
    header, rule, *rows = text.splitlines()[3:8]
    assert header.startswith("节点")
    # The reason is the last column: it starts where the last rule starts, in columns of a terminal.
    last = rule.rindex("  ") + 2
    assert [width(row[: row.rindex("  ")]) + 2 for row in (header, *rows)] == [last] * 4


def test_many_nodes_are_cut() -> None:
    """1000 nodes: the first, the last, and how many lie between."""
    trace = trace_of(
        fake("F", filter=by_node(**{f"n{i:04d}": U("no") for i in range(500)})),
        fake("S", score=1),
        nodes=[f"n{i:04d}" for i in range(1000)],
        percentage=100,
    )
    text = trace.to_text()
    assert len(text.splitlines()) < 100
    assert "965 more" in text
    assert trace.to_html().count("<tr") < 100


class Checker(HTMLParser):
    """Balanced tags, and what the tables have."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember."""
        self.tags.append((tag, dict(attrs)))
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Must close the innermost."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Collect."""
        self.text += data


def parsed(html: str) -> Checker:
    """The checked HTML."""
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    return checker


@pytest.mark.parametrize(("lang", "code"), [("en", "en"), ("zh", "zh-CN")])
def test_html_is_accessible(lang: str, code: str) -> None:
    """Language, captions, header cells with a scope, glyphs with words for screen readers; no script, no address."""
    with language(lang):
        html = trace_of(
            fake("First", filter=by_node(a=U("no <b>&"))), fake("S", score=by_node(b=10, c=20))
        )._repr_html_()
    found = parsed(html)
    kinds = [tag for tag, _ in found.tags]
    assert ("div", {"class": "lkt", "lang": code}) in found.tags
    assert kinds.count("table") == kinds.count("caption") == kinds.count("thead") == 2
    assert all(attrs.get("scope") in ("row", "col") for tag, attrs in found.tags if tag == "th")
    assert all(
        "aria-label" in attrs for tag, attrs in found.tags if attrs.get("class") == "c" and tag == "td"
    )
    assert "no &lt;b&gt;&amp;" in html
    assert "script" not in kinds
    assert "http" not in html
    assert "var(--jp-" in html


def test_skipped_pods() -> None:
    """One line each."""
    trace = Trace("default/p", skipped={"reason": "PreEnqueue", "plugin": "G", "reasons": ["gate x"]})
    assert trace.to_text() == "p: kept out of the queue by G (gate x)"
    other = Trace("default/p", skipped={"reason": "NoProfile"})
    assert other.to_text() == "p: no profile of this scheduler has its schedulerName"
    assert repr(other) == "<Trace default/p: p: no profile of this scheduler has its schedulerName>"


def test_time_is_recorded_but_not_shown() -> None:
    """Seconds per point; two equal decisions look equal."""
    first, second = (trace_of(fake("F", filter=None), fake("S", score=1)) for _ in range(2))
    assert set(first.seconds) == {"PreFilter", "Filter", "Score"}
    assert all(s >= 0 for s in first.seconds.values())
    assert (first.to_text(), first.to_html(), first.to_dict()) == (
        second.to_text(),
        second.to_html(),
        second.to_dict(),
    )


def test_a_wide_table_of_scores_fits_on_a_page() -> None:
    """Long plugin names are broken between their words; the numbers below and the totals stay."""
    names = ["NodeResourcesBalancedAllocation", "PodTopologySpread", "DynamicResources", "TaintToleration"]
    names += ["NodeResourcesFit", "ImageLocality"]
    trace = trace_of(*(fake(name, score=50) for name in names))
    text = lines(trace)
    start = next(i for i, line in enumerate(text) if line.startswith("Scores"))
    assert max(len(line) for line in text[start:]) <= 112
    head = [line.split() for line in text[start + 1 : start + 4]]
    assert head[0] == ["NodeResources"]
    assert "Balanced" in head[1]
    assert head[2].count("×1") == 6
    assert head[2][-1] == "Total"
    assert text[start + 4].startswith("──")
    assert text[start + 5].split()[-1] == "300"
