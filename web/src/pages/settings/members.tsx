import type { ReactElement } from "react";
import { Page } from "../../parts/parts.tsx";

export const Members = (): ReactElement => <Page title="Members">{null}</Page>;
