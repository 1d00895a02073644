import hashlib
import hmac
import json
import time


def verify(secret: str, headers, raw_body: bytes) -> dict:
    """The event of a delivery; ValueError if it is not genuine. `headers` finds names in any case."""
    if not secret:
        raise ValueError("no secret is set")
    timestamp = headers.get("Svc-Timestamp") or ""
    if not (timestamp.isascii() and timestamp.isdigit()):
        raise ValueError("no timestamp")
    if abs(int(time.time()) - int(timestamp)) > 300:
        raise ValueError("too old or too new")
    mac = hmac.new(secret.encode(), timestamp.encode() + b"." + raw_body, hashlib.sha256)
    expected = b"sha256=" + mac.hexdigest().encode()
    given = (headers.get("Svc-Signature") or "").split(",")[:4]
    if not any(hmac.compare_digest(expected, each.encode()) for each in given):
        raise ValueError("no signature fits")
    event = json.loads(raw_body)
    if (event["id"], event["type"]) != (headers.get("Svc-Delivery-Id"), headers.get("Svc-Event-Type")):
        raise ValueError("headers of another delivery")
    return event
