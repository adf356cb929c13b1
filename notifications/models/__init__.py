from notifications.models.choice import MutedTicket, UnwantedKind, reasons_to_skip
from notifications.models.circuit import Circuit
from notifications.models.ledger import Claim, Delivery, DeliveryQuerySet, State

__all__ = [
    "Circuit",
    "Claim",
    "Delivery",
    "DeliveryQuerySet",
    "MutedTicket",
    "State",
    "UnwantedKind",
    "reasons_to_skip",
]
