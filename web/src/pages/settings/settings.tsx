import { Stack, Title } from "@mantine/core";
import { Link, Outlet, useLocation } from "@tanstack/react-router";
import { type ReactElement, useEffect, useRef } from "react";
import { useMay } from "../../session.tsx";

const ENTRIES = [
  { to: "/settings/organization", label: "Organization", least: "member" },
  { to: "/settings/keys", label: "API keys", least: "admin" },
  { to: "/settings/members", label: "Members", least: "member" },
  { to: "/settings/webhooks", label: "Webhooks", least: "admin" },
  { to: "/settings/security", label: "Security", least: "member" },
  { to: "/settings/audit", label: "Audit log", least: "admin" },
] as const;

/** The frame of all settings. */
export function Settings(): ReactElement {
  const { pathname } = useLocation();
  const isAdmin = useMay("admin");
  const entries = useRef<HTMLElement>(null);
  // On a phone not all tabs fit.
  useEffect(() => {
    const current = entries.current?.querySelector("[aria-current=page]");
    current?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [pathname]);
  return (
    <Stack gap="lg">
      <Title order={1}>Settings</Title>
      <nav ref={entries} aria-label="Settings" className="subnav">
        {ENTRIES.filter(({ least }) => isAdmin || least === "member").map(({ label, to }) => (
          <Link key={to} to={to} aria-current={pathname.startsWith(to) ? "page" : undefined}>
            {label}
          </Link>
        ))}
      </nav>
      <Outlet />
    </Stack>
  );
}
