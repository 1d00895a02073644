import { getAddress, isAddress as isChecksummed } from "viem/utils";

/** Whether a text is an EVM address: 20 bytes in hex, all lower case, or in mixed case with its EIP-55 checksum. */
export const isAddress = (value: string): boolean => isChecksummed(value);

/** Returns an address with its checksum, the form that is shown and compared. */
export const withChecksum = (address: string): string => getAddress(address.toLowerCase());
