import { Stack, Title } from "@mantine/core";
import { Link, Outlet, useLocation } from "@tanstack/react-router";
import { type ReactElement, useEffect, useRef } from "react";
import { useMay, useMe, useSeesAll } from "../../session.tsx";

const ENTRIES = [
  { to: "/settings/organization", label: "Organization", who: "anyone" },
  { to: "/settings/keys", label: "API keys", who: "admins" },
  { to: "/settings/members", label: "Members", who: "whole" },
  { to: "/settings/webhooks", label: "Webhooks", who: "admins" },
  { to: "/settings/rails", label: "Rails", who: "auditors" },
  { to: "/settings/security", label: "Security", who: "anyone" },
  { to: "/settings/audit", label: "Audit log", who: "auditors" },
] as const;

export function Settings(): ReactElement {
  const { pathname } = useLocation();
  const isAdmin = useMay("admin");
  const seesAll = useSeesAll();
  const { role } = useMe().user;
  const isFor = {
    anyone: true,
    whole: seesAll,
    admins: isAdmin,
    auditors: isAdmin || role === "auditor",
  };
  const entries = useRef<HTMLElement>(null);
  // On a phone not all tabs fit, so the current one is scrolled into view.
  useEffect(() => {
    const current = entries.current?.querySelector("[aria-current=page]");
    current?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [pathname]);
  return (
    <Stack gap="lg">
      <Title order={1}>Settings</Title>
      <nav ref={entries} aria-label="Settings" className="subnav">
        {ENTRIES.filter(({ who }) => isFor[who]).map(({ label, to }) => (
          <Link key={to} to={to} aria-current={pathname.startsWith(to) ? "page" : undefined}>
            {label}
          </Link>
        ))}
      </nav>
      <Outlet />
    </Stack>
  );
}
