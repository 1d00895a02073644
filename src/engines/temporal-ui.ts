/** Columns of the list of workflows: attributes of the UI and search attributes of this service. */
const COLUMNS = ["Status", "Type", "Workflow ID", "OrganizationId", "AgentId", "Start", "End"];

/** The UI's entry in a browser's storage for columns, by namespace. It has no setting for all browsers. */
const COLUMNS_KEY = "namespace-workflow-table-columns";

/**
 * The page at the root of the UI's address: gives a browser that has not chosen columns of its own those of this service,
 * and leads to the list of workflows. A UI that stores columns elsewhere shows its own.
 */
export function uiEntrance(namespace: string): string {
  const list = `/namespaces/${namespace}/workflows`;
  const columns = COLUMNS.map((label) => ({ label }));
  return `<!doctype html>
<meta charset="utf-8">
<title>Workflows</title>
<script>
  const [key, namespace] = ${JSON.stringify([COLUMNS_KEY, namespace])};
  const chosen = JSON.parse(localStorage.getItem(key) ?? "{}");
  const columns = ${JSON.stringify(columns)};
  localStorage.setItem(key, JSON.stringify({ [namespace]: columns, ...chosen }));
  location.replace(${JSON.stringify(list)});
</script>
<p><a href="${list}">Workflows</a></p>
`;
}
