import type { ReactElement } from "react";
import { Page } from "../../parts/parts.tsx";

export const OrganizationKeys = (): ReactElement => <Page title="OrganizationKeys">{null}</Page>;
