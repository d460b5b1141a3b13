/** The stack's two wallets, made and asked through `svc-wallet`: the pool's, and one of the miner's own. */
import { rm, stat } from 'node:fs/promises';
import { runToEnd } from './process.ts';

const exists = (file: string) =>
  stat(file).then(
    () => true,
    () => false,
  );

/** Returns whether the wallet had to be made. */
export async function ensureWallet(file: string): Promise<boolean> {
  if (await exists(file)) return false;
  await runToEnd('svc-wallet', ['init', '--file', file, '--network', 'development', '--generate-password', '--json']);
  return true;
}

export async function forgetWallet(file: string): Promise<void> {
  for (const more of ['.password', '.token', '.state']) await rm(`${file}${more}`, { recursive: true, force: true });
}

/** A method of a wallet that no daemon holds. */
export async function callWallet<T>(file: string, apiUrl: string, method: string): Promise<T> {
  return JSON.parse(await runToEnd('svc-wallet', ['call', method, '--file', file, '--service', apiUrl, '--json'])) as T;
}

/** The miner's own address, the same at every start: what it is paid can be spent, and its figures go on. */
export async function minerAddress(file: string, apiUrl: string): Promise<string> {
  const known = await callWallet<{ addresses: { address: string }[] }>(file, apiUrl, 'addresses');
  const [first] = known.addresses;
  return first?.address ?? (await callWallet<{ address: string }>(file, apiUrl, 'receive')).address;
}
