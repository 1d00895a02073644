import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
} from "@tanstack/react-router";
import { auditSearchIn } from "./audit-search.ts";
import { inboxSearchIn } from "./inbox-search.ts";
import { Landed } from "./landed.tsx";
import { NotFound } from "./pages/not-found.tsx";
import { Shell, ShellAlone } from "./shell.tsx";
import { agentSearchIn } from "./agent-search.ts";
import { filtersIn } from "./transaction-filters.ts";

const root = createRootRoute({ component: Outlet });

const setUp = createRoute({
  getParentRoute: () => root,
  path: "/setup",
  component: lazyRouteComponent(() => import("./pages/set-up.tsx"), "SetUp"),
});
const sso = createRoute({
  getParentRoute: () => root,
  path: "/sso/$organizationId",
  component: lazyRouteComponent(() => import("./pages/sso.tsx"), "Sso"),
});
const invite = createRoute({
  getParentRoute: () => root,
  path: "/invite",
  component: lazyRouteComponent(() => import("./pages/invite.tsx"), "AcceptInvite"),
});

/** Route of all pages behind the sign-in. */
const app = createRoute({ getParentRoute: () => root, id: "app", component: Shell });
const home = createRoute({
  getParentRoute: () => app,
  path: "/",
  component: lazyRouteComponent(() => import("./pages/home.tsx"), "Home"),
});
const agents = createRoute({
  getParentRoute: () => app,
  path: "/agents",
  validateSearch: agentSearchIn,
  component: lazyRouteComponent(() => import("./pages/agents.tsx"), "Agents"),
});
const agent = createRoute({
  getParentRoute: () => app,
  path: "/agents/$id",
  component: lazyRouteComponent(() => import("./pages/agent.tsx"), "AgentPage"),
});
/** Route of pages behind the sign-in without the navigation. */
const alone = createRoute({ getParentRoute: () => root, id: "alone", component: ShellAlone });
const card = createRoute({
  getParentRoute: () => alone,
  path: "/cards/$id",
  component: lazyRouteComponent(() => import("./pages/card.tsx"), "CardPage"),
});
const connect = createRoute({
  getParentRoute: () => app,
  path: "/connect/$id",
  component: lazyRouteComponent(() => import("./pages/connect.tsx"), "ConnectClient"),
});
const approvals = createRoute({
  getParentRoute: () => app,
  path: "/approvals",
  validateSearch: inboxSearchIn,
  component: lazyRouteComponent(() => import("./pages/approvals.tsx"), "Approvals"),
});
const approval = createRoute({
  getParentRoute: () => app,
  path: "/approvals/$id",
  component: lazyRouteComponent(() => import("./pages/approval.tsx"), "ApprovalPage"),
});
const transactions = createRoute({
  getParentRoute: () => app,
  path: "/transactions",
  validateSearch: filtersIn,
  component: lazyRouteComponent(() => import("./pages/transactions.tsx"), "Transactions"),
});
const projects = createRoute({
  getParentRoute: () => app,
  path: "/projects",
  component: lazyRouteComponent(() => import("./pages/projects.tsx"), "Projects"),
});
const project = createRoute({
  getParentRoute: () => app,
  path: "/projects/$id",
  component: lazyRouteComponent(() => import("./pages/project.tsx"), "ProjectPage"),
});
const team = createRoute({
  getParentRoute: () => app,
  path: "/teams/$id",
  component: lazyRouteComponent(() => import("./pages/team.tsx"), "TeamPage"),
});
const settings = createRoute({
  getParentRoute: () => app,
  path: "/settings",
  component: lazyRouteComponent(() => import("./pages/settings/settings.tsx"), "Settings"),
});
const settingsOrganization = createRoute({
  getParentRoute: () => settings,
  path: "/organization",
  component: lazyRouteComponent(() => import("./pages/settings/organization.tsx"), "Organization"),
});
const keys = createRoute({
  getParentRoute: () => settings,
  path: "/keys",
  component: lazyRouteComponent(() => import("./pages/settings/keys.tsx"), "OrganizationKeys"),
});
const members = createRoute({
  getParentRoute: () => settings,
  path: "/members",
  component: lazyRouteComponent(() => import("./pages/settings/members.tsx"), "Members"),
});
const webhooks = createRoute({
  getParentRoute: () => settings,
  path: "/webhooks",
  component: lazyRouteComponent(() => import("./pages/settings/webhooks.tsx"), "Webhooks"),
});
const webhook = createRoute({
  getParentRoute: () => settings,
  path: "/webhooks/$id",
  component: lazyRouteComponent(() => import("./pages/settings/webhook.tsx"), "WebhookPage"),
});
const rails = createRoute({
  getParentRoute: () => settings,
  path: "/rails",
  component: lazyRouteComponent(() => import("./pages/settings/rails.tsx"), "RailSettings"),
});
const security = createRoute({
  getParentRoute: () => settings,
  path: "/security",
  component: lazyRouteComponent(() => import("./pages/settings/security.tsx"), "Security"),
});
const audit = createRoute({
  getParentRoute: () => settings,
  path: "/audit",
  validateSearch: auditSearchIn,
  component: lazyRouteComponent(() => import("./pages/settings/audit.tsx"), "AuditLog"),
});
/** Route of unknown addresses, in the frame with the navigation. */
const notFound = createRoute({ getParentRoute: () => app, path: "$", component: NotFound });

const tree = root.addChildren([
  setUp,
  sso,
  invite,
  alone.addChildren([card]),
  app.addChildren([
    home,
    agents,
    agent,
    connect,
    approvals,
    approval,
    transactions,
    projects,
    project,
    team,
    settings.addChildren([settingsOrganization, keys, members, webhooks, webhook, rails, security, audit]),
    notFound,
  ]),
]);

export const router = createRouter({
  routeTree: tree,
  defaultPreload: "intent",
  defaultPendingComponent: () => null,
  defaultErrorComponent: Landed,
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
