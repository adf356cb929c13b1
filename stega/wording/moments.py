"""Times as people say them: "in 3 h", "2 d ago"."""

from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def span(duration: timedelta) -> str:
    """The largest fitting unit, rounded down: a deadline is never said to be further away than it is."""
    if duration < MINUTE:
        return _("less than 1 min")
    if duration < HOUR:
        return _("%(count)d min") % {"count": duration // MINUTE}
    if duration < 2 * DAY:
        return _("%(count)d h") % {"count": duration // HOUR}
    return _("%(count)d d") % {"count": duration // DAY}


def exact(moment: datetime) -> str:
    """The date and the time of day, with the zone they are meant in."""
    return f"{date_format(timezone.localtime(moment), 'DATETIME_FORMAT')} ({timezone.get_current_timezone_name()})"


def until(moment: datetime, now: datetime) -> str:
    """When something is due."""
    if moment > now:
        return _("in %(span)s") % {"span": span(moment - now)}
    return _("overdue by %(span)s") % {"span": span(now - moment)}


def ago(moment: datetime, now: datetime) -> str:
    if now - moment < MINUTE:
        return _("just now")
    return _("%(span)s ago") % {"span": span(now - moment)}


def minutes(count: int) -> str:
    """A duration in minutes, in hours where it is whole hours."""
    if count % 60:
        return _("%(count)d min") % {"count": count}
    return _("%(count)d h") % {"count": count // 60}
