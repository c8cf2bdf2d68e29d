"""Where the course's own files are: notebooks/, quizzes/, clusters/. Importable by every floor."""

from __future__ import annotations

import os
from pathlib import Path

from labkit.errors import LabError


def data_dir(kind: str) -> Path:
    """The folder `kind` ("notebooks", "quizzes" or "clusters").

    Looked for in $LABKIT_DATA, beside the package (a source tree), and inside it (an installed wheel).
    Raises LabError when it is nowhere.
    """
    package = Path(__file__).resolve().parent
    places = [package.parent, package / "data"]
    if os.environ.get("LABKIT_DATA"):
        places.insert(0, Path(os.environ["LABKIT_DATA"]))
    for place in places:
        if (place / kind).is_dir():
            return place / kind
    raise LabError(
        f"the folder {kind}/ was not found in {', '.join(map(str, places))}",
        hint="run labkit from its source tree, or set LABKIT_DATA to the folder that contains it",
    )
