/** Whether the validator of a running node signs: what `svcd validator status` asks the node, without a program that is started for each question. */
import type { ConsensusReport } from '../../node/reports/consensus-report.ts';
import { askControl } from '../../node/reports/control-socket.ts';

/** False also while the node does not answer yet. */
export async function isSigning(dataDir: string): Promise<boolean> {
  const text = await askControl(dataDir).catch(() => undefined);
  return text !== undefined && (JSON.parse(text) as ConsensusReport).consensus.signs;
}
