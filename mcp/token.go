package mcp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ductor/cli"
	"ductor/internal/rooted"
	"ductor/orchestrator"
)

// caller identifies the client that a token belongs to.
type caller struct {
	Conversation orchestrator.ConversationID `json:"conversation"`
	Agent        cli.Agent                   `json:"agent"`
	// Sandbox is the environment of the agent's process; empty means this host. Older versions of ductor created tokens
	// without a Sandbox. These tokens are valid on this host only.
	Sandbox  cli.Sandbox           `json:"sandbox,omitempty"`
	outsider orchestrator.Outsider // only set for an outside client; not part of the token
}

func (c caller) isOutside() bool { return c.outsider.Number > 0 }

// ErrToken means that a token is forged or was revoked.
var ErrToken = errors.New("the token is not valid")

// errElsewhere means that a client connects from an environment for which its token is not valid.
var errElsewhere = errors.New("the token of this agent was not made for the environment in which it runs; the tools " +
	"work again after the agent has started anew, with the next turn")

// keys creates and checks tokens. A file stores the key, so that tokens remain valid after a restart of ductor.
type keys struct{ key []byte }

const (
	keyFile  = "mcp.key"
	keyBytes = 32
)

// openKeys reads the key in dir, or creates one.
func openKeys(dir string) (keys, error) {
	path := filepath.Join(dir, keyFile)
	key, err := os.ReadFile(path)
	if err == nil && len(key) == keyBytes {
		return keys{key}, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return keys{}, fmt.Errorf("read the key of tokens: %w", err)
	}
	key = make([]byte, keyBytes)
	if _, err := rand.Read(key); err != nil {
		return keys{}, fmt.Errorf("create the key of tokens: %w", err)
	}
	if err := rooted.ReplaceFile(path, key, nil); err != nil {
		return keys{}, fmt.Errorf("store the key of tokens: %w", err)
	}
	return keys{key}, nil
}

// token returns the token of an agent in a conversation. It always returns the same token for the same caller, because
// one process of an agent runs several turns with the same token.
func (k keys) token(c caller) string {
	raw, err := json.Marshal(c)
	if err != nil { // cannot happen with numbers and strings
		return ""
	}
	named := base64.RawURLEncoding.EncodeToString(raw)
	return named + "." + base64.RawURLEncoding.EncodeToString(k.sign(named))
}

func (k keys) sign(text string) []byte {
	mac := hmac.New(sha256.New, k.key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// caller returns the agent and the conversation of a token. It returns ErrToken if the token is forged.
func (k keys) caller(token string) (caller, error) {
	named, signature, found := strings.Cut(token, ".")
	signed, err := base64.RawURLEncoding.DecodeString(signature)
	if !found || err != nil || !hmac.Equal(signed, k.sign(named)) {
		return caller{}, ErrToken
	}
	raw, err := base64.RawURLEncoding.DecodeString(named)
	var c caller
	if err != nil || json.Unmarshal(raw, &c) != nil {
		return caller{}, ErrToken
	}
	return c, nil
}
