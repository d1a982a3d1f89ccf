"""Numbers from repeated, interleaved rounds."""

import math
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

Subject = TypeVar("Subject")


@dataclass(frozen=True, kw_only=True)
class Round:
    """What one subject did in one round; times in milliseconds per call."""

    latencies: list[float]
    seconds: float
    cpu: float = math.nan

    @property
    def p50(self) -> float:
        return percentile(self.latencies, 50)

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds

    @property
    def cpu_per_call(self) -> float:
        return self.cpu * 1000 / len(self.latencies)


@dataclass
class Series:
    """The rounds of one subject."""

    rounds: list[Round] = field(default_factory=list)

    @property
    def p50(self) -> float:
        return statistics.median(each.p50 for each in self.rounds)

    @property
    def p99(self) -> float:
        return percentile([latency for each in self.rounds for latency in each.latencies], 99)

    @property
    def rate(self) -> float:
        return statistics.median(each.rate for each in self.rounds)

    @property
    def cpu(self) -> float:
        """Of the best quarter of rounds: neighbours on the machine can only add to it."""
        return percentile([each.cpu_per_call for each in self.rounds], 25)


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share / 100 * (len(ordered) - 1)))]


def interleaved(
    subjects: Iterable[Subject], measure: Callable[[Subject], Round], *, rounds: int, budget: float = math.inf
) -> dict[Subject, Series]:
    """A B C A B C …, after one round of each that does not count; fewer rounds, but two, when the time is used up."""
    series = {subject: Series() for subject in subjects}
    started = time.monotonic()
    for number in range(rounds + 1):
        if number > 2 and time.monotonic() - started > budget:
            break
        for subject, measured in series.items():
            result = measure(subject)
            if number:
                measured.rounds.append(result)
    return series


def cpu_seconds(pid: int) -> float:
    """CPU time of a process, with that of threads that have ended, in nanosecond steps: Linux's clock of it."""
    return time.clock_gettime((~pid << 3) | 2)


def resident_mb(pid: int | str = "self") -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def timed(work: Callable[[], object]) -> float:
    """Milliseconds of CPU that the work takes."""
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1000
