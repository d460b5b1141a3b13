/** The notice that is shown when the pool's node needs another release (specification: Versioning 6). */

import type { RouteAnswer } from '../../protocol/api/routes.ts';
import { word } from '../words/language.ts';

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
      text: word('chain.update_required', { version: status.version, height: status.finalized_height }),
    };
  if (status?.update_announced === true)
    return { kind: 'note', text: word('chain.update_announced', { version: status.version }) };
  return undefined;
}
