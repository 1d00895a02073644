import type { ReactElement } from "react";
import { Page } from "../parts/parts.tsx";

export const Approvals = (): ReactElement => <Page title="Approvals">{null}</Page>;
