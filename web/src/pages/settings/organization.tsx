import type { ReactElement } from "react";
import { Page } from "../../parts/parts.tsx";

export const Organization = (): ReactElement => <Page title="Organization">{null}</Page>;
