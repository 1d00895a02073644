import { imageSize } from "image-size";

/** Images of tiles, judged by their bytes rather than their declared type. */

export const LOGO_TYPES = ["png", "jpeg", "webp"] as const;
export type LogoType = (typeof LOGO_TYPES)[number];

export const LOGO_BYTES_MAX = 64 * 1_024;
const LOGO_SIDE_PIXELS_MAX = 4_096;

export const LOGO_DATA_URL = /^data:image\/(png|jpeg|webp);base64,/;

/** Base64 adds a third; the longest prefix precedes it. */
export const LOGO_DATA_URL_CHARACTERS_MAX =
  "data:image/jpeg;base64,".length + Math.ceil(LOGO_BYTES_MAX / 3) * 4;

export interface Logo {
  readonly type: LogoType;
  readonly bytes: Buffer;
}

/** Types by the header reader's names. */
const READ_AS: Readonly<Record<string, LogoType>> = { png: "png", jpg: "jpeg", webp: "webp" };

/**
 * Returns a data URL's image, or what is wrong with it. The declared type must match the bytes, the base64 must be
 * canonical, and the limits are 64 KiB and 4,096 pixels a side. Trailing bytes after the image are ignored: the image
 * is only ever served as its detected type, and nothing in it can run.
 */
export function readLogo(dataUrl: string): Logo | { readonly problem: string } {
  const type = LOGO_TYPES.find((each) => each === LOGO_DATA_URL.exec(dataUrl)?.[1]);
  if (type === undefined) return { problem: "must be a data URL of a PNG, JPEG or WebP image" };
  const text = dataUrl.slice(dataUrl.indexOf(",") + 1);
  const bytes = Buffer.from(text, "base64");
  if (bytes.toString("base64") !== text) return { problem: "must be canonical base64" };
  if (bytes.length > LOGO_BYTES_MAX) return { problem: "must have at most 64 KiB" };
  const found = headerOf(bytes);
  if (found === null || READ_AS[found.type ?? ""] !== type) {
    return { problem: "must be an image of the declared type" };
  }
  if (!isSane(found.width) || !isSane(found.height)) return { problem: "must have 1 to 4096 pixels a side" };
  return { type, bytes };
}

const isSane = (sidePixels: number): boolean => sidePixels >= 1 && sidePixels <= LOGO_SIDE_PIXELS_MAX;

/** Null if the bytes are not a readable image; the library throws for anything malformed. */
function headerOf(bytes: Buffer): ReturnType<typeof imageSize> | null {
  try {
    // Copied because the library reads past the end of a short image, which in a pooled buffer is unrelated data.
    return imageSize(Uint8Array.from(bytes));
  } catch {
    return null;
  }
}
