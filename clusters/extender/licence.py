"""A licence-aware extender: pods that need a licence go to nodes that still have one, cheapest node first.

Serve it with `labkit extender serve --plugin licence:LicenceAware` from this folder, and point kube-scheduler
at it with `scheduler-config.yaml`. The same class runs inside a notebook as an ordinary plugin.

    pod   annotation  lab.example/licence: matlab      the licence it needs, if any
    node  label       lab.example/licences: matlab.r   licences on the node, separated by dots
    node  label       lab.example/cents-per-hour: "24" what the node costs
"""

from labkit.framework.status import Status

LICENCE = "lab.example/licence"
LICENCES = "lab.example/licences"
PRICE = "lab.example/cents-per-hour"


class LicenceAware:
    """Filter by licence, score by price."""

    name = "LicenceAware"

    def filter(self, state, pod, node):
        """Reject nodes that lack the licence. Moving other pods away would not help: unresolvable."""
        wanted = pod.metadata.annotations.get(LICENCE)
        if wanted is None or wanted in node.node.metadata.labels.get(LICENCES, "").split("."):
            return None
        return Status.unresolvable(f"no licence for {wanted}")

    def score(self, state, pod, node):
        """The price in cents for now; `normalize_score` turns it into 0..100."""
        price = node.node.metadata.labels.get(PRICE, "")
        return int(price) if price.isdigit() else -1

    def normalize_score(self, state, pod, scores):
        """Cheapest 100, dearest 0; a node that does not say what it costs gets 0."""
        known = [s.score for s in scores if s.score >= 0]
        low, high = (min(known), max(known)) if known else (0, 0)
        for s in scores:
            if s.score < 0:
                s.score = 0
            else:
                s.score = 100 if high == low else 100 * (high - s.score) // (high - low)
