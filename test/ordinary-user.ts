/** Programs as a user that is not root, where the tests run as root and may become another. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { ROOT } from './guards/project-files.ts';

export type User = { readonly uid?: number; readonly gid?: number };

/** `nobody`: PostgreSQL wants a user whom the machine knows. */
const ORDINARY = 65_534;

export const may = (user: User, command: string, ...words: string[]): boolean =>
  spawnSync(command, words, { ...user, env: process.env, cwd: '/' }).status === 0;

/** Whether this process may become another user, and that user may read the project. */
export const canBeOthers = (): boolean =>
  process.getuid?.() === 0 &&
  may({ uid: ORDINARY, gid: ORDINARY }, process.execPath, join(ROOT, 'bin/svcd'), '--version');

/** The user of the tests, where that is an ordinary one or another cannot be had. */
export const ordinaryUser = (): User => (canBeOthers() ? { uid: ORDINARY, gid: ORDINARY } : {});
