/** The network of a node in this thread, with the relay of transactions on top of it and a mempool that takes everything. */
import { randomBytes } from 'node:crypto';
import type { UnspentOutput } from '../../node/full-node.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { TransactionRelay, type TransactionRelayDependencies } from '../../node/network/relay/transaction-relay.ts';
import type { HostSettings, NodeSide } from '../../node/network/thread/host-types.ts';
import { PeerHost } from '../../node/network/thread/peer-host.ts';
import { toHex } from '../../protocol/bytes.ts';
import { transactionIdOfWire } from '../../protocol/transactions/transaction.ts';
import { payment } from '../node/bed.ts';
import { hostSettings } from './raw-peer.ts';

/** Transactions that differ; nobody checks their signatures here. */
export function wireOf(index: number): Uint8Array<ArrayBuffer> {
  const transactionId = new Uint8Array(48);
  new DataView(transactionId.buffer).setUint32(0, index + 1);
  const { address } = developmentKey('bob');
  const coin = { outpoint: { transactionId, outputIndex: 0 }, address, amount: 10n ** 12n, source: 'genesis' };
  const chain = { chainId: new Uint8Array(48), head: () => ({ height: 0 }) };
  const signatures = { get: () => new Uint8Array(3_309), set: () => undefined };
  return payment(chain as never, [coin as unknown as UnspentOutput], [{ address, amount: 5n }], {
    signatures,
  } as never);
}

/** For a WaitingPull whose peers may have read and checked what they like. */
export const noLimits = { mayRead: () => true, allowed: async () => undefined };

export type Blamed = { readonly peer: string; readonly fault: string; readonly reason: string };

export class RelayHost {
  readonly chainId: Uint8Array = randomBytes(48);
  readonly pool = new Map<string, Uint8Array>();
  readonly blamed: Blamed[] = [];
  readonly joined: string[] = [];
  remembered: readonly { readonly address: string }[] = [];
  readonly host: PeerHost;
  readonly relay: TransactionRelay;
  address = '';

  constructor(node: Partial<NodeSide> = {}) {
    const log = async (_: string, message: string, fields: object) => {
      if (message === 'a peer broke a rule') this.blamed.push(fields as Blamed);
    };
    const side = {
      joined: async (peer: string) => void this.joined.push(peer),
      left: async () => undefined,
      refused: async () => undefined,
      serve: async () => undefined,
      gossip: async (peer: string, _: string, data: Uint8Array) => await this.relay.judge(peer, data),
      remember: async (addresses: readonly { readonly address: string }[]) => {
        this.remembered = addresses;
      },
      log,
      ...node,
    };
    this.host = new PeerHost(side as never);
    const dependencies = {
      node: {
        on: () => () => undefined,
        mempool: { get: (id: Uint8Array) => this.pool.get(toHex(id)) },
        chain: { transactionStatus: () => undefined },
        submitTransaction: async (wire: Uint8Array) => {
          this.pool.set(toHex(transactionIdOfWire(wire)), wire);
          return { status: 'accepted' };
        },
      },
      network: {
        ask: (...words: Parameters<PeerHost['ask']>) => this.host.ask(...words),
        fault: (...words: Parameters<PeerHost['fault']>) => this.host.fault(...words),
        publish: () => undefined,
      },
      isSynced: () => true,
      steady: () => performance.now(),
    };
    this.relay = new TransactionRelay(dependencies as unknown as TransactionRelayDependencies);
  }

  async start(settings: Partial<HostSettings> = {}): Promise<void> {
    const { addresses } = await this.host.start(
      hostSettings(this.chainId, { listen: ['/ip4/127.0.0.1/tcp/0'], ...settings }),
    );
    this.address = addresses[0] as string;
  }

  async close(): Promise<void> {
    this.relay.close();
    await this.host.close();
  }
}
