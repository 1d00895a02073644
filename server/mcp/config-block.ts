export const mcpConfigBlock = (mcpUrl: string, apiKey: string) => ({
  mcpServers: {
    "agent-spending-control": {
      type: "http" as const,
      url: `${mcpUrl}/mcp`,
      headers: { Authorization: `Bearer ${apiKey}` },
    },
  },
});
