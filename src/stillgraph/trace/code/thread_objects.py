"""Objects by which threads wait for one another: what is in them is theirs, and no capture looks into it."""

from __future__ import annotations

_CLASSES = frozenset(
    {
        *("threading.Event", "threading.Condition", "threading.Semaphore", "threading.BoundedSemaphore"),
        *("threading.Barrier", "threading.Timer", "threading.Thread"),
        *("queue.Queue", "queue.LifoQueue", "queue.PriorityQueue", "_queue.SimpleQueue"),
        *("concurrent.futures._base.Future", "concurrent.futures.thread.ThreadPoolExecutor"),
        *("concurrent.futures.process.ProcessPoolExecutor", "concurrent.futures.thread._WorkItem"),
        *("multiprocessing.pool.Pool", "multiprocessing.pool.ThreadPool", "multiprocessing.pool.ApplyResult"),
        *("multiprocessing.pool.MapResult", "multiprocessing.pool.IMapIterator"),
    }
)


def is_for_threads(kind: type) -> bool:
    """Whether a class is one of these; a class of the user's that inherits from one is not, for it may hold more."""
    return f"{kind.__module__}.{kind.__qualname__}" in _CLASSES
