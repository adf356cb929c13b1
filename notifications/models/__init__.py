from notifications.models.choice import MutedTicket, UnwantedKind, reasons_to_skip
from notifications.models.circuit import Circuit
from notifications.models.ledger import Channel, Claim, Delivery, DeliveryQuerySet, State

__all__ = [
    "Channel",
    "Circuit",
    "Claim",
    "Delivery",
    "DeliveryQuerySet",
    "MutedTicket",
    "State",
    "UnwantedKind",
    "reasons_to_skip",
]
