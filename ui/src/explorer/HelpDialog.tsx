import { KeysDialog } from "../components/KeysDialog";
import { SHORTCUTS } from "./keys";
import { useExplorer } from "./model";

export function HelpDialog({ onClose }: { onClose: () => void }) {
  return <KeysDialog shortcuts={SHORTCUTS} singleKeys={useExplorer().settings.singleKeys} onClose={onClose} />;
}
