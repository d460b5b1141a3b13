/** Hexadecimal text of some bytes by Buffer's own method, called on any bytes: a third of what protocol/bytes.ts takes, where this is Node. */
export const { hexSlice } = Buffer.prototype as unknown as {
  hexSlice(this: Uint8Array, from: number, to: number): string;
};
