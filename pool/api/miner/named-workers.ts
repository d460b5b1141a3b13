/**
 * A worker that a miner names as its own with the key of its address (signed-change.ts). Anybody can begin a worker of any
 * address: one that the key names is trusted at once, all others after a day (pool/stats/silence.ts).
 */

import { OTHERS, WORKER_MAX } from '../../../protocol/books/receipt.ts';
import { utf8 } from '../../../protocol/bytes.ts';
import type { NetworkName } from '../../../protocol/network.ts';
import type { AddressProof, AddressProofRequest } from '../../../protocol/transactions/address-proof.ts';
import type { WallClock } from '../../../runtime/clock/clock.ts';
import type { Sql } from '../../database/connect.ts';
import { ApiRefusal } from '../api-error.ts';
import type { Account } from './miner-view.ts';
import { type Change, madeAlready, SignedChange } from './signed-change.ts';

/** Names of an account on record, those that it took back included. */
export const MAX_NAMED = 256;

export type WorkerWish = { readonly worker: string; readonly named: boolean };

export class NamedWorkers {
  readonly #pool: () => string;
  readonly #sql: Sql;
  readonly #signed: SignedChange;

  constructor(
    options: { readonly network: NetworkName; readonly pool: string },
    dependencies: { sql: Sql; now: WallClock },
  ) {
    this.#pool = () => options.pool;
    this.#sql = dependencies.sql;
    this.#signed = new SignedChange(options.network, dependencies);
  }

  #change(address: string, { worker, named }: WorkerWish): Change {
    if (worker === '' || worker === OTHERS || worker.includes('\0') || utf8(worker).length > WORKER_MAX)
      throw new ApiRefusal('bad_request', 'worker is no name that a worker can have');
    const what = named ? 'is mine' : 'is not mine';
    const purpose = `the worker "${worker}" ${what} at the pool "${this.#pool()}"`;
    return { address, bound: `worker ${named} ${worker}`, purpose, what: 'worker' };
  }

  async request(address: string, wish: WorkerWish): Promise<AddressProofRequest> {
    const change = this.#change(address, wish);
    const [row] = await this.#sql<{ millis: string }[]>`select n.set_millis::text as millis from named_workers n
      join accounts a on a.id = n.account_id where a.address = ${address} and n.name = ${wish.worker}`;
    return this.#signed.request(change, Number(row?.millis ?? -1));
  }

  async change(account: Account, wish: WorkerWish, request: AddressProofRequest, proof: AddressProof) {
    await this.#signed.insist(this.#change(account.address, wish), request, proof);
    const { worker, named } = wish;
    await this.#sql.begin(async (transaction) => {
      await transaction`select 1 from accounts where id = ${account.id} for no key update`;
      const [row] = await transaction<{ count: number }[]>`select count(*)::int as count from named_workers
        where account_id = ${account.id} and name <> ${worker}`;
      if ((row?.count ?? 0) >= MAX_NAMED)
        throw new ApiRefusal('conflict', `an address names at most ${MAX_NAMED} workers`);
      const made = await transaction`insert into named_workers (account_id, name, is_named, set_millis)
        values (${account.id}, ${worker}, ${named}, ${request.created_millis})
        on conflict (account_id, name) do update set is_named = excluded.is_named, set_millis = excluded.set_millis
        where named_workers.set_millis < excluded.set_millis returning account_id`;
      if (made.length === 0) throw madeAlready();
    });
    return { address: account.address, worker, named };
  }
}
