/** Where the layout changes; the same widths as in explorer.css. */

/** List and tool are two screens. */
export const NARROW = "(max-width: 800px)";

/** The result stands below the form. */
export const STACKED = "(max-width: 1120px)";
