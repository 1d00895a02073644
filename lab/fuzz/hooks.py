"""What the OpenAPI document can't say in JSON Schema, told to schemathesis: how values of the document's own formats are
made, and which rules hold between fields. Each exception has its reason beside it; there are no others."""

import base64
import os
import secrets
import struct
import uuid
import zlib

import schemathesis
from hypothesis import strategies as st

HEX = "0123456789abcdef"

# A checksum is no pattern: all lower case is good without one.
ADDRESSES = st.text(HEX, min_size=40, max_size=40).map("0x".__add__).filter(lambda text: text.strip("0x") != "")
schemathesis.openapi.format("evm-address", ADDRESSES)

schemathesis.openapi.format(
    "iana-time-zone",
    st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Etc/UTC", "UTC"]),
)


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def image(width: int, height: int) -> str:
    """A gray PNG."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = b"".join(b"\0" + b"\x80" * width for _ in range(height))
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(png).decode()


# Its bytes must be an image.
schemathesis.openapi.format("image-data-url", st.builds(image, st.integers(1, 64), st.integers(1, 64)))

# A password must be hard to guess, which takes a list of what people choose.
WORDS = ["quartz", "lantern", "bridge", "velvet", "orbit", "mango", "saddle", "prism", "tundra", "cobalt", "wicker", "plume"]
schemathesis.openapi.format(
    "password", st.lists(st.sampled_from(WORDS), min_size=5, max_size=8, unique=True).map(" ".join)
)


BASE_URL = os.environ["FUZZ_BASE_URL"]
TOKEN = os.environ["FUZZ_TOKEN"]
OWNER_ID = os.environ["FUZZ_OWNER_ID"]
OWNER_EMAIL = os.environ["FUZZ_OWNER_EMAIL"]
GUEST = {"email": os.environ["FUZZ_GUEST_EMAIL"], "password": os.environ["FUZZ_GUEST_PASSWORD"]}
NEEDS_KEY = os.environ["FUZZ_CALLER"] == "organization key"
NEEDS_SESSION = os.environ["FUZZ_CALLER"] == "session"

CREATES = {"createAgent", "createProject", "createTeam"}

# What ends or weakens the session that the run lives by is asked for by a guest's.
ENDS_SESSION = {"signOut", "endOtherSessions", "confirmTotp", "stepUp", "changePassword"}


def address() -> str:
    """An address of its own: requests without a good credential are counted by address."""
    return "10." + ".".join(str(secrets.randbelow(256)) for _ in range(3))


def is_valid(case) -> bool:
    return case.meta is None or case.meta.generation.mode.is_positive


def operation_of(case) -> str:
    return case.operation.definition.raw.get("operationId")


if TOKEN != "":

    @schemathesis.auth(refresh_interval=None)
    class Credential:
        def get(self, case, context):
            return guest_token() if NEEDS_SESSION and operation_of(case) in ENDS_SESSION else TOKEN

        def set(self, case, data, context):
            case.headers = {**(case.headers or {}), "Authorization": f"Bearer {data}"}


@schemathesis.hook
def before_call(ctx, case, kwargs):
    case.headers = {**(case.headers or {}), "X-Forwarded-For": address()}
    # The person whose session it is stays, as what they are.
    if operation_of(case) in {"removeMember", "updateMember"} and (case.path_parameters or {}).get("id") == OWNER_ID:
        case.path_parameters["id"] = str(uuid.uuid4())
    if is_valid(case):
        keep_rules(operation_of(case), case)
    elif case.body is not None:
        case.body = without_nulls(case.body)


def without_nulls(value):
    """Null for an optional field counts as left out, so what is to be refused has another value of a wrong type there."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return {"unexpected": True} if value is None else value


def guest_token() -> str:
    import requests

    headers = {"X-Forwarded-For": address()}
    answer = requests.post(BASE_URL + "/v1/auth/sign-in", json=GUEST, headers=headers, timeout=10)
    return answer.json().get("token", "none")


def keep_rules(operation, case) -> None:
    """Rules between fields, or about what the service has given out, that no schema can say. Each is in the description."""
    query, body = case.query, case.body
    if isinstance(query, dict):
        # Only the service makes cursors, signed; pages are asked for by a check of their own.
        query.pop("cursor", None)
        # An answer may wait for a person for most of a minute, which would use up the pass.
        if "waitSeconds" in query:
            query["waitSeconds"] = 1
    if not isinstance(body, dict):
        return
    if operation in {"setProjectApprovalRules", "setTeamApprovalRules"}:
        for rule in body.get("rules", []):
            # The id is that of a rule that is there.
            rule.pop("id", None)
            # With nothing between them, it can't be told whether no time or all of it is meant.
            params = rule.get("params", {})
            if params.get("from", "") == params.get("to", None):
                params["from"], params["to"] = "09:00", "17:00"
    if operation in {"createWebhook", "updateWebhook"} and "url" in body:
        # Its host must resolve, and to an address that may be called: the run allows those of this machine.
        body["url"] = "https://127.0.0.1:1/" + str(secrets.randbelow(1_000))
    if body.get("email") in {OWNER_EMAIL, GUEST["email"]} and operation == "createInvite":
        # Only who is no member yet can be invited.
        body["email"] = f"{uuid.uuid4()}@example.com"
    if "idempotencyKey" in body or (NEEDS_KEY and operation in CREATES):
        # The document's example is good once; a machine must send one to a create, which a person need not.
        body["idempotencyKey"] = str(uuid.uuid4())
    if "*" in (body.get("eventTypes") or []):
        # All events are named alone.
        body["eventTypes"] = ["*"]
    if operation == "createWebhook":
        # A scope other than the organization's has ids, and that one none.
        if body.get("scopeType", "organization") == "organization":
            body.pop("scopeIds", None)
        else:
            body["scopeIds"] = body.get("scopeIds") or [str(uuid.uuid4())]
    if operation == "decideApprovals":
        # A denial says why.
        for decision in body.get("decisions", []):
            decision.setdefault("feedback", "no")
    if operation == "updateWebhook":
        # Judged with what the endpoint has.
        body.pop("scopeType", None)
        body.pop("scopeIds", None)
