import { getAddress, isAddress as isChecksummed } from "viem/utils";

/** An address on an EVM chain: 20 bytes in hex, all lower case, or in mixed case with its EIP-55 checksum. */
export const isAddress = (value: string): boolean => isChecksummed(value);

/** An address as it is shown and compared: with its checksum, however it was given. */
export const withChecksum = (address: string): string => getAddress(address.toLowerCase());
