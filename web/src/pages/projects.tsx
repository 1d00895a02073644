import type { ReactElement } from "react";
import { Page } from "../parts/parts.tsx";

export const Projects = (): ReactElement => <Page title="Projects">{null}</Page>;
