/** What a changed config file of a proxy does not change before a restart. */
import { expect, test } from 'vitest';
import { type ProxyValues, proxyCommand } from '../../proxy/options.ts';
import { changedButUnused } from '../../proxy/proxy.ts';
import { parseCommandLine } from '../../runtime/command-line/command-line.ts';
import { addressOf } from '../bridge/stratum-client.ts';

const valuesOf = (...words: string[]): ProxyValues => {
  const parsed = parseCommandLine(proxyCommand, words, () => '');
  if (parsed.kind !== 'run') throw new Error(JSON.stringify(parsed));
  return parsed.values;
};

const before = valuesOf('-o', 'pool.example', '-u', addressOf(1), '--rigs', '5');

test('the options that need a restart are named, and only those that were changed', () => {
  expect(changedButUnused(before, before)).toEqual([]);
  expect(changedButUnused(before, valuesOf('-o', 'other.example', '-u', addressOf(1), '--no-check-books'))).toEqual([]);
  const news = valuesOf(
    '-u',
    addressOf(2),
    '--keep-addresses',
    '--listen',
    '28999',
    '--tls-cert',
    'a',
    '--tls-key',
    'b',
  );
  expect(changedButUnused(before, news).sort()).toEqual(['keep-addresses', 'listen', 'tls-cert', 'tls-key', 'user']);
  expect(changedButUnused(news, before).sort()).toEqual(['keep-addresses', 'listen', 'tls-cert', 'tls-key', 'user']);
});
