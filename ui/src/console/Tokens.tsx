import { useEffect, useState } from "preact/hooks";
import { Dialog } from "../components/Dialog";
import { useConsole } from "./model";
import { exact } from "./moment";
import type { Token } from "./sources";

const LASTING: [string, string][] = [
  ["", "Never expires"],
  ["1", "For 1 day"],
  ["30", "For 30 days"],
  ["365", "For a year"],
];

/** The tokens of an agent: who may connect as it. A new one goes into the client entry above, this once. */
export function Tokens({ agent, onMade }: { agent: string; onMade: (token: string) => void }) {
  const console = useConsole();
  const [tokens, setTokens] = useState<Token[] | null>(null);
  const [days, setDays] = useState("");
  const [revoking, setRevoking] = useState<Token | null>(null);
  const load = (): void => {
    console.api
      .tokens()
      .then((all) => setTokens(all.filter((token) => token.holder === agent)))
      .catch((error: Error) => console.say(error.message));
  };
  useEffect(load, [agent]);
  const make = async (): Promise<void> => {
    try {
      onMade(await console.api.newToken(agent, days === "" ? null : Number(days)));
      console.say(`New token for ${agent}. Copy the entry now: the token is shown only once.`);
    } catch (error) {
      console.say(error instanceof Error ? error.message : String(error));
    }
    load();
  };
  const revoke = async (token: Token): Promise<void> => {
    try {
      await console.api.revokeToken(token.id);
      console.say(`Token ${token.id} no longer works`);
    } catch (error) {
      console.say(error instanceof Error ? error.message : String(error));
    }
    load();
  };
  return (
    <section class="tokens" aria-label="Tokens" data-testid="tokens-of-agent">
      <p class="eyebrow">Tokens</p>
      <div class="token-form">
        <label>
          <span class="visually-hidden">How long the new token works</span>
          <select class="input select" value={days} onChange={(event) => setDays(event.currentTarget.value)}>
            {LASTING.map(([value, said]) => (
              <option key={value} value={value}>
                {said}
              </option>
            ))}
          </select>
        </label>
        <button type="button" class="button small" data-testid="new-token" onClick={() => void make()}>
          New token
        </button>
      </div>
      {tokens?.length === 0 && <p class="quiet small">No token yet, so no client can connect as {agent}.</p>}
      <ul class="lines">
        {tokens?.map((token) => (
          <li key={token.id} class="item" data-testid="token" data-token={token.id}>
            <span class="item-what">
              <code>{token.id}</code>
              <span class="why quiet">
                {token.standing !== "good"
                  ? "expired"
                  : `${token.used ? "in use" : "not used yet"}, ${token.expiresAt === null ? "never expires" : `until ${exact(token.expiresAt)}`}`}
              </span>
            </span>
            <button
              type="button"
              class="button small"
              aria-label={`Revoke token ${token.id}`}
              onClick={() => setRevoking(token)}
            >
              Revoke
            </button>
          </li>
        ))}
      </ul>
      {revoking && (
        <Dialog
          title={`Revoke token ${revoking.id}?`}
          tone="danger"
          testId="revoke-dialog"
          onClose={() => setRevoking(null)}
          footer={
            <>
              <button type="button" class="button" data-autofocus onClick={() => setRevoking(null)}>
                Keep it
              </button>
              <button
                type="button"
                class="button danger"
                data-testid="revoke-token"
                onClick={() => {
                  setRevoking(null);
                  void revoke(revoking);
                }}
              >
                Revoke
              </button>
            </>
          }
        >
          <p>Clients that use it are cut off at once. This cannot be undone; you can make a new token.</p>
        </Dialog>
      )}
    </section>
  );
}
