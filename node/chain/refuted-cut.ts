/**
 * A cut that more than two thirds of the stake stand for and that breaks a rule here: either side has a defect, and a
 * developer can only find it with what this node had. One file per data directory, of bounded size, for its owner alone.
 */
import { join } from 'node:path';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import type { ProposedCut } from '../../protocol/consensus/proposal.ts';
import { type Certificate, encodeCertificate } from '../../protocol/ledger/cut.ts';
import { writeDurably } from '../../runtime/files/durable-file.ts';
import { PRIVATE_MODE } from '../../runtime/files/private-file.ts';
import type { Head } from '../full-node.ts';

export const REFUTED_CUT_FILE = 'refuted-cut.json';
/** Of all bodies together; peers have those that are left out. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;

export type RefutedCut = {
  readonly cut: ProposedCut;
  /** Undefined where only prevotes stand for it. */
  readonly certificate: Certificate | undefined;
  /** The rule, with the values of both sides. */
  readonly reason: string;
};

export type RefutedAt = RefutedCut & {
  readonly chainId: Bytes;
  readonly head: Head;
  readonly blocks: readonly {
    readonly id: Bytes;
    readonly header: Bytes | undefined;
    readonly body: Bytes | undefined;
  }[];
};

/** Returns what to tell the operator: the file, or why there is none. */
export async function writeRefutedCut(directory: string, refuted: RefutedAt): Promise<string> {
  const { cut, certificate, reason, chainId, head } = refuted;
  let left = MAX_BODY_BYTES;
  const blocks = refuted.blocks.map(({ id, header, body }) => {
    const isKept = body !== undefined && body.length <= left;
    if (isKept) left -= body.length;
    return { id: toHex(id), header: header && toHex(header), body: isKept ? toHex(body) : null };
  });
  const document = {
    reason,
    chain_id: toHex(chainId),
    head: { height: head.height, cut_id: toHex(head.cutId), state_root: toHex(head.stateRoot) },
    cut: { height: cut.header.height, cut_id: toHex(cut.cutId), header_and_block_ids: toHex(cut.content) },
    certificate: certificate === undefined ? null : toHex(encodeCertificate(certificate)),
    blocks,
  };
  const path = join(directory, REFUTED_CUT_FILE);
  try {
    await writeDurably(path, `${JSON.stringify(document)}\n`, PRIVATE_MODE);
    return `What a developer needs is in ${path}`;
  } catch (error) {
    return `${path} could not be written (${(error as Error).message})`;
  }
}
