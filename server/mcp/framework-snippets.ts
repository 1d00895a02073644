interface FrameworkSnippet {
  readonly client: string;
  readonly name: string;
  readonly place: string;
  readonly format: "python" | "typescript" | "json";
  readonly remark: string;
  readonly text: (url: string, bearer: string) => string;
}

const PROMPT = "Pay Acme 1.00 USD by card, for a test.";
/** Model that the current versions of most frameworks know. */
const MODEL = "gpt-5-mini";
/** Exceeds the longest `waitSeconds` of a payment; some frameworks default to 5 s. */
const TIMEOUT_SECONDS = 60;

const IN_CODE = "For more than a trial read the agent's key from the environment instead of the source.";
const needing = (variable: string): string => `The model needs ${variable}. ${IN_CODE}`;

export const FRAMEWORK_SNIPPETS: readonly FrameworkSnippet[] = [
  {
    client: "openai-agents-sdk",
    name: "OpenAI Agents SDK",
    place: "agent.py",
    format: "python",
    remark: needing("OPENAI_API_KEY"),
    text: (url, bearer) => `# pip install openai-agents
import asyncio

from agents import Agent, Runner
from agents.mcp import MCPServerStreamableHttp


async def main():
    async with MCPServerStreamableHttp(
        params={"url": "${url}", "headers": {"Authorization": "${bearer}"}, "timeout": ${TIMEOUT_SECONDS}},
        client_session_timeout_seconds=${TIMEOUT_SECONDS},
    ) as server:
        agent = Agent(name="Buyer", mcp_servers=[server])
        result = await Runner.run(agent, "${PROMPT}")
        print(result.final_output)


asyncio.run(main())
`,
  },
  {
    client: "langchain",
    name: "LangChain",
    place: "agent.py",
    format: "python",
    remark: needing("OPENAI_API_KEY"),
    text: (url, bearer) => `# pip install langchain langchain-openai langchain-mcp-adapters
import asyncio

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient

client = MultiServerMCPClient(
    {
        "spending": {
            "transport": "http",
            "url": "${url}",
            "headers": {"Authorization": "${bearer}"},
        }
    }
)


async def main():
    agent = create_agent("openai:${MODEL}", await client.get_tools())
    result = await agent.ainvoke({"messages": [("user", "${PROMPT}")]})
    print(result["messages"][-1].content)


asyncio.run(main())
`,
  },
  {
    client: "vercel-ai-sdk",
    name: "Vercel AI SDK",
    place: "agent.ts",
    format: "typescript",
    remark: needing("OPENAI_API_KEY"),
    text: (url, bearer) => `// npm install ai @ai-sdk/mcp @ai-sdk/openai
import { createMCPClient } from "@ai-sdk/mcp";
import { openai } from "@ai-sdk/openai";
import { generateText, isStepCount } from "ai";

const client = await createMCPClient({
  transport: {
    type: "http",
    url: "${url}",
    headers: { Authorization: "${bearer}" },
  },
});
try {
  const { text } = await generateText({
    model: openai("${MODEL}"),
    tools: await client.tools(),
    stopWhen: isStepCount(10),
    prompt: "${PROMPT}",
  });
  console.log(text);
} finally {
  await client.close();
}
`,
  },
  {
    client: "pydantic-ai",
    name: "Pydantic AI",
    place: "agent.py",
    format: "python",
    remark: needing("OPENAI_API_KEY"),
    text: (url, bearer) => `# pip install "pydantic-ai-slim[openai,mcp]"
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

server = MCPToolset("${url}", headers={"Authorization": "${bearer}"})
agent = Agent("openai:${MODEL}", toolsets=[server])
print(agent.run_sync("${PROMPT}").output)
`,
  },
  {
    client: "google-adk",
    name: "Google ADK",
    place: "agent.py",
    format: "python",
    remark: needing("GOOGLE_API_KEY"),
    text: (url, bearer) => `# pip install "google-adk[mcp]"
import asyncio

from google.adk.agents import Agent
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams

server = McpToolset(
    connection_params=StreamableHTTPConnectionParams(
        url="${url}",
        headers={"Authorization": "${bearer}"},
        timeout=${TIMEOUT_SECONDS},
    )
)
root_agent = Agent(name="buyer", model="gemini-flash-latest", tools=[server])


async def main():
    async with InMemoryRunner(root_agent) as runner:
        await runner.run_debug("${PROMPT}")


asyncio.run(main())
`,
  },
  {
    client: "crewai",
    name: "CrewAI",
    place: "agent.py",
    format: "python",
    remark: needing("OPENAI_API_KEY"),
    text: (url, bearer) => `# pip install crewai "crewai-tools[mcp]"
from crewai import Agent
from crewai_tools import MCPServerAdapter

server = {
    "transport": "streamable-http",
    "url": "${url}",
    "headers": {"Authorization": "${bearer}"},
}
with MCPServerAdapter(server) as tools:
    agent = Agent(
        role="Buyer",
        goal="Pay what you are asked to pay, within your budget.",
        backstory="You buy on behalf of your organization.",
        llm="openai/${MODEL}",
        tools=tools,
    )
    print(agent.kickoff("${PROMPT}").raw)
`,
  },
  {
    client: "claude-agent-sdk",
    name: "Claude Agent SDK",
    place: "agent.py",
    format: "python",
    remark: needing("ANTHROPIC_API_KEY"),
    text: (url, bearer) => `# pip install claude-agent-sdk
import asyncio

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

options = ClaudeAgentOptions(
    mcp_servers={
        "spending": {
            "type": "http",
            "url": "${url}",
            "headers": {"Authorization": "${bearer}"},
        }
    },
    allowed_tools=["mcp__spending__*"],
    tools=[],  # none of its own: neither a shell nor files
)


async def main():
    async for message in query(prompt="${PROMPT}", options=options):
        if isinstance(message, ResultMessage):
            print(message.result)


asyncio.run(main())
`,
  },
  {
    client: "n8n",
    name: "n8n",
    place: "workflow.json",
    format: "json",
    remark:
      "Paste it on the canvas. n8n keeps keys in credentials: choose one of the type OpenAI in the node Model, and one of the " +
      "type Bearer Auth, whose token is the agent's key, in the node Spending.",
    text: (url) => JSON.stringify(workflowAt(url), null, 2),
  },
];

