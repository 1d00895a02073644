"""Provisions an agent and makes its first payment by the client of openapi-python-client."""

import json
import os
import re
from uuid import UUID

from pydantic_core import SchemaValidator

from agent_spending_control_service_client import AuthenticatedClient
from agent_spending_control_service_client.api.agents import create_agent
from agent_spending_control_service_client.api.payments import create_payment
from agent_spending_control_service_client.models import (
    CardPayment,
    CreateAgentRequest,
    CreateAgentResult,
    CreatePaymentResult,
)

run = os.environ["RUN"]


def client(key: str) -> AuthenticatedClient:
    return AuthenticatedClient(base_url=os.environ["BASE_URL"], token=key)



def patterns(value):
    if isinstance(value, dict):
        if isinstance(value.get("pattern"), str):
            yield value["pattern"]
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from patterns(part)


# Python's own engine, and Rust's, which pydantic uses.
with open("document.json", encoding="utf-8") as document:
    for pattern in set(patterns(json.load(document))):
        re.compile(pattern)
        SchemaValidator({"type": "str", "pattern": pattern})

created = create_agent.sync(
    client=client(os.environ["ORGANIZATION_KEY"]),
    body=CreateAgentRequest(
        name="Python",
        team_id=UUID(os.environ["TEAM_ID"]),
        budget_cents=10_000,
        idempotency_key=f"agent-{run}",
    ),
)
assert isinstance(created, CreateAgentResult), created
paid = create_payment.sync(
    client=client(created.api_key or ""),
    # The generator makes a class of an enumeration of 3.0, and a literal of 3.1's constant.
    body=CardPayment.from_dict(
        {
            "rail": "card",
            "merchant": "Acme",
            "amountCents": 1_200,
            "purpose": "a domain",
            "idempotencyKey": f"payment-{run}",
        }
    ),
)
assert isinstance(paid, CreatePaymentResult), paid
print(paid.transaction.status)
