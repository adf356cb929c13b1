from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings

from operations.facts.queues import Queue, Queues
from operations.facts.tickers import Tickers
from operations.problems import words
from operations.problems.words import Problem, seconds

_COMMAND = "python manage.py pgque_ticker"


def faults(tickers: Tickers, log: Queues) -> Iterator[Problem]:
    """One at the most: its causes come together."""
    silent = tickers.leader.silent_for if tickers.leader else None
    if tickers.is_visible and tickers.leader is None:
        yield words.NO_LEADER.of("ticker", command=_COMMAND)
    elif silent is not None and silent > _patience():
        yield words.LEADER_SILENT.of("ticker", age=seconds(silent), command=_COMMAND)
    elif late := [queue for queue in log.queues if _lacks_ticks(queue)]:
        lag = max(queue.ticker_lag or timedelta() for queue in late)
        yield words.TICKS_MISSING.of("ticker", queue=late[0].name, age=seconds(lag), command=_COMMAND)


def is_unticked(queue: Queue, tickers: Tickers | None) -> bool:
    """Whether nobody does for the queue what a ticker should: what ticker_dead says, about one queue and at once."""
    if queue.is_paused:
        return False
    if tickers is None or not tickers.is_visible:
        return _lacks_ticks(queue)
    silent = tickers.leader.silent_for if tickers.leader else None
    hangs = silent is not None and silent > _patience()
    return tickers.leader is None or hangs or _lacks_ticks(queue)


def _lacks_ticks(queue: Queue) -> bool:
    return not queue.is_paused and (queue.ticker_lag is None or queue.ticker_lag > queue.idle_period + _patience())


def _patience() -> timedelta:
    return timedelta(seconds=settings.TICKER_DEAD_SECONDS)
