"""Passes over the parts of a source, here or on a cluster, a few parts at a time.

Sums are added in a fixed binary tree over the parts, whoever computes them, and answers come in the
parts' order.  At most ``in_flight`` parts are on their way at once, which bounds the memory.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from leakscope.auditing.record_blocks import Part
from leakscope.running import OnProgress, Progress


class RecordPasses:
    """Both passes over the parts, here or on a cluster, with progress."""

    def __init__(
        self,
        parts: Sequence[Part],
        client: Any,
        in_flight: int | None,
        on_progress: OnProgress | None,
    ) -> None:
        self.parts, self.client, self.on_progress = parts, client, on_progress
        threads = 1 if client is None else max(1, int(sum(client.nthreads().values())))
        self.limit = 2 * threads if in_flight is None else in_flight
        self.done, self.begun = 0, time.perf_counter()

    def summed(
        self, function: Callable[..., Any], add: Callable[[Any, Any], Any], *arguments: Any
    ) -> Any:
        """The sum over the parts, added in a binary tree that does not depend on who computes."""
        if self.client is None:
            return tree(self._reported(function(part, *arguments) for part in self.parts), add)
        client = self.client
        futures = self._reported(self._futures(function, arguments, fetch=False))
        return tree(futures, lambda a, b: client.submit(add, a, b, pure=False)).result()

    def in_order(self, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """What the function gives for each part, in the parts' order, a few at a time."""
        if self.client is None:
            return self._reported(function(part, *arguments) for part in self.parts)
        return self._reported(self._futures(function, arguments, fetch=True))

    def everywhere(self, value: Any) -> Any:
        """Something large that all tasks share: sent to every worker once, not with every task."""
        return value if self.client is None else self.client.scatter(value, broadcast=True)

    def _futures(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], *, fetch: bool
    ) -> Iterator[Any]:
        """Finished futures, or their results, in order; at most ``limit`` are on their way."""
        from distributed import wait

        waiting: deque[Any] = deque()
        try:
            for part in self.parts:
                if len(waiting) >= self.limit:
                    yield self._finished(waiting.popleft(), wait, fetch)
                waiting.append(part.submit(self.client, function, *arguments))
            while waiting:
                yield self._finished(waiting.popleft(), wait, fetch)
        finally:
            self.client.cancel(list(waiting))

    def _finished(self, future: Any, wait: Callable[[Any], Any], fetch: bool) -> Any:
        if fetch:
            return future.result()
        wait(future)
        if future.status == "error":
            future.result()
        return future

    def _reported(self, found: Iterator[Any]) -> Iterator[Any]:
        for one in found:
            self.done += 1
            yield one
            if self.on_progress is not None:
                total = 2 * len(self.parts)
                pace = (time.perf_counter() - self.begun) / self.done
                self.on_progress(Progress(self.done, total, pace * (total - self.done)))


def tree(found: Iterator[Any], add: Callable[[Any, Any], Any]) -> Any:
    """Add as a binary counter does: only terms of as many leaves are added, while they come."""
    stack: list[tuple[int, Any]] = []
    for one in found:
        level = 0
        while stack and stack[-1][0] == level:
            one, level = add(stack.pop()[1], one), level + 1
        stack.append((level, one))
    total = stack.pop()[1]
    while stack:
        total = add(stack.pop()[1], total)
    return total
