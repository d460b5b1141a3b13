/** The miners of the simulated month: loyal ones, ones that come and go, hoppers of every kind, some with two services. */
import { extranonceOf, ownerBytes } from '../../bridge/session/extranonce.ts';
import type { JournalRecord, Service } from '../../pool/journal/journal-record.ts';
import { type Bytes, fromHex, toHex } from '../../protocol/bytes.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { freshIdentity } from './fresh-identity.ts';

type Habit = (slice: number) => boolean;

type Rig = {
  readonly account: Bytes;
  readonly name: string;
  readonly service: Service;
  readonly worker: string;
  readonly joins: number;
  readonly leaves: number;
  readonly habit: Habit;
  readonly rate: number;
  /** The front end's boot under which its connection is on record, and since which slice. */
  connection: { readonly boot: number; readonly slice: number; readonly owner: Bytes; generation: number } | undefined;
};

/** Names that somebody will try. */
const WORKERS = ['rig', '<b>rig</b>', "o'rig", 'rig "2"', 'x'.repeat(32)];
const SLICES_A_DAY = 144;

export type MinersOptions = { readonly accounts: number; readonly slices: number };

export class MonthMiners {
  readonly #draw: (below: number) => number;
  readonly #rigs: Rig[];
  #connections = 0;

  constructor({ accounts, slices }: MinersOptions, draw: (below: number) => number) {
    this.#draw = draw;
    this.#rigs = Array.from({ length: Math.floor(accounts * 1.2) }, (_, i) => {
      const account = Uint8Array.of(0, ...pattern(`month/miner/${i % accounts}`, 48));
      const joins = draw(3) === 0 ? 0 : draw(slices);
      return {
        account,
        name: toHex(account),
        service: i % 10 === 9 ? 'solo' : 'pplns',
        worker: WORKERS[i % WORKERS.length] as string,
        joins,
        leaves: joins + 1 + draw(2 * slices),
        habit: this.#habit(),
        rate: 1 + draw(50_000),
        connection: undefined,
      };
    });
  }

  #habit(): Habit {
    const draw = this.#draw;
    const kind = draw(10);
    if (kind < 1) return () => true;
    if (kind < 3) return () => draw(10) === 0;
    if (kind < 6) {
      const from = draw(SLICES_A_DAY);
      return (slice) => (slice + from) % SLICES_A_DAY < SLICES_A_DAY / 6;
    }
    const period = 2 + draw(9);
    return (slice) => slice % period === 0;
  }

  /** What the front end writes down in a slice: newcomers' ownerships before their shares. Adds PPLNS work to `work`. */
  shares(
    at: { slice: number; boot: number; bootId: string; nowMillis: number },
    work: Map<string, bigint>,
  ): JournalRecord[] {
    const draw = this.#draw;
    const records: JournalRecord[] = [];
    for (const rig of this.#rigs) {
      if (at.slice < rig.joins || at.slice >= rig.leaves || !rig.habit(at.slice)) continue;
      const { service, account, worker } = rig;
      if (rig.connection?.boot !== at.boot) {
        const owner = ownerBytes({ bootId: fromHex(at.bootId), thread: 0, connection: this.#connections++ });
        rig.connection = { boot: at.boot, slice: at.slice, owner, generation: 0 };
        records.push({ kind: 'ownership', service, account, worker, owner });
      }
      for (let n = draw(4) === 0 ? 2 : 1; n > 0; n--) {
        const share = BigInt(1 + draw(rig.rate)) * 1_000_003n;
        const atMillis = at.nowMillis - draw(300_000);
        records.push({ kind: 'share', service, account, worker, work: share, atMillis, identity: freshIdentity() });
        if (service === 'pplns') work.set(rig.name, (work.get(rig.name) ?? 0n) + share);
      }
    }
    return records;
  }

  /** One whose connection the books know, with an extranonce of its own; undefined while there is none. */
  finder(slice: number) {
    const known = this.#rigs.filter((rig) => rig.connection !== undefined && rig.connection.slice < slice);
    const rig = known[this.#draw(known.length)];
    if (rig?.connection === undefined) return undefined;
    const { account, name, service, worker, connection } = rig;
    const extranonce = extranonceOf('', connection.owner, connection.generation++);
    return { account, name, service, worker, extranonce };
  }
}
