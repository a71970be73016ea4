"""What was not read, as people look at it: shares by group, and a few of the replies with their reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .sections import Section
from .terminal import plain

if TYPE_CHECKING:
    from ..agreement.unread import Gap, Unread

SHOWN = 5
"""Replies that are shown, and groups of one axis."""


def unread_sections(unread: Unread, gaps: Sequence[Gap]) -> list[Section]:
    """A table for each axis by which there is anything to tell."""
    if not unread.unread:
        return []
    sections = []
    for gap in gaps:
        groups = list(gap.groups.items())
        if gap.axis != "people's score":
            groups = [cell for cell in groups if cell[1][0]][:SHOWN]
        rows = [
            [
                f"{group:g}" if isinstance(group, float) else plain(group, 60),
                f"{bad:,}",
                f"{n:,}",
                f"{100 * bad / n:.1f} %",
            ]
            for group, (bad, n) in groups
        ]
        heads = (gap.axis, "unread", "of", "share")
        sections.append(Section(f"unread by {gap.axis}", heads=heads, rows=rows, notes=[_said(gap)]))
    return sections


def _said(gap: Gap) -> str:
    if gap.p is None:
        return f"not tested: {gap.why_not}"
    return f"chance alone spreads them as unevenly with p = {gap.p:.3f} ({gap.p_holm:.3f} after Holm's correction)"


def warnings_of(gaps: Sequence[Gap]) -> Iterator[str]:
    """A warning for each gap that is not chance."""
    for gap in gaps:
        if gap.selective:
            yield (
                f"what was not read depends on the {gap.axis} (p = {gap.p_holm:.3f}): means and correlations over the"
                " rest are off; look at the unread replies, or ask with another --form"
            )


def unread_lines(replies: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A few unread replies (`id`, `reply`, `reason`) on a line each."""
    for each in replies[:SHOWN]:
        yield f"{plain(str(each['id']), 40)}: {plain(each['reason'], 160)} ← {plain(each['reply'], 300)!r}"
