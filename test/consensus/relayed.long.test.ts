/** Two validators without an open port reach each other through relays (consensus rule 24), over real sockets; and what relays and others may not do to them. */
import { generateKeyPairSync, sign } from 'node:crypto';
import { type AddressInfo, connect, createServer } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import type { Peer } from '../../node/consensus/engine/effects.ts';
import { tokenIn } from '../../node/consensus/link/frames.ts';
import type { OverlaySocket } from '../../node/consensus/link/quic-socket.ts';
import { Overlay } from '../../node/consensus/reach/overlay.ts';
import type { OverlayAddress } from '../../node/consensus/reach/overlay-listeners.ts';
import {
  type CircuitMessage,
  decodeCircuitMessage,
  encodeCircuitMessage,
} from '../../node/consensus/relays/circuit-messages.ts';
import { decodeRecord, MAX_RECORD_BYTES, signRecord } from '../../node/consensus/relays/relay-record.ts';
import { type ProvenLink, Relaying } from '../../node/consensus/relays/relaying.ts';
import { developmentKey, validatorName } from '../../node/genesis/development.ts';
import { signMessageAside } from '../../node/ml-dsa.ts';
import { dialPlan, type Listed } from '../../node/validator/dial-plan.ts';
import { type Bytes, equalBytes, toHex, utf8 } from '../../protocol/bytes.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import type { ListenAddress } from '../../runtime/command-line/command-line.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { silentLog } from '../node/bed.ts';
import { until } from '../until.ts';

const CHAIN = new Uint8Array(48).fill(7);

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function overlayKey() {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const spki = publicKey.export({ format: 'der', type: 'spki' });
  return {
    overlayKey: new Uint8Array(spki.subarray(spki.length - 32)),
    signRecord: (message: Bytes) => new Uint8Array(sign(null, message, privateKey)),
  };
}

const keys = Array.from({ length: 4 }, (_, member) => developmentKey(validatorName(member)));
const members = keys.map(({ publicKey }) => ({ publicKey }));
const overlayKeys = keys.map(overlayKey);
const idOf = (member: number): Bytes => validatorId((keys[member] as (typeof keys)[0]).publicKey);
/** As addresses of circuits name them. */
const shortOf = (member: number): string => toHex(idOf(member)).slice(0, 16);

const listed = (member: number, routes: readonly ListenAddress[]): Listed => ({
  id: idOf(member),
  publicKey: members[member]?.publicKey as Bytes,
  routes,
  overlayKey: overlayKeys[member]?.overlayKey as Bytes,
});

async function open(member: number) {
  const { publicKey, privateKey } = keys[member] as (typeof keys)[0];
  const [heard, peers]: [string[], Set<Peer>] = [[], new Set()];
  let relays: readonly Bytes[] = [];
  const log: Logger = {
    ...silentLog,
    info: (message, fields) => {
      if (message === 'reached through relays') relays = fields?.relays as readonly Bytes[];
    },
    child: () => log,
  };
  const transport = new Overlay(
    { chainId: CHAIN, binds: [{ host: '127.0.0.1', port: 0 }], neighbours: [] },
    {
      log,
      steady: steadyMillis,
      members: () => members,
      signer: { publicKey, sign: (message) => signMessageAside(privateKey, message) },
    },
  );
  const [address] = (await transport.listen()) as [OverlayAddress];
  transport.start({
    joined: (peer) => void peers.add(peer),
    left: (peer) => void peers.delete(peer),
    message: (_, bytes) => void heard.push(Buffer.from(bytes).toString()),
  });
  closing.push(() => transport.close());
  const circuits = () => [...peers].map(String).filter((peer) => peer.startsWith('relayed '));
  return {
    member,
    transport,
    address,
    heard,
    circuits,
    relays: () => relays,
    know: (validators: readonly Listed[]) => {
      const own = validators.find(({ id }) => toHex(id) === toHex(idOf(member))) as Listed;
      transport.reach(dialPlan(own, validators));
      transport.know({ own, validators, sign: overlayKeys[member]?.signRecord });
    },
    say: (to: number, text: string) => {
      for (const peer of circuits()) if (peer.startsWith(`relayed ${shortOf(to)} `)) transport.send(peer, utf8(text));
    },
  };
}

