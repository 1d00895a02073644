import type { ReactElement } from "react";
import { Page } from "../../parts/parts.tsx";

export const AuditLog = (): ReactElement => <Page title="AuditLog">{null}</Page>;
