"""What a reply says beside its rating."""

from __future__ import annotations

import re


def rationale(reply: str) -> str:
    r"""What a reply says beside its rating.

    >>> rationale("Rating: 4\nRationale: It holds together.")
    'It holds together.'
    """
    rated = r"^\W*(?:(?:rating|score)\W*[\d.]*|answer\W*(?:yes|no))\W*$"
    without = re.sub(rated, "", reply, flags=re.IGNORECASE | re.MULTILINE)
    text = re.sub(r"^\W*(?:rationale|analysis)\W*", "", without.strip(), flags=re.IGNORECASE).strip()
    return text if re.search(r"[^\W\d]{2}", text) else ""