/** Says it until the other has heard it: what is said on a connection that just ends is lost. */
const tell = (from: Awaited<ReturnType<typeof open>>, to: Awaited<ReturnType<typeof open>>, text: string) =>
  until(() => {
    from.say(to.member, text);
    return to.heard.includes(text);
  });

test('two validators without a route reach each other through a member with one; it ends, and the other relay takes over; one comes back elsewhere', async () => {
  const [one, other, first, second] = await Promise.all([open(0), open(1), open(2), open(3)]);
  const nodes = [one, other, first, second];
  // The second relay has no route yet.
  const some = [listed(0, []), listed(1, []), listed(2, [first.address]), listed(3, [])];
  for (const node of nodes) node.know(some);
  await tell(one, other, 'by the first relay');
  await tell(other, one, 'and back');
  for (const circuit of [...one.circuits(), ...other.circuits()]) expect(circuit).toContain(` by ${shortOf(2)}#`);
  const isBehindRelay = (member: number) =>
    one.transport.company().find(({ key }) => key && equalBytes(key, members[member]?.publicKey as Bytes))?.isRelayed;
  expect([1, 2].map(isBehindRelay)).toEqual([true, false]);
  const all = some.map((each, i) => (i === 3 ? listed(3, [second.address]) : each));
  for (const node of nodes) node.know(all);
  await until(() => [one, other].every(({ relays }) => relays().length === 2));
  await first.transport.close();
  await tell(one, other, 'by the second relay');
  await tell(other, one, 'and back again');
  expect(one.circuits().some((circuit) => circuit.includes(`${shortOf(1)} by ${shortOf(3)}#`))).toBe(true);
  // One ends and comes back at another place, with nothing but its keys.
  await other.transport.close();
  const again = await open(1);
  again.know(all);
  await tell(again, one, 'here I am');
  await tell(one, again, 'welcome back');
  // Nothing that was said came to a relay as a message.
  expect([first.heard, second.heard]).toEqual([[], []]);
});

test('a relay that changes bytes of a circuit gets nothing heard that was not said; the other relay is tried in its turn', async () => {
  const [one, other, bad, good] = await Promise.all([open(0), open(1), open(2), open(3)]);
  let broken = 0;
  // Circuits to the bad one go through a door that changes what comes behind the handshake's first frame.
  const door = createServer((socket) => {
    const behind = connect(bad.address);
    for (const end of [socket, behind]) {
      end.on('error', () => undefined);
      end.on('close', () => [socket, behind].map((each) => each.destroy()));
    }
    behind.pipe(socket);
    let [isCircuit, passed]: [boolean | undefined, number] = [undefined, 0];
    socket.on('data', (piece: Buffer) => {
      isCircuit ??= piece.length >= 24 && tokenIn(piece.subarray(4, 24)) !== undefined;
      if (isCircuit && passed >= 24) {
        piece[piece.length - 1] = (piece[piece.length - 1] as number) ^ 1;
        broken++;
      }
      passed += piece.length;
      behind.write(piece);
    });
  });
  await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve));
  closing.push(() => void door.close());
  const doorAt = { host: '127.0.0.1', port: (door.address() as AddressInfo).port };
  const validators = [listed(0, []), listed(1, []), listed(2, [doorAt]), listed(3, [])];
  for (const node of [one, other, bad, good]) node.know(validators);
  await until(() => broken > 0);
  for (const node of [one, other, bad, good]) node.know([...validators.slice(0, 3), listed(3, [good.address])]);
  await tell(one, other, 'said');
  await tell(other, one, 'answered');
  expect([...new Set([...one.heard, ...other.heard])]).toEqual(['answered', 'said']);
  for (const circuit of [...one.circuits(), ...other.circuits()]) expect(circuit).toContain(` by ${shortOf(3)}#`);
});

