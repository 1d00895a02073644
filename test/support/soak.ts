/** Whether this is the long run: `npm run soak`. */
export const isSoak = process.env["TEST_SOAK"] === "1";

/** How often, or how long, something random is tried: a short pass in `npm test`, a long one in `npm run soak`. */
export const shortOrSoak = (short: number, soak: number): number => (isSoak ? soak : short);
