import type { ReactElement } from "react";
import { Page } from "../../parts/parts.tsx";

export const Security = (): ReactElement => <Page title="Security">{null}</Page>;
