/** Programs and libraries of Linux (ELF) in a folder, with the processor that each is for. */
import { closeSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';

const HEAD_BYTES = 20;
const MAGIC = '7f454c46';
const MACHINE_AT = 18;
const MACHINES: Readonly<Record<number, string>> = { 62: 'x64', 183: 'arm64' };

export type ElfFile = { readonly path: string /** As Node names it. */; readonly arch: string };

function archOf(path: string): string | undefined {
  const head = Buffer.alloc(HEAD_BYTES);
  const file = openSync(path, 'r');
  try {
    if (readSync(file, head) < HEAD_BYTES || head.toString('hex', 0, 4) !== MAGIC) return undefined;
  } finally {
    closeSync(file);
  }
  const machine = head.readUInt16LE(MACHINE_AT);
  return MACHINES[machine] ?? `machine ${machine}`;
}

/** Paths are relative to the folder. */
export const elfFiles = (folder: string): ElfFile[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .flatMap((entry) => {
      const full = join(entry.parentPath, entry.name);
      const arch = archOf(full);
      return arch === undefined ? [] : [{ path: full.slice(folder.length + 1), arch }];
    });
