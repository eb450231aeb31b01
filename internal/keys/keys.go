package keys

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"

	"ductor/internal/rooted"
	"ductor/internal/secrets"
)

// CredentialsVariable is the environment variable with the directory of the credentials that systemd passes to a
// service.
const CredentialsVariable = "CREDENTIALS_DIRECTORY"

// Folder is the directory of keys in the state directory.
const Folder = "keys"

// Limits of a key, in bytes. The minimum is necessary because ductor removes keys from texts: a short key could also
// occur in a text by chance.
const (
	minKey = 8
	maxKey = 16 << 10
)

var ErrNone = errors.New("there is no such key")

var namePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:([a-z][a-z0-9-]{0,30}(?:@[a-z][a-z0-9-]{0,19})?)\.)?([A-Z_][A-Z0-9_]{0,127})$`)
})

// Name identifies a key: the agent that gets it, and the environment variable. For an additional account of an agent,
// Agent is AGENT@ACCOUNT.
type Name struct{ Agent, Variable string }

// Key is an API key of an agent. It is never in the configuration file.
type Key struct {
	Agent, Name string // agent and environment variable; see type Name
	Value       secrets.Value
	From        Place
}

type Place string

const (
	InFile       Place = "the state directory"
	InCredential Place = "a credential of systemd"
)

func (n Name) String() string { return n.Agent + "." + n.Variable }

// Parse parses AGENT.NAME or AGENT@ACCOUNT.NAME. For the variables of known agents, such as ANTHROPIC_API_KEY, AGENT
// may be missing.
func Parse(text string) (Name, error) {
	m := namePattern().FindStringSubmatch(text)
	if m == nil {
		return Name{}, fmt.Errorf("%q is no name of a key; write AGENT.NAME, such as codex.OPENAI_API_KEY", text)
	}
	n := Name{Agent: cmp.Or(m[1], agentOf(m[2])), Variable: m[2]}
	switch {
	case n.Agent == "":
		return n, fmt.Errorf("say which agent gets %s: write AGENT.%s", n.Variable, n.Variable)
	case strings.HasPrefix(n.Variable, "DUCTOR_"):
		return n, fmt.Errorf("%s is a variable of ductor's own, which no agent gets", n.Variable)
	case isReserved(n.Variable):
		return n, fmt.Errorf("%s says how programs run and is no key", n.Variable)
	}
	return n, nil
}

// agentOf returns the agent to which a variable belongs according to the variable's prefix, or "".
func agentOf(variable string) string {
	for prefix, agent := range map[string]string{
		"ANTHROPIC_": "claude", "CLAUDE_CODE_": "claude", "OPENAI_": "codex", "CODEX_": "codex", "GEMINI_": "gemini",
		"GOOGLE_": "gemini", "COPILOT_": "copilot", "GH_": "copilot", "GITHUB_": "copilot",
	} {
		if strings.HasPrefix(variable, prefix) {
			return agent
		}
	}
	return ""
}

// isReserved reports whether a variable influences which programs run, such as PATH. A key must not have such a name.
func isReserved(variable string) bool {
	return slices.Contains([]string{"PATH", "HOME", "SHELL", "TMPDIR", "ENV", "BASH_ENV", "NODE_OPTIONS"}, variable) ||
		strings.HasPrefix(variable, "LD_")
}

// Read returns all keys, sorted by name. A key among the credentials overrides a key in the state directory. Both
// directories may be missing, and credentials may be "". Read ignores files whose names are not names of keys.
func Read(state, credentials string) ([]Key, error) {
	found := map[Name]Key{}
	if err := readAll(filepath.Join(state, Folder), InFile, found); err != nil {
		return nil, fmt.Errorf("read keys of agents: %w", err)
	}
	if credentials != "" {
		if err := readAll(credentials, InCredential, found); err != nil {
			return nil, fmt.Errorf("read credentials: %w", err)
		}
	}
	var all []Key
	for _, k := range found {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b Key) int {
		return cmp.Or(strings.Compare(a.Agent, b.Agent), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

func readAll(dir string, from Place, found map[Name]Key) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, err := Parse(e.Name())
		if err != nil {
			continue // not a key; for example, a temporary file that a crash left behind
		}
		value, err := readKeyFile(root, e.Name(), from)
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(dir, e.Name()), err)
		}
		found[name] = Key{Agent: name.Agent, Name: name.Variable, Value: secrets.Value(value), From: from}
	}
	return nil
}

// readKeyFile reads a key. It returns an error if other users can access a key in the state directory. It does not
// check the access to credentials, because systemd protects them.
func readKeyFile(root *os.Root, name string, from Place) (string, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", errors.New("it is no regular file")
	case from == InFile && info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("others on this machine may read it (mode %04o); run: chmod 600 on it",
			info.Mode().Perm())
	}
	return readKey(f)
}

func readKey(r io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxKey+1))
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(text))
	switch {
	case len(text) > maxKey:
		return "", fmt.Errorf("a key has at most %d bytes", maxKey)
	case len(key) < minKey:
		return "", fmt.Errorf("a key has at least %d characters", minKey)
	case strings.ContainsAny(key, "\x00\n\r"):
		return "", errors.New("a key is one line")
	}
	return key, nil
}

// Set reads a key from r and stores it atomically.
func Set(state string, name Name, r io.Reader) error {
	key, err := readKey(r)
	if err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}
	if err := rooted.ReplaceFile(filepath.Join(state, Folder, name.String()), []byte(key+"\n"), nil); err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}
	return nil
}

// Remove deletes a key from the state directory. It returns ErrNone if the key does not exist.
func Remove(state string, name Name) error {
	root, err := os.OpenRoot(filepath.Join(state, Folder))
	if err == nil {
		defer root.Close()
		err = root.Remove(name.String())
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", name, ErrNone)
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}
