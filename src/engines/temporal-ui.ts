/** Columns of the list of workflows: the UI's own attributes and this service's search attributes. */
const COLUMNS = ["Status", "Type", "Workflow ID", "OrganizationId", "AgentId", "Start", "End"];

/** The UI's key in a browser's storage for columns, by namespace. The UI has no setting for all browsers. */
const COLUMNS_KEY = "namespace-workflow-table-columns";

/**
 * Returns the page at the root of the UI's address. Gives a browser without chosen columns those of this service, and
 * redirects to the list of workflows. A UI that stores columns elsewhere shows its own.
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
