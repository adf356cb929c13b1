import pytest

from tests.factories import make_ticket


@pytest.fixture
def ticket(customer, product):
    return make_ticket(customer, product)
