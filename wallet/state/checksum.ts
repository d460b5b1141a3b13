/** CRC-32C as the wallet's store writes it: turned, so that a checksum of checksums is none. */
const TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f6_3b78 : crc >>> 1;
  return crc;
});

export class Checksum {
  #crc = -1;

  static of(bytes: Uint8Array): number {
    const checksum = new Checksum();
    for (const byte of bytes) checksum.add(byte);
    return checksum.value;
  }

  add(byte: number): this {
    this.#crc = (TABLE[(this.#crc ^ byte) & 255] as number) ^ (this.#crc >>> 8);
    return this;
  }

  get value(): number {
    const crc = ~this.#crc >>> 0;
    return (((crc >>> 15) | (crc << 17)) + 0xa282_ead8) >>> 0;
  }
}
