"""Reporter and Heartbeat: a worker's two voices, one for the fit's events, one for signs of life.

Both write through the run store; the reporter also brings the signal back to the fit.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from sqlalchemy.exc import InterfaceError, OperationalError

from core.models.events import FitEvent, PhaseStarted, Preview, Signal
from core.runs.errors import RunStoreError
from core.runs.events import RunEvent
from core.runs.storage.engine import is_shared
from core.runs.storage.processes.clock import elapsed
from core.runs.storage.processes.process import MIB, Readings
from core.runs.storage.store import RunStore

FASTEST = {"metrics": 0.25, "progress": 0.25, "preview": 2.0}  # seconds between two of a kind
EVENTS_PER_LIFE = 2000  # a kind's pace falls so that a long run stays near so many events
SIGNAL_SECONDS = 0.25
BEAT_SECONDS = 2.0
PREVIEW_ROWS = 20
MOST_WAITING = 2000  # events that wait for a database which cannot be written
SURE_SECONDS = 40.0  # without a sign of life for longer, other machines may take the run soon
GIVE_UP_SECONDS = 6 * 3600.0  # without one for so long: the database may be gone for good
UNREACHABLE = (OperationalError, InterfaceError)
BURST = 64  # metrics of a phase that pass at once: one that is over in a second leaves a curve too


class Pace:
    """When the next of a stream of events is due: at most one each `fastest` seconds.

    The gap grows with age, so that the number of events grows like its logarithm once 2,000 have
    passed: a run of ten hours keeps about 10,000 of a kind, not 144,000.
    """

    def __init__(self, fastest: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._fastest = fastest
        self._clock = clock
        self._began = clock()
        self._last = -float("inf")

    def due(self) -> bool:
        """Whether one may pass now; if so, it is counted as passed."""
        now = self._clock()
        gap = max(self._fastest, (now - self._began) / EVENTS_PER_LIFE)
        if now - self._last < gap:
            return False
        self._last = now
        return True


class Stopwatch:
    """Wall time by phase; a phase entered twice adds up."""

    def __init__(self, seconds: dict[str, float] | None = None) -> None:
        self._seconds = dict(seconds or {})
        self._phase: str | None = None
        self._since = time.monotonic()

    def enter(self, phase: str | None) -> None:
        """End the present phase and begin another; None only ends."""
        now = time.monotonic()
        if self._phase is not None:
            self._seconds[self._phase] = self._seconds.get(self._phase, 0.0) + now - self._since
        self._phase, self._since = phase, now

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds by phase, the present one included, to the millisecond."""
        self.enter(self._phase)
        return {name: round(value, 3) for name, value in self._seconds.items()}


