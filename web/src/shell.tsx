import {
  ActionIcon,
  Avatar,
  Badge,
  Drawer,
  Loader,
  Menu,
  Text,
  UnstyledButton,
  useMantineColorScheme,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Link, Outlet, useLocation } from "@tanstack/react-router";
import { type ReactElement, type ReactNode, useEffect } from "react";
import { asWritten } from "./format.ts";
import { Icon, type IconName, Logo } from "./icons.tsx";
import { useLive } from "./live.ts";
import { Enrol } from "./pages/enrol.tsx";
import { SignIn } from "./pages/sign-in.tsx";
import { Failed, Problem } from "./parts/problem.tsx";
import { SandboxBadge } from "./parts/sandbox-badge.tsx";
import { useNotifications, usePendingCount } from "./pending.ts";
import { MeProvider, useMay, useMe, useSession, useSignOut } from "./session.tsx";
import { StepUpProvider } from "./step-up.tsx";

/** Shows the pages to a signed-in user, and the sign-in to any other visitor at the same address. */
export const Shell = (): ReactElement => (
  <SignedIn>
    <Frame />
  </SignedIn>
);

export const ShellAlone = (): ReactElement => (
  <SignedIn>
    <Outlet />
  </SignedIn>
);

function SignedIn({ children }: { readonly children: ReactNode }): ReactElement {
  const { data: me, error, refetch } = useSession();
  if (me === undefined) {
    return (
      <main className="landed">
        {error === null ? (
          <Loader role="status" aria-label="Loading" />
        ) : (
          <Failed error={error} retry={() => void refetch()} />
        )}
      </main>
    );
  }
  if (me === null) return <SignIn />;
  return (
    <MeProvider value={me}>
      <StepUpProvider key={me.user.id}>
        {me.secondFactorEnrolment === "required" ? <Enrol isRequired /> : children}
      </StepUpProvider>
    </MeProvider>
  );
}

interface NavItem {
  readonly to:
    | "/"
    | "/approvals"
    | "/agents"
    | "/transactions"
    | "/projects"
    | "/settings/organization"
    | "/settings/security";
  readonly label: string;
  readonly icon: IconName;
}

const NAV_ITEMS: readonly NavItem[] = [
  { to: "/", label: "Overview", icon: "home" },
  { to: "/approvals", label: "Approvals", icon: "inbox" },
  { to: "/agents", label: "Agents", icon: "agent" },
  { to: "/transactions", label: "Transactions", icon: "list" },
  { to: "/projects", label: "Projects", icon: "tree" },
];

const isAt = (pathname: string, { to }: NavItem): boolean => {
  if (to === "/") return pathname === "/";
  if (to.startsWith("/settings")) return pathname.startsWith("/settings");
  return pathname.startsWith(to) || (to === "/projects" && pathname.startsWith("/teams"));
};

function Frame(): ReactElement {
  const { pathname } = useLocation();
  const [isMenuOpen, menu] = useDisclosure(false);
  const isAdmin = useMay("admin");
  const pending = usePendingCount();
  // An approval's own page polls, so that a link to it needs no stream.
  useLive(!/^\/approvals\/./.test(pathname));
  useNotifications();
  useEffect(() => menu.close(), [pathname]);
  useTitle(pathname, pending);
  const settings: NavItem = {
    to: isAdmin ? "/settings/organization" : "/settings/security",
    label: "Settings",
    icon: "settings",
  };
  const links = (
    <nav aria-label="Main" className="nav">
      {[...NAV_ITEMS, settings].map((item) => (
        <NavItem
          key={item.to}
          item={item}
          isCurrent={isAt(pathname, item)}
          count={item.to === "/approvals" ? pending : ""}
        />
      ))}
    </nav>
  );
  return (
    <div className="frame">
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <aside className="side">
        <Link to="/" className="brand">
          <Logo />
          <span>Spending Control</span>
        </Link>
        <SandboxBadge />
        {links}
        <div className="side-foot">
          <Account />
        </div>
      </aside>
      <header className="top">
        <Link to="/" className="brand">
          <Logo size={26} />
          <span>Spending Control</span>
        </Link>
        <SandboxBadge />
        <ActionIcon variant="subtle" color="gray" size="xl" aria-label="Menu" onClick={menu.open}>
          <Icon name="menu" size={22} />
        </ActionIcon>
      </header>
      <Drawer opened={isMenuOpen} onClose={menu.close} position="right" size="xs" title="Menu">
        {links}
        <div className="side-foot">
          <Account />
        </div>
      </Drawer>
      <main id="content" tabIndex={-1} className="content">
        <Outlet />
      </main>
      <Tabs pathname={pathname} pending={pending} />
    </div>
  );
}

