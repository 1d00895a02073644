import { useQuery } from "@tanstack/react-query";
import { valueOf } from "../../src/client/client.ts";
import type { Output } from "../../src/client/types.ts";
import { api } from "./api.ts";

export type Settings = Output<"getOrganization">["organization"];

export const useOrganization = () =>
  useQuery({
    queryKey: ["organization"],
    queryFn: async ({ signal }) => valueOf(await api.getOrganization({}, { signal })).organization,
  });
