"""A pool of worker processes that can be killed, for judging text that nobody has read.

A job that hangs, crashes its process or eats its memory costs one worker and becomes a `Failure` in the
result; it never raises in the parent and never stops the other jobs. Workers are plain subprocesses: they
inherit neither the parent's memory (no torch, no CUDA context) nor its files, and they end with it.
"""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, Literal, Self, TypeVar

from creditlib.types import CreditlibError

Job = TypeVar("Job")
Result = TypeVar("Result")

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[3]); from verifiers.pool import _serve; "
    "_serve(int(sys.argv[1]), int(sys.argv[2]))"
)
_START_SECONDS = 60.0  # to import the handler, on a machine however busy
_TRANSFER_SECONDS = (
    10  # to move one message through the socket; a worker stopped half-way through one counts as dead
)
_LAST_WORDS_SECONDS = 1.0  # for a worker that hung up, to end by itself
_CHUNK = 16  # jobs a message: amortises the round trip, and little is lost if the worker dies


@dataclass(frozen=True)
class Failure:
    """A job without a result, and why: its CPU time ("cpu") or its wall clock ("wall") was up, its process
    ran out of memory ("memory") or ended ("died").
    """

    kind: Literal["cpu", "wall", "memory", "died"]
    detail: str

    @property
    def flag(self) -> str:
        """As a `Check` carries it."""
        prefix = {"cpu": "timeout", "wall": "timeout", "memory": "limit", "died": "worker"}[self.kind]
        return f"{prefix}:{self.kind}"


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    connection: Connection
    deadline: float  # of the job in hand; until `ready`, of the start
    ready: bool = False
    jobs: deque[int] = field(default_factory=deque)  # sent and not yet answered, in the order of answering


class WorkerPool(Generic[Job, Result]):
    """Runs ``factory(*arguments)`` in each worker to get a handler, and the handler on each job.

    Args:
        factory: a function or class that the worker can import (not from ``__main__``).
        arguments: its arguments; they and the jobs and results must pickle.
        workers: number of processes, started when the first jobs arrive.
        memory_mb: address space of a worker (RLIMIT_AS).

    Workers ignore Ctrl-C (the parent decides) and send what they print to stderr. Only one `map` runs at a
    time; other threads wait.
    """

    def __init__(
        self,
        factory: Callable[..., Callable[[Job], Result]],
        arguments: tuple[Any, ...] = (),
        *,
        workers: int = 2,
        memory_mb: int = 1024,
    ) -> None:
        if workers < 1:
            raise CreditlibError(f"a pool needs at least one worker, got workers={workers}")
        if factory.__module__ == "__main__":
            raise CreditlibError(
                f"{factory.__qualname__} must be in a module that worker processes can import, not a script"
            )
        self._setup = pickle.dumps((factory, arguments, memory_mb))
        self._count = workers
        self._workers: list[_Worker] = []
        self._lock = threading.Lock()
        self._closed = False

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the workers alive."""
        return tuple(worker.process.pid for worker in self._workers)

    def map(self, jobs: Sequence[Job], *, seconds: float, wall_seconds: float) -> list[Result | Failure]:
        """Answer every job, in order.

        A job may use `seconds` of CPU time, so that what else the machine does has no influence; the kernel
        ends a worker that uses more, even in the middle of a call into C. `wall_seconds` is for jobs that
        wait. A job whose process ends otherwise is tried once more on a fresh worker, since the cause may
        lie outside (the kernel's memory killer picks by size, not by guilt).

        Raises:
            CreditlibError: the pool is closed, or a worker cannot start.
        """
        with self._lock:
            if self._closed:
                raise CreditlibError("this worker pool is closed")
            chunk = max(1, min(_CHUNK, len(jobs) // (4 * self._count)))
            run = _Map[Job, Result](jobs, seconds, wall_seconds, chunk)
            try:
                while run.unanswered:
                    self._assign(run)
                    self._collect(run)
            except BaseException:  # Ctrl-C too: late answers would be taken for those of the next call
                self._stop_all()
                raise
            return run.answers()

    def close(self) -> None:
        """End all workers and wait until they are gone. May be called twice."""
        with self._lock:
            self._closed = True
            self._stop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _assign(self, run: _Map[Job, Result]) -> None:
        """Give waiting jobs to idle workers, starting workers up to the pool's size."""
        busy = sum(bool(worker.jobs) for worker in self._workers)
        wanted = min(self._count, busy + len(run.waiting))
        while len(self._workers) < wanted:
            self._workers.append(self._start())
        for worker in [worker for worker in self._workers if not worker.jobs]:
            indices = [run.waiting.popleft() for _ in range(min(run.chunk, len(run.waiting)))]
            if not indices:
                return
            try:
                worker.connection.send((run.seconds, [run.jobs[i] for i in indices]))
            except OSError:  # it died while idle, which is no job's fault
                run.waiting.extendleft(reversed(indices))
                self._stop(worker)
                continue
            worker.jobs.extend(indices)
            worker.deadline = time.monotonic() + (run.wall_seconds if worker.ready else _START_SECONDS)

    def _collect(self, run: _Map[Job, Result]) -> None:
        """Wait for an answer or a deadline, whichever comes first."""
        busy = [worker for worker in self._workers if worker.jobs]
        if not busy:
            return
        patience = min(worker.deadline for worker in busy) - time.monotonic()
        answered = wait([worker.connection for worker in busy], max(0.0, patience))
        for worker in busy:
            if worker.connection in answered:
                self._receive(worker, run)
            elif time.monotonic() >= worker.deadline:
                self._lose(worker, run, Failure("wall", f"no answer within {run.wall_seconds:g} s"))

    def _receive(self, worker: _Worker, run: _Map[Job, Result]) -> None:
        try:
            while worker.jobs and worker.connection.poll():
                answer = worker.connection.recv()
                if worker.ready:
                    run.answer(worker.jobs.popleft(), answer)
                worker.ready = True  # the first message of a worker only says that it has started
                worker.deadline = time.monotonic() + run.wall_seconds
        except (EOFError, OSError):
            with suppress(subprocess.TimeoutExpired):  # time to print its traceback
                worker.process.wait(_LAST_WORDS_SECONDS)
            code = self._stop(worker)
            if code == -signal.SIGPROF:
                self._lose(worker, run, Failure("cpu", f"more than {run.seconds:g} s of CPU time"))
            else:
                self._lose(worker, run, Failure("died", f"its worker process ended with code {code}"))

    def _lose(self, worker: _Worker, run: _Map[Job, Result], failure: Failure) -> None:
        """Drop a worker; the job it had in hand has failed, the others it held go back to the queue."""
        self._stop(worker)
        if not worker.ready:
            raise CreditlibError(
                f"a worker process did not start ({failure.detail}); its own message is on stderr"
            )
        blamed = worker.jobs.popleft()
        run.waiting.extendleft(reversed(worker.jobs))
        if failure.kind == "died" and blamed not in run.retried:
            run.retried.add(blamed)
            run.waiting.appendleft(blamed)
        else:
            run.answer(blamed, failure)

    def _start(self) -> _Worker:
        ours, theirs = socket.socketpair()
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            ours.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", _TRANSFER_SECONDS, 0))
        path = json.dumps([os.path.abspath(entry) for entry in sys.path])
        process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, str(theirs.fileno()), str(os.getpid()), path],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        connection = Connection(ours.detach())
        connection.send_bytes(self._setup)
        return _Worker(process, connection, deadline=time.monotonic() + _START_SECONDS)

    def _stop(self, worker: _Worker) -> int:
        """Kill a worker and reap it; returns its exit code (negative: the signal)."""
        if worker in self._workers:
            self._workers.remove(worker)
            worker.connection.close()
            worker.process.kill()
        return worker.process.wait()

    def _stop_all(self) -> None:
        for worker in list(self._workers):
            self._stop(worker)


