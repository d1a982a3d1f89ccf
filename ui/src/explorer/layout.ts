/** Where list and tool are two screens; the same width as in explorer.css. */
export const NARROW = "(max-width: 800px)";
