/**
 * The Node that runs the programs: version 24, which the project carries as an npm package for Linux on arm64 and
 * x86_64. Elsewhere a Node >= 24 that the user brought will do.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { delimiter, join } from 'node:path';
import { watchedEnvironment, watchedStream } from './parent.mjs';

export const NODE_MAJOR = 24;

/**
 * The path of a Node that is new enough, or undefined.
 * @param {string} root
 */
export function findNode(root, current = process) {
  if (current.platform === 'linux') {
    const carried = join(root, 'node_modules', `node-linux-${current.arch}`, 'bin', 'node');
    if (existsSync(carried)) return carried;
  }
  return Number(current.versions.node.split('.')[0]) >= NODE_MAJOR ? current.execPath : undefined;
}

/** @param {string} root */
export function noNodeMessage(root, current = process) {
  const here = `this is Node ${current.versions.node} on ${current.platform}-${current.arch}`;
  const isKnown = current.platform === 'linux' && (current.arch === 'arm64' || current.arch === 'x64');
  // The npm package brings no Node, and no lock file of this name.
  if (!isKnown || !existsSync(join(root, 'package-lock.json')))
    return `${here}, and none is carried: install Node ${NODE_MAJOR} or later`;
  return existsSync(join(root, 'node_modules'))
    ? `${here} and npm did not install the carried Node: run npm ci (with optional packages) in ${root}`
    : `${here} and node_modules is missing: run npm ci in ${root}`;
}

export const FORWARDED = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']);

/**
 * Runs a program with the terminal of this one; signals are passed on. Resolves to its exit code. `watched`: a program that
 * ends when this one is gone (parent.mjs).
 * @param {string} root
 * @param {string} command
 * @param {readonly string[]} args
 * @param {Record<string, string>} env
 * @param {boolean} watched
 * @param {(pid: number) => void} started
 * @returns {Promise<number>}
 */
export function runChild(root, command, args, env = {}, watched = false, started = () => undefined) {
  const path = `${join(root, 'node_modules', '.bin')}${delimiter}${process.env.PATH ?? ''}`;
  /** @type {import('node:child_process').ChildProcess | undefined} */
  let running;
  // Before the start: a signal that arrives while the child comes up must reach it too.
  const handlers = FORWARDED.map((signal) => /** @type {const} */ ([signal, () => void running?.kill(signal)]));
  for (const [signal, handler] of handlers) process.on(signal, handler);
  // The programs are TypeScript: with their compiled form kept, they start in half the time.
  const cache = process.env.NODE_COMPILE_CACHE ?? join(root, 'build', 'compile-cache');
  const child = spawn(command, args, {
    stdio: watched ? ['inherit', 'inherit', 'inherit', watchedStream] : 'inherit',
    env: {
      ...process.env,
      PATH: path,
      NODE_COMPILE_CACHE: cache,
      ...(watched ? watchedEnvironment : {}),
      ...env,
    },
  });
  running = child;
  if (child.pid !== undefined) started(child.pid);
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', (code, signal) => {
      for (const [name, handler] of handlers) process.off(name, handler);
      resolve(signal === null ? (code ?? 1) : 128 + (constants.signals[signal] ?? 0));
    });
  });
}
