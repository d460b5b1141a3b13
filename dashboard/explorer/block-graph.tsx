/**
 * The newest work blocks as a picture: a column for each anchor, a dot for each block, a line to each parent that is shown. The table
 * below it lists the same blocks for the keyboard and for screen readers.
 */

import { useLayoutEffect, useRef } from 'preact/hooks';
import type { RouteAnswer } from '../../protocol/api/routes.ts';
import { explorerLink } from '../router.ts';
import { stateText } from '../view/parts.tsx';
import { word } from '../words/language.ts';

export type GraphBlock = Pick<
  RouteAnswer<'recentBlocks'>['blocks'][number],
  'block_id' | 'anchor_height' | 'parents' | 'reward'
>;

const COLUMN = 46;
/** A finger needs 24. */
const ROW = 24;
const DOT = 6;
const MARGIN = 18;
const LABEL = 16;
/** More rows than these would make the picture higher than a screen. */
const MOST_ROWS = 12;

export type Placed = { readonly block: GraphBlock; readonly x: number; readonly y: number };
export type Graph = {
  readonly width: number;
  readonly height: number;
  readonly dots: readonly Placed[];
  readonly lines: readonly (readonly [Placed, Placed])[];
  readonly anchors: readonly { readonly height: number; readonly x: number }[];
};

/** Where everything lies. Anchors without a block take no room. */
export function graphOf(blocks: readonly GraphBlock[]): Graph {
  const anchors = [...new Set(blocks.map((block) => block.anchor_height))].sort((a, b) => a - b);
  const x = new Map(anchors.map((height, index) => [height, MARGIN + index * COLUMN]));
  const rows = new Map<number, number>();
  const dots: Placed[] = [];
  for (const block of [...blocks].reverse()) {
    const row = rows.get(block.anchor_height) ?? 0;
    rows.set(block.anchor_height, row + 1);
    if (row < MOST_ROWS) dots.push({ block, x: x.get(block.anchor_height) as number, y: MARGIN + row * ROW });
  }
  const byId = new Map(dots.map((dot) => [dot.block.block_id, dot]));
  const lines = dots.flatMap((dot) =>
    dot.block.parents.flatMap((id) => {
      const parent = byId.get(id);
      return parent === undefined ? [] : [[dot, parent] as const];
    }),
  );
  const most = Math.min(MOST_ROWS, Math.max(1, ...rows.values()));
  return {
    width: 2 * MARGIN + Math.max(0, anchors.length - 1) * COLUMN,
    height: 2 * MARGIN + (most - 1) * ROW + LABEL,
    dots,
    lines,
    anchors: anchors.map((height) => ({ height, x: x.get(height) as number })),
  };
}

export function BlockGraph({ blocks }: { blocks: readonly GraphBlock[] }) {
  const { width, height, dots, lines, anchors } = graphOf(blocks);
  const place = useRef<HTMLElement>(null);
  // The newest are at the right end: there the picture begins, and there it stays unless it was moved.
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    const element = place.current;
    if (element !== null && isAtEnd.current) element.scrollLeft = width;
  }, [width]);
  return (
    <section
      class="scroll graph"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
      tabIndex={0}
      aria-label={word('chain.graph_label')}
      ref={place}
      onScroll={({ currentTarget: { scrollLeft, scrollWidth, clientWidth } }) => {
        isAtEnd.current = scrollLeft + clientWidth >= scrollWidth - COLUMN;
      }}
    >
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
        {lines.map(([from, to]) => (
          <line
            key={`${from.block.block_id}${to.block.block_id}`}
            class="edge"
            x1={from.x}
            y1={from.y}
            x2={to.x}
            y2={to.y}
          />
        ))}
        {dots.map(({ block, x, y }) => (
          <a key={block.block_id} href={explorerLink('block', block.block_id)} tabindex={-1}>
            <circle class={`dot dot-${block.reward.state}`} cx={x} cy={y} r={DOT}>
              <title>
                {block.block_id}, {stateText(block.reward.state)}
              </title>
            </circle>
          </a>
        ))}
        {anchors.map(({ height: anchor, x }) => (
          <text key={anchor} class="anchor" x={x} y={height - 4} text-anchor="middle">
            {anchor}
          </text>
        ))}
      </svg>
    </section>
  );
}