/** The part that speaks of relays, with links that are said to be there. */
function relaying(links: readonly ProvenLink[], own = 0, next: readonly Listed[] = []) {
  const sent: { readonly peer: Peer; readonly type: number }[] = [];
  const messages: CircuitMessage[] = [];
  const connected: OverlaySocket[] = [];
  const part = new Relaying({
    chainId: CHAIN,
    log: silentLog,
    steady: steadyMillis,
    now: (): number => steadyMillis(),
    links: () => links,
    link: (peer) => links.find((link) => link.peer === peer),
    send: (peer, bytes) => {
      sent.push({ peer, type: bytes[0] as number });
      messages.push(decodeCircuitMessage(bytes) as CircuitMessage);
    },
    connected: (socket) => void connected.push(socket),
  });
  closing.push(() => part.close());
  const now = [listed(0, []), listed(1, []), listed(2, [{ host: '192.0.2.1', port: 1 }]), listed(3, [])];
  const validators = [...now, ...next];
  part.know({ own: validators[own] as Listed, validators, sign: overlayKeys[own]?.signRecord });
  const records = () =>
    messages.flatMap((message) => (message.type === 'record' ? decodeRecord(message.bytes).record : []));
  return { part, sent, connected, records };
}

const linkOf = (member: number, isMember = true, at?: ListenAddress): ProvenLink => ({
  peer: `m${member}`,
  key: members[member]?.publicKey as Bytes,
  isMember,
  at,
});

test('a relay gives slots and circuits to members alone', () => {
  const [slot, circuit] = [
    encodeCircuitMessage({ type: 'slot' }),
    encodeCircuitMessage({ type: 'circuit', validator: idOf(1) }),
  ];
  const member = relaying([linkOf(0), linkOf(1)], 2);
  for (const peer of ['m1', 'stranger']) expect(member.part.take(peer, slot)).toBe(true);
  expect(member.part.take('m0', circuit)).toBe(true);
  expect(member.sent).toEqual([
    { peer: 'm1', type: 16 },
    { peer: 'm0', type: 18 },
    { peer: 'm1', type: 18 },
  ]);
  expect(member.part.circuits).toBe(1);
  const others = relaying([linkOf(0, false), linkOf(1, false)], 2);
  for (const peer of ['m0', 'm1', 'stranger']) for (const message of [slot, circuit]) others.part.take(peer, message);
  expect([others.sent, others.part.circuits]).toEqual([[], 0]);
  expect(member.part.take('m0', Uint8Array.of(2))).toBe(false);
  expect(() => member.part.take('m0', Uint8Array.of(15, 0))).toThrow();
});

test('a validator with another key in the next epoch has its slot, its circuits and its records with the key of now', () => {
  const next = { ...listed(0, []), publicKey: new Uint8Array(1952), overlayKey: new Uint8Array(32) };
  const { part, sent, records } = relaying([linkOf(0), linkOf(1)], 2, [next]);
  for (const peer of ['m0', 'm1']) part.take(peer, encodeCircuitMessage({ type: 'slot' }));
  part.take('m0', encodeCircuitMessage({ type: 'circuit', validator: idOf(1) }));
  expect(sent.map(({ peer, type }) => [peer, type])).toEqual([
    ['m0', 16],
    ['m1', 16],
    ['m0', 18],
    ['m1', 18],
  ]);
  const expiry = BigInt(steadyMillis() + 60_000);
  const record = { chainId: CHAIN, validator: idOf(0), sequence: 1n, expiry, relays: [idOf(2)] };
  const { bytes } = signRecord(record, (overlayKeys[0] as (typeof overlayKeys)[0]).signRecord);
  part.take('m0', encodeCircuitMessage({ type: 'record', bytes }));
  expect(records()).toEqual([record]);
});

