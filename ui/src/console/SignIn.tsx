import { useState } from "preact/hooks";
import { Icon } from "../components/Icon";
import { useConsole } from "./model";

/** Asks for the operator's token where the address did not bring it. */
export function SignIn() {
  const console = useConsole();
  const [token, setToken] = useState("");
  const refused = console.refused.value;
  return (
    <main class="sign-in">
      <form
        class="card"
        data-testid="sign-in"
        onSubmit={(event) => {
          event.preventDefault();
          void console.signIn(token.trim());
        }}
      >
        <span class="brand-mark">
          <Icon name="leaf" size={18} />
        </span>
        <h1>Toolgrove console</h1>
        <p class="quiet">
          <code>toolgrove serve</code> printed an address with the operator's token at its first start. Open that
          address, or paste the token here; it stays in this tab only.
        </p>
        <div class="field">
          <label class="field-name" for="token">
            Operator's token
          </label>
          <input
            id="token"
            class="input mono"
            type="password"
            autocomplete="off"
            spellcheck={false}
            value={token}
            aria-invalid={refused !== "" ? "true" : undefined}
            aria-describedby={refused !== "" ? "token-problem" : undefined}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
          {refused !== "" && (
            <p class="field-problem" id="token-problem" role="alert">
              <Icon name="warning" size={14} />
              <span>{refused}</span>
            </p>
          )}
        </div>
        <button type="submit" class="button primary" disabled={token.trim() === ""}>
          Sign in
        </button>
        <p class="quiet small">
          Lost it? <code>toolgrove tokens new operator</code> makes a new one.
        </p>
      </form>
    </main>
  );
}
