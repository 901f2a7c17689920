"""The pool outlives whatever its jobs do, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from creditlib.types import CreditlibError
from verifiers.pool import Failure, WorkerPool

HANDLERS = """
import ctypes, os, signal, sys, time

class Handler:
    def __init__(self, base):
        self.base = base

    def __call__(self, job):
        kind, value = job
        if kind == "add":
            return self.base + value
        if kind == "sleep":
            time.sleep(value)
            return value
        if kind == "spin":
            sum(range(10**11))  # one call into C
        if kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if kind == "kill once":  # the folder tells the second attempt from the first
            if not os.path.exists(value):
                os.mkdir(value)
                os.kill(os.getpid(), signal.SIGKILL)
            return "second attempt"
        if kind == "segfault":
            ctypes.string_at(0)
        if kind == "raise":
            raise ValueError(value)
        if kind == "memory":
            return len(bytearray(value << 20))
        if kind == "print":
            print("noise")
            return value
        if kind == "modules":
            return sorted(sys.modules)
        if kind == "big":
            return b"x" * value
        if kind == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
            return value

class Broken:
    def __init__(self):
        raise RuntimeError("cannot be built")
"""


@pytest.fixture
def handlers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "pool_handlers.py").write_text(HANDLERS)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("pool_handlers", None)
    import pool_handlers  # type: ignore[import-not-found]

    return pool_handlers


@pytest.fixture
def pool(handlers: Any) -> Iterator[WorkerPool[Any, Any]]:
    with WorkerPool[Any, Any](handlers.Handler, (100,), workers=2, memory_mb=512) as pool:
        yield pool
    assert not any(alive(pid) for pid in pool.pids)


def alive(pid: int) -> bool:
    """Is there such a process, other than one that has ended and waits to be reaped?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pid: int, within: float = 3.0) -> bool:
    deadline = time.monotonic() + within
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


def test_results_come_in_the_order_of_the_jobs(pool: WorkerPool[Any, Any]) -> None:
    assert pool.map([("add", i) for i in range(1000)], seconds=5, wall_seconds=5) == [
        100 + i for i in range(1000)
    ]
    assert pool.map([], seconds=5, wall_seconds=5) == []


def test_workers_start_when_needed_and_fast(handlers: Any) -> None:
    with WorkerPool[Any, Any](handlers.Handler, (0,), workers=8) as pool:
        assert pool.pids == ()
        pool.map([("add", 1)], seconds=5, wall_seconds=5)
        assert len(pool.pids) == 1


def test_a_hanging_job_is_killed_and_the_others_answered(pool: WorkerPool[Any, Any]) -> None:
    jobs = [("add", i) for i in range(40)]
    jobs[7] = jobs[23] = ("sleep", 60)
    start = time.monotonic()
    results = pool.map(jobs, seconds=5, wall_seconds=0.3)
    assert time.monotonic() - start < 3
    failed = [i for i, result in enumerate(results) if isinstance(result, Failure)]
    assert failed == [7, 23]
    assert results[7] == Failure("wall", "no answer within 0.3 s")
    assert pool.map([("add", 1)], seconds=5, wall_seconds=5) == [101]


