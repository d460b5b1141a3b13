/** How old the anchors of published templates are: with `--anchors best` they are drawn among those of the last 80 cuts. */

export type AnchorFigures = {
  /** Templates on the newest cut, and on older ones. */
  readonly newest: number;
  readonly older: number;
  /** Mean age of the anchors of the newest publication, in cuts. */
  readonly meanAge: number;
};

export class DrawnAnchors {
  figures: AnchorFigures = { newest: 0, older: 0, meanAge: 0 };

  note(anchorHeights: readonly number[], cutHeight: number): void {
    const ages = anchorHeights.map((height) => cutHeight - height);
    const older = ages.filter((age) => age > 0).length;
    this.figures = {
      newest: this.figures.newest + ages.length - older,
      older: this.figures.older + older,
      meanAge: ages.reduce((sum, age) => sum + age, 0) / Math.max(1, ages.length),
    };
  }
}
