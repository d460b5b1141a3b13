/**
 * The login of a miner (docs/protocol/stratum.md, S24 and S25): the username `<address>.<worker>` and the wishes in its
 * password.
 */
import { type Address, parseAddress } from '../address.ts';
import { utf8 } from '../bytes.ts';
import { ProtocolError } from '../errors.ts';
import type { NetworkName } from '../network.ts';
import { checkWorker, TEXT_MAX_BYTES, WORK_MAX } from './messages.ts';

export interface Username {
  /** The address as text, as it was given. */
  text: string;
  address: Address;
  /** '' when none was named. */
  worker: string;
}

/** `readAddress` reads addresses of the network as parseAddress does. Throws an address_* code for a bad address (answered with 29) and username_text for a bad worker name (-32602). */
export function parseUsername(
  username: string,
  network: NetworkName,
  readAddress = (text: string): Address => parseAddress(text, network),
): Username {
  const dot = username.indexOf('.');
  const text = dot < 0 ? username : username.slice(0, dot);
  const worker = dot < 0 ? '' : username.slice(dot + 1);
  if (dot >= 0 && worker === '') throw new ProtocolError('username_text', 'a worker name must follow the dot');
  const address = readAddress(text);
  // The burn address can never be paid, and a pool would try for ever. Multisig addresses can be paid like any other.
  if (address.kind === 'burn')
    throw new ProtocolError(
      'address_kind',
      'what is paid to the burn address is gone: use an address that you can spend from',
    );
  return { text, address, worker: checkWorker(worker) };
}

export const formatUsername = (address: string, worker: string): string =>
  worker === '' ? address : `${address}.${worker}`;

/** Works are expected hashes per share; null where the miner did not ask. A fixed work makes the others idle. */
export interface Wishes {
  fixedWork: bigint | null;
  minWork: bigint | null;
  /** Hashes per second that the miner expects to make: where its share work begins. */
  rate: bigint | null;
}

const FIELDS: Readonly<Record<string, keyof Wishes>> = { 'd=': 'fixedWork', 'min=': 'minWork', 'rate=': 'rate' };

const WORK = /^[1-9][0-9]{0,38}$/;

function wish(text: string): bigint {
  const value = WORK.test(text) ? BigInt(text) : 0n;
  if (value < 1n || value > WORK_MAX)
    throw new ProtocolError('password_text', 'd=, min= and rate= take a decimal number of hashes');
  return value;
}

/** Items are separated by commas. Unknown ones are ignored: many miners send 'x' because they must send something. */
export function parsePassword(password: string): Wishes {
  const wishes: Wishes = { fixedWork: null, minWork: null, rate: null };
  for (const item of password.split(',')) {
    const name = item.slice(0, item.indexOf('=') + 1);
    const field = Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined;
    if (field === undefined) continue;
    if (wishes[field] !== null) throw new ProtocolError('password_text', 'the password asks for one thing twice');
    wishes[field] = wish(item.slice(name.length));
  }
  return wishes;
}

/** The password of a miner that expects `rate` hashes per second; unchanged where it already sets a rate or a work. */
export function withRate(password: string, rate: number | undefined): string {
  if (rate === undefined || !Number.isFinite(rate) || rate < 1) return password;
  const says = (name: string): boolean => password.split(',').some((item) => item.startsWith(name));
  if (says('d=') || says('rate=')) return password;
  const longer = `${password}${password === '' ? '' : ','}rate=${BigInt(Math.round(rate))}`;
  return utf8(longer).length > TEXT_MAX_BYTES ? password : longer;
}