@pytest.mark.parametrize("kind", ["kill", "segfault", "raise"])
def test_a_dying_worker_costs_one_job(
    pool: WorkerPool[Any, Any], kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    results = pool.map([("add", 1), (kind, "x"), *[("add", i) for i in range(20)]], seconds=5, wall_seconds=5)
    assert isinstance(results[1], Failure) and results[1].kind == "died"
    assert [result for result in results if not isinstance(result, Failure)] == [101, *range(100, 120)]
    if kind == "raise":
        assert "ValueError: x" in capfd.readouterr().err


def test_a_job_killed_from_outside_is_tried_again(pool: WorkerPool[Any, Any], tmp_path: Path) -> None:
    assert pool.map([("kill once", str(tmp_path / "seen"))], seconds=5, wall_seconds=5) == ["second attempt"]
    pool.map([("add", 1)], seconds=5, wall_seconds=5)
    victim = pool.pids[0]
    threading.Timer(0.3, os.kill, (victim, signal.SIGKILL)).start()
    assert pool.map([("sleep", 0.6)], seconds=5, wall_seconds=5) == [0.6]
    assert victim not in pool.pids


def test_a_worker_killed_while_idle_is_replaced(pool: WorkerPool[Any, Any]) -> None:
    pool.map([("sleep", 0.01)] * 4, seconds=5, wall_seconds=5)
    for pid in pool.pids:
        os.kill(pid, signal.SIGKILL)
    assert pool.map([("add", i) for i in range(10)], seconds=5, wall_seconds=5) == list(range(100, 110))


def test_a_stopped_worker_runs_into_the_wall_clock(pool: WorkerPool[Any, Any]) -> None:
    (result,) = pool.map([("stop", 1)], seconds=5, wall_seconds=0.3)
    assert isinstance(result, Failure) and result.kind == "wall"


def test_cpu_time_is_limited_apart_from_the_wall_clock(pool: WorkerPool[Any, Any]) -> None:
    start = time.monotonic()
    spin, other, sleep = pool.map([("spin", 0), ("add", 1), ("sleep", 0.6)], seconds=0.3, wall_seconds=20)
    assert spin == Failure("cpu", "more than 0.3 s of CPU time")
    assert (other, sleep) == (101, 0.6)
    assert time.monotonic() - start < 10
    busy_work = [("add", i) for i in range(2000)]  # the time of one job is not the time of all
    assert pool.map(busy_work, seconds=0.05, wall_seconds=20) == [100 + i for i in range(2000)]


def test_a_memory_bomb_is_a_failure(pool: WorkerPool[Any, Any]) -> None:
    bomb, other = pool.map([("memory", 4096), ("add", 1)], seconds=5, wall_seconds=5)
    assert isinstance(bomb, Failure) and bomb.kind == "memory"
    assert other == 101


def test_large_answers_and_jobs_pass(pool: WorkerPool[Any, Any]) -> None:
    big = pool.map([("big", 3 << 20)] * 4, seconds=5, wall_seconds=5)
    assert big == [b"x" * (3 << 20)] * 4
    assert pool.map([("print", b"y" * (3 << 20))] * 3, seconds=5, wall_seconds=5) == [b"y" * (3 << 20)] * 3


def test_workers_keep_stdout_clean(pool: WorkerPool[Any, Any], capfd: pytest.CaptureFixture[str]) -> None:
    assert pool.map([("print", 1)], seconds=5, wall_seconds=5) == [1]
    assert capfd.readouterr().out == ""


def test_workers_do_not_inherit_torch(pool: WorkerPool[Any, Any]) -> None:
    (modules,) = pool.map([("modules", None)], seconds=5, wall_seconds=5)
    assert isinstance(modules, list) and "torch" not in modules and "verifiers.pool" in modules


def test_a_worker_that_cannot_start_is_an_error(handlers: Any, capfd: pytest.CaptureFixture[str]) -> None:
    with WorkerPool[Any, Any](handlers.Broken) as pool, pytest.raises(CreditlibError, match="did not start"):
        pool.map([1], seconds=5, wall_seconds=5)
    assert "cannot be built" in capfd.readouterr().err


def test_a_closed_pool_has_no_processes_and_says_so(handlers: Any) -> None:
    pool = WorkerPool[Any, Any](handlers.Handler, (0,))
    pool.map([("sleep", 0.01)] * 4, seconds=5, wall_seconds=5)
    pids = pool.pids
    pool.close()
    pool.close()
    assert len(pids) == 2 and all(gone(pid) for pid in pids)
    with pytest.raises(CreditlibError, match="closed"):
        pool.map([("add", 1)], seconds=5, wall_seconds=5)


def test_threads_may_share_a_pool(pool: WorkerPool[Any, Any]) -> None:
    results: dict[int, list[Any]] = {}

    def use(number: int) -> None:
        results[number] = pool.map([("add", number)] * 50, seconds=5, wall_seconds=5)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: [100 + number] * 50 for number in range(4)}


PARENT = """
import sys, threading, time
sys.path[:0] = [{root!r}, {handlers!r}]
from pool_handlers import Handler
from verifiers.pool import WorkerPool
pool = WorkerPool(Handler, (0,), workers=1)
pool.map([("add", 1)], seconds=5, wall_seconds=5)
print(pool.pids[0], flush=True)
if {busy}:
    pool.map([("sleep", 60)], seconds=60, wall_seconds=60)
"""


@pytest.mark.parametrize("busy", [False, True])
def test_workers_end_with_their_parent(handlers: Any, busy: bool) -> None:
    """Killed in the middle of a job, or ending without having closed the pool."""
    root = str(Path(__file__).parents[2])
    code = PARENT.format(root=root, handlers=str(Path(handlers.__file__).parent), busy=busy)
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    if busy:
        time.sleep(0.2)
        assert alive(worker)
        parent.kill()
    parent.wait(10)
    parent.stdout.close()
    assert gone(worker)


def test_a_handler_in_a_script_is_refused() -> None:
    def handler() -> Any: ...

    handler.__module__ = "__main__"
    with pytest.raises(CreditlibError, match="worker processes can import"):
        WorkerPool[Any, Any](handler)
    with pytest.raises(CreditlibError, match="workers=0"):
        WorkerPool[Any, Any](dict, workers=0)  # type: ignore[arg-type]


def test_each_failure_has_the_flag_that_trainers_count() -> None:
    flags = [Failure(kind, "").flag for kind in ("cpu", "wall", "memory", "died")]
    assert flags == ["timeout:cpu", "timeout:wall", "limit:memory", "worker:died"]