interface NavItemProps {
  readonly item: NavItem;
  readonly isCurrent: boolean;
  /** Number shown; empty for none. */
  readonly count: string;
}

function NavItem({ count, isCurrent, item }: NavItemProps): ReactElement {
  return (
    <Link to={item.to} className="nav-item" aria-current={isCurrent ? "page" : undefined}>
      <Icon name={item.icon} />
      <span>{item.label}</span>
      {count === "" ? null : <Count of={count} />}
    </Link>
  );
}

const Count = ({ of }: { readonly of: string }): ReactNode => (
  <Badge circle={of.length === 1} size="sm" variant="filled" color="indigo" aria-label={`${of} waiting`}>
    {of}
  </Badge>
);

/** Navigation at the bottom of a phone's screen. */
function Tabs({ pathname, pending }: { readonly pathname: string; readonly pending: string }): ReactElement {
  return (
    <nav aria-label="Main, below" className="tabs">
      {NAV_ITEMS.slice(0, 4).map((item) => (
        <Link
          key={item.to}
          to={item.to}
          className="tab"
          aria-current={isAt(pathname, item) ? "page" : undefined}
        >
          <span className="tab-icon">
            <Icon name={item.icon} size={21} />
            {item.to === "/approvals" && pending !== "" ? <Count of={pending} /> : null}
          </span>
          <span>{item.label}</span>
        </Link>
      ))}
    </nav>
  );
}

function Account(): ReactElement {
  const { organization, user } = useMe();
  const { problem, signOut } = useSignOut();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const isDark =
    colorScheme === "dark" || (colorScheme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  return (
    <>
      <Problem text={problem} />
      <Menu width={232} position="top-start">
        <Menu.Target>
          <UnstyledButton className="account">
            <Avatar size={34} radius="xl" color="indigo" name={user.name} />
            <span className="account-names">
              <Text size="sm" fw={550} truncate>
                <bdi>{asWritten(user.name)}</bdi>
              </Text>
              <Text size="xs" c="dimmed" truncate>
                <bdi>{asWritten(organization.name)}</bdi>
              </Text>
            </span>
          </UnstyledButton>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>{user.email}</Menu.Label>
          <Menu.Item component={Link} to="/settings/security" leftSection={<Icon name="shield" size={16} />}>
            Security
          </Menu.Item>
          <Menu.Item
            leftSection={<Icon name={isDark ? "sun" : "moon"} size={16} />}
            onClick={() => setColorScheme(isDark ? "light" : "dark")}
          >
            {isDark ? "Light" : "Dark"} colors
          </Menu.Item>
          <Menu.Item component="a" href="/docs" leftSection={<Icon name="book" size={16} />}>
            API reference
          </Menu.Item>
          <Menu.Divider />
          <Menu.Item leftSection={<Icon name="out" size={16} />} onClick={() => void signOut()}>
            Sign out
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </>
  );
}

const NAMES: Readonly<Record<string, string>> = {
  ...Object.fromEntries(NAV_ITEMS.map(({ label, to }) => [to.slice(1), label])),
  teams: "Projects",
  settings: "Settings",
};

/** Shows the number of waiting approvals in the tab's title, which is visible from other tabs. */
function useTitle(pathname: string, pending: string): void {
  useEffect(() => {
    const first = pathname.split("/")[1] ?? "";
    const name = NAMES[first] ?? "Page not found";
    document.title = `${pending === "" ? "" : `(${pending}) `}${name} · Agent Spending Control`;
  }, [pathname, pending]);
}
