"""Requests that brought no response: what happened, and whether it may pass."""

from __future__ import annotations

import random
import re

UNREACHABLE = 599
"""Not a status of HTTP: nothing answered at the address."""


class Fault(Exception):  # noqa: N818
    """A request that brought no response.

    Attributes:
        status: as in HTTP, or `UNREACHABLE`.
        message: what the provider says.
        retry_after: seconds that it asks to wait.
        kind: what this is counted as.
        parameter: which parameter of the request it names as wrong.
    """

    def __init__(
        self,
        status: int,
        message: str,
        retry_after: float | None = None,
        kind: str = "",
        parameter: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after = retry_after
        self.kind = kind or f"HTTP {status}"
        self.parameter = parameter

    @property
    def too_many(self) -> bool:
        """Whether there were too many requests at once, or too slow a server for them."""
        return self.status in (408, 429, 503)

    @property
    def passes(self) -> bool:
        """Whether the same request may succeed later."""
        return (self.status in (408, 409, 429) or self.status >= 500) and not self.no_quota

    @property
    def unsure(self) -> bool:
        """Whether the provider may have taken the request all the same."""
        return self.status == 408 or 500 <= self.status < UNREACHABLE

    @property
    def no_quota(self) -> bool:
        """Whether nothing is left to spend with the provider, which no waiting mends."""
        return bool(_NO_QUOTA.search(self.message))

    @property
    def may_cost(self) -> bool:
        """Whether the provider may have done the work, and wants to be paid for it."""
        return not self.kind.startswith("HTTP ") and self.status != UNREACHABLE

    @property
    def about_text(self) -> bool:
        """Whether it is the text that does not fit or is not wanted, whatever else the message names."""
        return bool(_ABOUT_TEXT.search(self.message))

    @property
    def about_request(self) -> bool:
        """Whether the provider found fault with how the request is made, rather than with its text."""
        return self.status in (400, 422) and not self.about_text


_NO_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota", re.IGNORECASE)

_ABOUT_TEXT = re.compile(
    r"context[ _-]?(?:length|window|size)|maximum context|(?:prompt|input) is too long"
    r"|content[ _-]?(?:filter|policy|management)|moderation|flagged|safety system",
    re.IGNORECASE,
)


class Access:
    """Whether the provider lets requests in, as far as its refusals tell: when a run should not go on asking.

    Before anything has succeeded, one refusal of the key or the model is enough; later it takes `IN_A_ROW` of them:
    one among requests that succeed is about that request.
    """

    IN_A_ROW = 20

    def __init__(self) -> None:
        self.ever = False
        self._denied = 0

    def granted(self) -> None:
        """A request has succeeded."""
        self.ever = True
        self._denied = 0

    def ends(self, fault: Fault) -> bool:
        """Whether, after this fault, no other request is likely to fare better."""
        if not fault.no_quota and (fault.status not in (401, 403, 404) or fault.about_text):
            return False
        self._denied += 1
        return not self.ever or self._denied >= self.IN_A_ROW


AS_TOLD = 5
"""So often a request waits only as long as the provider asks for."""


def pause_after(fault: Fault, attempt: int) -> float:
    """Seconds until the next try: what the provider asks for, but ever longer where that does not help."""
    told = fault.retry_after or 0.0
    exponent = min(attempt - AS_TOLD if told else attempt, 6)
    backoff = 0.5 * 2**exponent * random.uniform(0.5, 1.5) if exponent >= 0 else 0.0
    return max(told * random.uniform(1.0, 1.1), backoff)