const toBuyer = (type: string) => ({ [type]: [[{ node: "Buyer", type, index: 0 }]] });

/** Returns an n8n workflow: an agent with a model and the service's tools, started by pressing Execute. */
function workflowAt(endpointUrl: string) {
  return {
    nodes: [
      {
        name: "Start",
        type: "n8n-nodes-base.manualTrigger",
        typeVersion: 1,
        position: [0, 0],
        parameters: {},
      },
      {
        name: "Buyer",
        type: "@n8n/n8n-nodes-langchain.agent",
        typeVersion: 3,
        position: [220, 0],
        parameters: { promptType: "define", text: PROMPT },
      },
      {
        name: "Model",
        type: "@n8n/n8n-nodes-langchain.lmChatOpenAi",
        typeVersion: 1.2,
        position: [160, 220],
        parameters: { model: { __rl: true, mode: "id", value: MODEL } },
      },
      {
        name: "Spending",
        type: "@n8n/n8n-nodes-langchain.mcpClientTool",
        typeVersion: 1.2,
        position: [340, 220],
        parameters: { endpointUrl, authentication: "bearerAuth" },
      },
    ],
    connections: {
      Start: toBuyer("main"),
      Model: toBuyer("ai_languageModel"),
      Spending: toBuyer("ai_tool"),
    },
    // With n8n's older order, its default for imported files, the model continues before a tool has answered.
    settings: { executionOrder: "v1" },
  };
}
