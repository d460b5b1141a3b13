/** The notice that is shown when the pool's node needs another release (specification: Versioning 6). */
import type { RouteAnswer } from '../../protocol/api/routes.ts';

type UpdateFlags = Pick<
  RouteAnswer<'nodeStatus'>,
  'update_required' | 'update_announced' | 'finalized_height' | 'version'
>;

/** `warn`: what is shown is old and stays so; `note`: nothing is wrong yet. */
export type UpdateNotice = { readonly kind: 'warn' | 'note'; readonly text: string };

export function updateNotice(status: UpdateFlags | undefined): UpdateNotice | undefined {
  if (status?.update_required === true)
    return {
      kind: 'warn',
      text: `The network now follows rules that this pool’s node (release ${status.version}) does not support. The node stopped at cut ${status.finalized_height} and must be updated; until then nothing newer is shown, and mining here finds no blocks.`,
    };
  if (status?.update_announced === true)
    return { kind: 'note', text: `A newer release than that of this pool’s node (${status.version}) is available.` };
  return undefined;
}
