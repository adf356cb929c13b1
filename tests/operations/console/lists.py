"""The console's pages that need no more than their name."""

PAGES = [
    "overview",
    "queues",
    "consumers",
    "tickers",
    "retries",
    "dead_letters",
    "tasks",
    "outbox",
    "ledger",
    "actions",
]
