"""What the log does not need to say at length."""

import logging

from stega.outages import is_outage


class OneLine(logging.Filter):
    """Drops the traceback of what is no fault of the code: a refused request, a database that is away."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and is_outage(error):
            record.msg, record.args = f"{record.getMessage()}: {' '.join(str(error).split())}", ()
            record.exc_info = record.exc_text = None
        if getattr(record, "status_code", 500) < 500:
            record.exc_info = record.exc_text = None
        return True