class Reporter:
    """The observer of a run's fit: stores its events at a bounded pace, returns the signal."""

    def __init__(self, store: RunStore, run_id: str) -> None:
        self._store = store
        self._run_id = run_id
        self._paces = {kind: Pace(fastest) for kind, fastest in FASTEST.items()}
        self._held: dict[str, FitEvent] = {}  # newest event of each kind that was not due
        self._signal = Signal.GO_ON
        self._signal_pace = Pace(SIGNAL_SECONDS)
        self._private = False
        self._burst = BURST
        self._superseded = threading.Event()
        self._waiting: list[FitEvent] = []
        self._shared = is_shared(store.engine)
        self._confirmed: float | None = None  # before the first sign of life
        self.watch = Stopwatch(store.run(run_id).seconds)

    def __call__(self, event: FitEvent) -> Signal:
        """Store the event when it is due and return what the fit should do."""
        if isinstance(event, PhaseStarted):
            self.flush()
            self._private = event.private
            self._burst = BURST
            self.watch.enter(event.name)
            with _unless_busy():
                self._store.record(self._run_id, seconds=self.watch.seconds)
        if isinstance(event, Preview):
            event = Preview(rows=event.rows[:PREVIEW_ROWS])
        pace = self._paces.get(event.kind)
        early = event.kind == "metrics" and self._burst > 0
        if early:
            self._burst -= 1
        if pace is None or pace.due() or early:
            self._held.pop(event.kind, None)
            self._append(event)
        else:
            self._held[event.kind] = event
        return self.signal()

    def signal(self) -> Signal:
        """What the fit should do now; asked of the store at most four times a second.

        A pause waits for the end of a private phase that has no checkpoint yet: stopping inside it
        would throw away what was paid for.
        """
        if self._superseded.is_set():
            return Signal.CANCEL
        self._wait_until_sure()
        if self._superseded.is_set():
            return Signal.CANCEL
        if self._signal_pace.due():
            with _unless_busy():
                self._signal = self._store.signal(self._run_id)
        if self._signal is Signal.PAUSE and self._private:
            return Signal.PAUSE if self._store.has_checkpoint(self._run_id) else Signal.GO_ON
        return self._signal

    def flush(self) -> None:
        """Store what was held back, so that the last step of a phase is always there."""
        for event in self._held.values():
            self._append(event)
        self._held.clear()

    def _append(self, event: FitEvent) -> None:
        """Store an event after those that could not be stored yet."""
        self._waiting.append(event)
        del self._waiting[:-MOST_WAITING]
        with _unless_busy():
            while self._waiting:
                self._store.journal.append(self._run_id, self._waiting[0])
                del self._waiting[0]

    def confirm(self, since: float) -> None:
        """Keep that the run was this process's own at that moment (`clock.elapsed`)."""
        self._confirmed = since

    def _wait_until_sure(self) -> None:
        """Wait while other machines may take this process for dead: two must not write one run.

        On a SQLite file everybody sees the process itself. Where nothing is heard for very long the
        run is given up; it goes on from its checkpoint once somebody resumes it.
        """
        if not self._shared or not self._unsure():
            return
        print("waiting for the database: whose run this is cannot be told", file=sys.stderr)
        while self._unsure() and not self._superseded.wait(0.2):
            if self._unsure(GIVE_UP_SECONDS):
                self.supersede()

    def _unsure(self, seconds: float = SURE_SECONDS) -> bool:
        return self._confirmed is not None and elapsed() - self._confirmed > seconds

    def supersede(self) -> None:
        """Make the fit stop: the run is no longer this process's own."""
        self._superseded.set()

    @property
    def superseded(self) -> bool:
        """Whether another process holds the run now, or nobody does."""
        return self._superseded.is_set()


@contextmanager
def _unless_busy() -> Iterator[None]:
    """Go on without a point of a curve, for now, where the database cannot be read or written."""
    try:
        yield
    except UNREACHABLE as error:
        print(f"the database does not answer: {type(error.orig).__name__}", file=sys.stderr)


class Heartbeat:
    """A thread that says "alive" and reads the machine every two seconds while the block lasts.

    Attributes:
      device: what the readings name as the device; the worker sets it once it is known.
    """

    def __init__(self, store: RunStore, reporter: Reporter, run_id: str) -> None:
        self._store = store
        self._reporter = reporter
        self._run_id = run_id
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self.device = "cpu"
        self.readings = Readings()

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stop.set()
        self._thread.join()

    def _beat(self) -> None:
        pace = Pace(BEAT_SECONDS * 0.9)
        while not self._stop.wait(BEAT_SECONDS):
            reading = self.readings.read(self.device)
            try:
                now = elapsed()
                if not self._store.beat(self._run_id):
                    self._reporter.supersede()
                    return
                self._reporter.confirm(now)
                if pace.due():
                    self._store.journal.append(self._run_id, RunEvent(kind="device", data=reading))
            except (RunStoreError, *UNREACHABLE):
                continue  # the database is busy: the next reading may do


def ignore_hangup() -> None:
    """Go on when the terminal or the server that started this process goes away."""
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def peak_memory_mb(seen: float = 0.0) -> float:
    """The largest resident size of this process in MiB, from the kernel where it tells.

    Args:
      seen: the largest of earlier readings, MiB; the answer (with the present size) where the
        kernel does not tell.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024.0
    present: float = psutil.Process().memory_info().rss / MIB
    return max(seen, present)