class Pooled:
    """A verifier whose work a pool does: it ends with `close`, or with its ``with`` block."""

    _pool: WorkerPool[Any, Any]

    def close(self) -> None:
        """End the worker processes."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Map(Generic[Job, Result]):
    """The state of one call of `WorkerPool.map`."""

    def __init__(self, jobs: Sequence[Job], seconds: float, wall_seconds: float, chunk: int) -> None:
        self.jobs = jobs
        self.seconds = seconds
        self.wall_seconds = wall_seconds
        self.chunk = chunk
        self.waiting = deque(range(len(jobs)))
        self.retried: set[int] = set()
        self._answers: dict[int, Result | Failure] = {}

    @property
    def unanswered(self) -> int:
        return len(self.jobs) - len(self._answers)

    def answer(self, index: int, answer: Result | Failure) -> None:
        self._answers[index] = answer

    def answers(self) -> list[Result | Failure]:
        return [self._answers[i] for i in range(len(self.jobs))]


# --------------------------------------------------------------------------- the worker's side


def _serve(descriptor: int, parent: int) -> None:
    """Main loop of a worker: read a list of jobs, answer them one by one, until the parent hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends the process when a job's CPU time is up
    _die_with(parent)
    os.dup2(2, 1)
    connection = Connection(descriptor)
    factory, arguments, memory_mb = pickle.loads(connection.recv_bytes())
    handler = factory(*arguments)
    resource.setrlimit(resource.RLIMIT_AS, (memory_mb << 20, memory_mb << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        connection.send(None)
        while True:
            seconds, jobs = connection.recv()
            for job in jobs:
                signal.setitimer(signal.ITIMER_PROF, seconds)
                try:
                    answer = handler(job)
                except MemoryError:
                    answer = Failure("memory", f"more than {memory_mb} MB")
                signal.setitimer(signal.ITIMER_PROF, 0)
                connection.send(answer)
    except (EOFError, ConnectionError):
        return


def _die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends, even in the middle of a job.

    Elsewhere than on Linux a worker notices when its job is done. The kernel watches the thread that started
    the worker: when only that ends, the pool replaces the worker at its next job.
    """
    if sys.platform == "linux":
        parent_death_signal = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
