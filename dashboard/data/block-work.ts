/** The work of a block at the current difficulty, and the part of it that a share represents. */
import type { PoolDocument } from '../../pool/api/documents.ts';
import { smallPercent } from '../format.ts';
import { useDocument } from './hooks.ts';

export const useBlockWork = (): string | undefined =>
  useDocument<PoolDocument>('pool', 60_000).data?.network_figures.block_work;

export const partOfBlock = (work: string, blockWork: string | undefined): string =>
  blockWork === undefined || blockWork === '0' ? '–' : smallPercent(Number(work) / Number(blockWork));