test('a record is passed on once, to all but its bringer; a forged one, one of a stranger and one too long is not', () => {
  const { part, sent } = relaying([linkOf(0), linkOf(1), linkOf(3)], 2);
  const record = { chainId: CHAIN, validator: idOf(0), sequence: 1n, expiry: BigInt(steadyMillis() + 60_000) };
  const by = (member: number) =>
    encodeCircuitMessage({
      type: 'record',
      bytes: signRecord({ ...record, relays: [idOf(2)] }, (overlayKeys[member] as (typeof overlayKeys)[0]).signRecord)
        .bytes,
    });
  part.take('m0', by(1));
  part.take('stranger', by(0));
  expect(sent).toEqual([]);
  part.take('m0', by(0));
  part.take('m1', by(0));
  expect(sent).toEqual([
    { peer: 'm1', type: 14 },
    { peer: 'm3', type: 14 },
  ]);
  part.joined('m3');
  expect(sent).toHaveLength(3);
  const tooLong = encodeCircuitMessage({ type: 'record', bytes: new Uint8Array(MAX_RECORD_BYTES + 1) });
  expect(() => part.take('m0', tooLong)).toThrow('a record of');
});

test('a validator that is shown a newer record of its own, from a clock that was ahead, announces one that is newer still', () => {
  const at = { host: '192.0.2.1', port: 1 };
  const { part, records } = relaying([linkOf(2, true, at)]);
  part.tick();
  part.take('m2', encodeCircuitMessage({ type: 'granted' }));
  part.tick();
  part.tick();
  const sequences = () => records().map(({ sequence }) => sequence);
  expect(sequences()).toHaveLength(1);
  const ahead = BigInt(steadyMillis() + 600_000);
  const shown = (member: number, sequence: bigint) =>
    part.take(
      'm2',
      encodeCircuitMessage({
        type: 'record',
        bytes: signRecord(
          { chainId: CHAIN, validator: idOf(0), sequence, expiry: ahead, relays: [idOf(2)] },
          (overlayKeys[member] as (typeof overlayKeys)[0]).signRecord,
        ).bytes,
      }),
    );
  // Forged, and not newer.
  shown(1, ahead);
  shown(0, sequences()[0] as bigint);
  part.tick();
  expect(sequences()).toHaveLength(1);
  shown(0, ahead);
  part.tick();
  expect(sequences().slice(1)).toEqual([ahead + 1n]);
});

test('an invitation is followed where this validator has a slot or asked for it, and nowhere else', async () => {
  const tokens: string[] = [];
  const relay = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (piece) => {
      tokens.push(toHex(tokenIn(piece.subarray(4)) ?? new Uint8Array(0)));
      socket.destroy();
    });
  });
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
  closing.push(() => void relay.close());
  const at = { host: '127.0.0.1', port: (relay.address() as AddressInfo).port };
  const { part, sent } = relaying([linkOf(2, true, at), linkOf(3)]);
  const invite = (peer: Peer, role: 'dialler' | 'dialled', byte: number, validator = idOf(1)) =>
    part.take(
      peer,
      encodeCircuitMessage({ type: 'invitation', validator, role, token: new Uint8Array(16).fill(byte) }),
    );
  invite('m2', 'dialled', 1);
  part.tick();
  expect(sent).toEqual([{ peer: 'm2', type: 15 }]);
  invite('m2', 'dialled', 2);
  part.take('m2', encodeCircuitMessage({ type: 'granted' }));
  part.take('m3', encodeCircuitMessage({ type: 'granted' }));
  // Not asked for; of one where it has no slot; with somebody that the chain does not list.
  invite('m2', 'dialler', 3);
  invite('m3', 'dialled', 4);
  invite('m2', 'dialled', 5, new Uint8Array(48).fill(9));
  invite('m2', 'dialled', 6);
  await until(() => tokens.length > 0);
  expect(tokens).toEqual(['06'.repeat(16)]);
});
