"""Pays by the official MCP client, given nothing but the address. Its browser is whoever reads stdout and answers on stdin."""

import asyncio
import json
import sys
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


async def visit(url):
    print(url, flush=True)


async def returned():
    line = await asyncio.to_thread(sys.stdin.readline)
    answer = parse_qs(urlparse(line.strip()).query)
    return AuthorizationCodeResult(code=answer["code"][0], state=answer["state"][0], iss=answer["iss"][0])


async def main(address, payment):
    metadata = OAuthClientMetadata(client_name="Python", redirect_uris=["http://localhost:4711/callback"])
    auth = OAuthClientProvider(address, metadata, Memory(), visit, returned)
    async with httpx2.AsyncClient(auth=auth, timeout=60) as http:
        async with Client(streamable_http_client(address, http_client=http)) as client:
            paid = await client.call_tool("create_card_payment", payment)
            print(json.dumps(paid.structured_content), flush=True)


asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
