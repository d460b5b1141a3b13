/**
 * Locks a data directory for one process. Node has no flock, and a lock must not outlive a kill -9, so the lock is a
 * file `lock.N` that names its owner (process, its start time, the boot of the machine); the highest N counts. A dead
 * owner's lock is taken over by creating `lock.N+1`, which only one process can do: a hard link to a finished file
 * either appears whole or fails. A process that finds a higher number after that has lost and withdraws.
 *
 * An owner that is about to end marks its lock (leaveDirectories); a new process then waits for it, so that a
 * program that is stopping can be started again at once.
 *
 * Processes are identified by their number and start time, so directories shared between machines or between
 * containers with separate process numbers are not protected.
 */
import { randomBytes } from 'node:crypto';
import {
  linkSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { directoryError, RuntimeError } from '../runtime-error.ts';
import { makeDirectory } from './make-directory.ts';

interface Owner {
  readonly pid: number;
  /** Clock ticks from the boot to the start of the process; empty where it is not available. */
  readonly started: string;
  readonly boot: string;
  /** It is about to end. */
  readonly leaving?: boolean;
  /** Its purpose, if it ends by itself. */
  readonly purpose?: string;
}

export class DirectoryLockedError extends RuntimeError {
  readonly pid: number;
  readonly purpose: string | undefined;

  constructor(directory: string, { pid, purpose }: { readonly pid: number; readonly purpose?: string }) {
    const by = purpose === undefined ? `process ${pid}` : `process ${pid} (${purpose})`;
    super('directory_locked', `${directory} is in use by ${by}: stop it, or name another data directory`);
    this.pid = pid;
    this.purpose = purpose;
  }
}

export interface DirectoryLock {
  release(): void;
}

/** As long as an orderly end may take (shutdown.ts), and a little. */
const LEAVING_MILLIS = 25_000;
const LOOK_MILLIS = 50;

/** Paths of the locks that this process has. */
const held = new Set<string>();

const NAME = /^lock\.(\d{1,15})$/;

/** Whether this is root and the directory is somebody else's: what root makes there, that user's program cannot open. */
export const isOfOther = (directory: string): boolean =>
  process.getuid?.() === 0 && (statSync(directory, { throwIfNoEntry: false })?.uid ?? 0) !== 0;

/** How to do it as the user that has the directory. */
export const asItsUser = (directory: string): string =>
  `run it as the user that it belongs to: runuser -u $(stat -c %U ${directory}) -- COMMAND`;

/** Creates the directory when it is missing. Throws DirectoryLockedError when a living process has it. */
export function lockDirectory(directory: string, purpose?: string): DirectoryLock {
  const draft = join(directory, `lock-draft.${process.pid}.${randomBytes(6).toString('hex')}`);
  try {
    makeDirectory(directory, 0o750);
    if (isOfOther(directory))
      throw new Error(`its program could not open what root makes there; ${asItsUser(directory)}`);
    readOwner(directory, Math.max(0, ...numbers(directory)));
    writeFileSync(draft, JSON.stringify({ ...describe(process.pid), purpose }), { flag: 'wx', mode: 0o640 });
  } catch (error) {
    throw directoryError(directory, error);
  }
  let waited = 0;
  try {
    for (;;) {
      const highest = Math.max(0, ...numbers(directory));
      const owner = readOwner(directory, highest);
      if (owner !== undefined && isAlive(owner)) {
        if (owner.leaving !== true || owner.pid === process.pid || waited >= LEAVING_MILLIS)
          throw new DirectoryLockedError(directory, owner);
        pause(LOOK_MILLIS);
        waited += LOOK_MILLIS;
        continue;
      }
      const number = highest + 1;
      const path = join(directory, `lock.${number}`);
      if (!link(draft, path)) continue;
      const all = numbers(directory);
      if (all.some((other) => other > number)) {
        rmSync(path, { force: true });
        continue;
      }
      for (const other of all) if (other < number) rmSync(join(directory, `lock.${other}`), { force: true });
      held.add(path);
      return { release: () => release(path) };
    }
  } finally {
    rmSync(draft, { force: true });
  }
}

/** The living process that has the directory, if one has; nothing is changed. */
export function lockHolder(directory: string): number | undefined {
  const owner = readOwner(directory, Math.max(0, ...numbers(directory)));
  return owner !== undefined && isAlive(owner) ? owner.pid : undefined;
}

/** The file stays, without an owner: were it deleted, numbers could start again below one that a slow process is about to take. */
function release(path: string): void {
  held.delete(path);
  try {
    truncateSync(path);
  } catch (error) {
    // The directory itself was removed.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

/** Says in every lock of this process that it is about to end. If a lock cannot be marked, new processes do not wait for it. */
export function leaveDirectories(): void {
  for (const path of held) {
    const draft = `${path}.leaving`;
    try {
      // Renamed over the lock: a reader must never see half of it, which would mean that its owner is dead.
      writeFileSync(draft, JSON.stringify({ ...describe(process.pid), leaving: true }), { mode: 0o640 });
      renameSync(draft, path);
    } catch {
      rmSync(draft, { force: true });
    }
  }
}

/** The program has nothing to do before it has its directory, so it may well block. */
function pause(millis: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, millis);
}

function numbers(directory: string): number[] {
  return readdirSync(directory).flatMap((name) => {
    const match = NAME.exec(name);
    return match === null ? [] : [Number(match[1])];
  });
}

function link(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function readOwner(directory: string, number: number): Owner | undefined {
  const text = readIfThere(join(directory, `lock.${number}`));
  if (text === undefined || text === '') return undefined;
  try {
    const { pid, started, boot, leaving, purpose } = JSON.parse(text) as Owner;
    if (typeof pid === 'number' && typeof started === 'string' && typeof boot === 'string')
      return { pid, started, boot, leaving: leaving === true, ...(typeof purpose === 'string' && { purpose }) };
  } catch {}
  // A torn file after a power cut: its writer is gone.
  return undefined;
}

function isAlive(owner: Owner): boolean {
  const now = describe(owner.pid);
  if (now.boot !== owner.boot) return false;
  if (now.started !== '' || owner.started !== '') return now.started === owner.started;
  try {
    process.kill(owner.pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** The same until the machine starts again; empty where the system does not tell. */
export const machineStart = (): string => readIfThere('/proc/sys/kernel/random/boot_id')?.trim() ?? '';

function describe(pid: number): Owner {
  const boot = machineStart();
  // The program's name, second field, may hold spaces and brackets: count from its closing bracket. Field 22 is the start.
  const stat = readIfThere(`/proc/${pid}/stat`);
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? [];
  // A process that was killed but not yet collected by its parent holds nothing any more.
  const started = fields[0] === 'Z' || fields[0] === 'X' ? '' : (fields[19] ?? '');
  return { pid, started, boot };
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
}
