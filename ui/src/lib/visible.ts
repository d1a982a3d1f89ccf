/** Text that hides: what turns the direction of reading, takes no room, or controls a device. */
const HIDDEN =
  /(?![\t\n]|\r\n)[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}]/gu;
/** Within an emoji these only choose or join pictures. */
const JOINS = /(?<=\p{Extended_Pictographic}|\p{Emoji_Modifier}|\ufe0f)\u200d(?=\p{Extended_Pictographic})/u;
const PRESENTS = /(?<=\p{Emoji})[\ufe0e\ufe0f]/u;
const HARMLESS = new RegExp(`${JOINS.source}|${PRESENTS.source}`, "uy");

/** The text with JSON escapes for what a reader would not see; tabs, line ends and emoji stay. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (character, at: number) => {
    HARMLESS.lastIndex = at;
    return HARMLESS.test(text) ? character : escaped(character);
  });
}

function escaped(character: string): string {
  return character
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");
}
