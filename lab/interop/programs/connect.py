"""Pays by the official MCP client, given nothing but the address. Prints the address that its browser is to open."""

import asyncio
import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlparse

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata


class Memory:
    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


class Callback(BaseHTTPRequestHandler):
    """Where the browser returns to."""

    answer = None

    def do_GET(self):
        url = urlparse(self.path)
        if url.path == "/callback":
            Callback.answer = parse_qs(url.query)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"Connected.")

    def log_message(self, *_):
        pass


SERVER = HTTPServer(("127.0.0.1", 0), Callback)


def called_back():
    while Callback.answer is None:
        SERVER.handle_request()
    return Callback.answer


async def visit(url):
    print(url, flush=True)


async def returned():
    answer = await asyncio.to_thread(called_back)
    return AuthorizationCodeResult(code=answer["code"][0], state=answer["state"][0], iss=answer["iss"][0])


async def main(address, payment):
    callback = f"http://127.0.0.1:{SERVER.server_port}/callback"
    metadata = OAuthClientMetadata(client_name="Python", redirect_uris=[callback])
    auth = OAuthClientProvider(address, metadata, Memory(), visit, returned)
    async with httpx2.AsyncClient(auth=auth, timeout=60) as http:
        async with Client(streamable_http_client(address, http_client=http)) as client:
            paid = await client.call_tool("create_card_payment", payment)
            print(json.dumps(paid.structured_content), flush=True)


asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
