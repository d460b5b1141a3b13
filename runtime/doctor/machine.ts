/** What most programs need of the machine: a directory, a disk, a clock, ports, memory, open files, secrets. */
import { spawnSync } from 'node:child_process';
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  openSync,
  rmSync,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { totalmem } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { asItsUser, isOfOther, lockHolder } from '../files/directory-lock.ts';
import { openFilesLimit } from '../files/open-files.ts';
import { readPrivateFile } from '../files/private-file.ts';
import { type ListenAddress, listenHost, showListenAddress } from '../listen-address.ts';
import { bad, type Check, type Finding, ok, warn } from './doctor.ts';

const GIB = 1024 ** 3;
const MIB = 1024 ** 2;
const LEAST_DISK = 5 * GIB;
const SLOW_SYNC_MILLIS = 20;
const SYNCS = 20;

/** The directory itself, or the lowest one above it that exists. */
function existing(directory: string): string {
  const path = resolve(directory);
  return existsSync(path) || dirname(path) === path ? path : existing(dirname(path));
}

function isWritable(directory: string): boolean {
  try {
    accessSync(directory, constants.R_OK | constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

const inGib = (bytes: number): string => `${(bytes / GIB).toFixed(1)} GiB`;

/** The clock too: all of them need one. */
export const directoryChecks = (directory: string): Check[] => [
  { name: 'data directory', look: () => lookAtDirectory(directory) },
  { name: 'disk', look: () => lookAtDisk(directory) },
  clockCheck(),
];

/** `there` exists and cannot be written. One above the data directory, such as /var/lib, is never given away: only the directory itself is made. */
export const notWritable = (directory: string, there: string, user: number | undefined): Finding =>
  there === directory
    ? bad(
        `this user may not write to ${there}`,
        `chown ${there} to the user of the program, or name another directory with --data-dir`,
      )
    : bad(
        `${directory} is not there, and this user may not make it in ${there}`,
        `the unit of a service makes it when it starts; without one, as root: install -d -m 700 -o ${user ?? 'USER'} ${directory}`,
      );

function lookAtDirectory(directory: string): Finding {
  const there = existing(directory);
  const stat = statSync(there);
  if (!stat.isDirectory()) return bad(`${there} is a file`, 'name another directory with --data-dir');
  if (!isWritable(there)) return notWritable(resolve(directory), there, process.getuid?.());
  const { bavail, bsize } = statfsSync(there);
  const free = bavail * bsize;
  const holder = existsSync(directory) ? lockHolder(directory) : undefined;
  const state = !existsSync(directory)
    ? 'will be made'
    : holder === undefined
      ? 'not in use'
      : `in use by process ${holder}`;
  const says = `${directory}: ${state}, ${inGib(free)} free`;
  if ((stat.mode & 0o002) !== 0 && there === resolve(directory))
    return warn(`${says}; every user can write to it`, `run chmod 750 ${directory}`);
  if (isOfOther(directory)) return warn(`${says}; root sees files that its user may not read`, asItsUser(directory));
  return free < LEAST_DISK ? warn(says, 'make room: the program stops when the disk is full') : ok(says);
}

/** How long a small write takes until it survives a power failure: each accepted share, vote or payment waits for one. */
function lookAtDisk(directory: string): Finding {
  const there = existing(directory);
  if (!isWritable(there)) return warn('not measured: the data directory cannot be written', 'see the line above');
  const file = join(there, `.doctor.${process.pid}`);
  const times: number[] = [];
  const descriptor = openSync(file, 'wx', 0o600);
  try {
    for (let i = 0; i < SYNCS; i++) {
      const began = performance.now();
      writeSync(descriptor, Buffer.alloc(4096, i));
      fsyncSync(descriptor);
      times.push(performance.now() - began);
    }
  } finally {
    closeSync(descriptor);
    rmSync(file, { force: true });
  }
  const median = times.sort((a, b) => a - b)[SYNCS >> 1] as number;
  const says = `a synced write of 4 KiB takes ${median.toFixed(1)} ms (longest ${(times.at(-1) as number).toFixed(1)} ms)`;
  return median > SLOW_SYNC_MILLIS
    ? warn(
        says,
        'answers wait for such writes: use an SSD with power-loss protection, or look what else writes to this disk',
      )
    : ok(says);
}

export type Listener = { readonly option: string; readonly address: ListenAddress | 'off' | undefined };

/** Whether a program with this directory runs; nothing is changed. */
export const isInUse = (directory: string): boolean => existsSync(directory) && lockHolder(directory) !== undefined;

/** Whether the ports are free. `isRunning`: whether this program has them, or undefined where that cannot be known. */
export const portChecks = (isRunning: boolean | undefined, listeners: readonly Listener[]): Check[] =>
  listeners.flatMap(({ option, address }) =>
    address === 'off' || address === undefined
      ? []
      : [{ name: option, look: () => lookAtPort(option, address, isRunning) }],
  );

async function lookAtPort(option: string, address: ListenAddress, isRunning: boolean | undefined): Promise<Finding> {
  const shown = showListenAddress(address);
  const error = await new Promise<NodeJS.ErrnoException | undefined>((settle) => {
    const server = createServer();
    server.once('error', settle);
    server.listen({ port: address.port, ...listenHost(address.host) }, () => server.close(() => settle(undefined)));
  });
  if (error === undefined) return ok(`${shown} is free`);
  if (error.code === 'EADDRINUSE') {
    if (isRunning === true) return ok(`${shown} is in use, and the program runs`);
    const remedy = `if that is the service of this program, name its options too (--config FILE); else find who has it with: ss -ltnp 'sport = :${address.port}', or choose another port with --${option}`;
    return isRunning === false
      ? bad(`${shown} is in use by another program`, remedy)
      : warn(`${shown} is in use, by this program if it runs, or by another`, remedy);
  }
  if (error.code === 'EACCES')
    return bad(
      `this user may not listen on ${shown}`,
      `choose a port from 1024 on with --${option}, or allow low ports (setcap, or AmbientCapabilities in the unit)`,
    );
  if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND')
    return bad(
      `${address.host} is no address of this machine`,
      `name an address of this machine with --${option}, or 0.0.0.0 for all`,
    );
  return bad(`${shown}: ${error.message}`, `choose another address with --${option}`);
}

/** `bytes`: what the program needs at least, its dataset included. */
export const memoryCheck = (bytes: number, lighter: string): Check => ({
  name: 'memory',
  look: () => {
    const says = `${inGib(totalmem())} in this machine, about ${inGib(bytes)} needed`;
    return totalmem() < bytes ? bad(says, lighter) : ok(says);
  },
});

/** The limit is that of the process that has the directory, where one has: a unit may set another than this shell has. */
export const openFilesCheck = (wanted: number, directory: string): Check => ({
  name: 'open files',
  look: () => {
    const limit = openFilesLimit((existsSync(directory) ? lockHolder(directory) : undefined) ?? 'self');
    const says = `${limit} allowed, ${wanted} needed for all connections`;
    if (limit === Number.POSITIVE_INFINITY) return ok('the system does not say how many are allowed');
    return limit < wanted
      ? warn(says, 'raise the limit (ulimit -n, or LimitNOFILE in the unit), or lower --max-connections')
      : ok(says);
  },
});

/** A file that only its owner may read. `missing`: what to do if it is not there; undefined if the program makes it. */
export const secretCheck = (name: string, file: string, missing: string | undefined): Check => ({
  name,
  look: () => {
    const found = readPrivateFile(file);
    if (found.kind === 'text') return ok(`${file}: only its owner can read it`);
    if (found.kind === 'missing')
      return missing === undefined ? ok(`${file} will be made`) : bad(`there is no file ${file}`, missing);
    return bad(
      found.reason,
      found.kind === 'exposed'
        ? `run chmod 600 ${file}; who could read it may know the secret`
        : 'let the user of the program read it',
    );
  },
});

/** What systemd says, which asks the kernel: so it holds for every program that sets the clock. */
const timeService = (): string =>
  spawnSync('timedatectl', ['show', '--property=NTPSynchronized', '--value'], {
    encoding: 'utf8',
    timeout: 5_000,
  }).stdout?.trim() ?? '';

export const clockCheck = (synchronised: () => string = timeService): Check => ({
  name: 'time service',
  look: () => {
    const said = synchronised();
    if (said === 'no')
      return warn('nobody sets the clock of this machine', 'run timedatectl set-ntp true, or install chrony');
    return ok(said === 'yes' ? 'the clock is set by a time service' : 'this system does not say who sets its clock');
  },
});

export const DATASET_BYTES = 2 * GIB;
export const PROGRAM_BYTES = 512 * MIB;
