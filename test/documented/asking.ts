/** What flows ask nodes and read from what commands said. */
import { statSync } from 'node:fs';
import { expect } from 'vitest';
import { until } from '../until.ts';
import type { Reader, Readers, Running } from './reader.ts';

export type Head = { readonly height: number; readonly cut_id: string };

export async function json<T>(url: string): Promise<T | undefined> {
  const answer = await fetch(url).catch(() => undefined);
  return answer?.ok === true ? ((await answer.json()) as T) : undefined;
}

export const headOf = async (readers: Readers, port = 28_701): Promise<Head | undefined> =>
  (await json<{ cut: Head }>(`${readers.url(port)}/v1/chain/head`))?.cut;

/** A node that serves, and makes or follows cuts. */
export async function serves(readers: Readers, node: Running, port = 28_701): Promise<void> {
  await until(
    async () => {
      if (node.isOver) throw new Error(node.shown);
      return ((await headOf(readers, port))?.height ?? -1) >= 1;
    },
    { why: () => node.shown },
  );
}

export const addressIn = (text: string): string => /[a-z]svc1[0-9a-z]{20,}/.exec(text)?.[0] ?? '';

/** 24 words, shown once; the password beside a file that nobody else can read. */
export async function makesWallet(person: Reader, line: string, more?: string): Promise<string> {
  const said = await person.runs(line, more === undefined ? {} : { more });
  expect(said).toContain('24 words');
  const words = [...said.matchAll(/\b\d+\. +([a-z]+)/g)].map(([, word = '']) => word);
  expect(words).toHaveLength(24);
  for (const name of ['wallet.json', 'wallet.json.password'])
    expect(statSync(person.path(`.svc/${name}`)).mode & 0o777).toBe(0o600);
  return words.join(' ');
}
