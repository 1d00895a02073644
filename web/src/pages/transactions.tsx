import type { ReactElement } from "react";
import { Page } from "../parts/parts.tsx";

export const Transactions = (): ReactElement => <Page title="Transactions">{null}</Page>;
