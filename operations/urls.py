"""The pages of the people who run Stega. The probes for machines are not here: `operations.probes` answers them."""

from django.urls import path

from operations.console import operating, pages

app_name = "operations"
urlpatterns = [
    path("", pages.overview, name="overview"),
    path("find/", pages.find, name="find"),
    path("queues/", pages.queue_list, name="queues"),
    path("consumers/", pages.consumer_list, name="consumers"),
    path("tickers/", pages.ticker_list, name="tickers"),
    path("retries/", pages.retry_list, name="retries"),
    path("dead-letters/", pages.dead_letter_groups, name="dead_letters"),
    path("dead-letters/group/", pages.dead_letter_group, name="dead_letter_group"),
    path("dead-letters/<int:id>/", pages.dead_letter, name="dead_letter"),
    path("tasks/", pages.task_list, name="tasks"),
    path("outbox/", pages.outbox_list, name="outbox"),
    path("ledger/", pages.ledger_list, name="ledger"),
    path("events/<uuid:key>/", pages.event, name="event"),
    path("tickets/<int:ticket_id>/", pages.ticket, name="ticket"),
    path("record/", pages.action_list, name="actions"),
    path("record/<int:id>/", pages.action, name="action"),
    path("do/<slug:kind>/", operating.act, name="act"),
]
