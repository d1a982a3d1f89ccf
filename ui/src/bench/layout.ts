/** Where the result stands below the form; the same width as in bench.css. */
export const STACKED = "(max-width: 1120px)";
