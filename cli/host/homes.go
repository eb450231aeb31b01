package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ductor/cli"
)

// notesDir is a directory beside the homes. It contains a file for each home, with the digests of the seeds that were
// copied into the home. HomeName never returns ".notes".
const notesDir = ".notes"

// HomesOptions configures Homes. Dir is required.
type HomesOptions struct {
	// Dir is the absolute path of the directory with the homes. OpenHomes creates it if needed, and denies other users
	// access to it.
	Dir string
	// Seeds are the files of each home that come from the owner's home. Homes updates them before each turn.
	Seeds []cli.HomeSeed
	Now   func() time.Time // nil means time.Now
}

// Homes gives each session its own home directory on this machine. A home contains the Seeds, and what the session's
// agents store there. Agents in such a home do not find the settings, MCP servers, hooks, skills and memory files of
// the user who runs ductor, called the owner. A home is no security boundary: programs can still read the owner's home
// if they use its absolute path. Safe for concurrent use.
type Homes struct {
	opts HomesOptions

	mu   sync.Mutex // held while a home is changed
	root *os.Root
}

// OpenHomes opens the directory of homes. The caller must Close it.
func OpenHomes(o HomesOptions) (*Homes, error) {
	if !filepath.IsAbs(o.Dir) {
		return nil, fmt.Errorf("open homes: %q is no absolute path", o.Dir)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	for _, s := range o.Seeds {
		if err := seed(s).check(); err != nil {
			return nil, fmt.Errorf("open homes: %w", err)
		}
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open homes: %w", err)
	}
	root, err := os.OpenRoot(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("open homes: %w", err)
	}
	if err := errors.Join(root.Chmod(".", 0o700), root.MkdirAll(notesDir, 0o700)); err != nil {
		return nil, errors.Join(fmt.Errorf("open homes: %w", err), root.Close())
	}
	return &Homes{opts: o, root: root}, nil
}

// Close closes the directory of homes. No other method may be called afterwards.
func (h *Homes) Close() error {
	if err := h.root.Close(); err != nil {
		return fmt.Errorf("close homes: %w", err)
	}
	return nil
}

// Home implements service.Homes. For a new session it copies all seeds. Later, it copies only seeds that the owner has
// changed, and restores missing links.
func (h *Homes) Home(ctx context.Context, session string) (dir string, err error) {
	name := HomeName(session)
	if name == "" {
		return "", errors.New("create a home: the session has no name")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("create the home of session %s: %w", session, context.Cause(ctx))
	}
	if err := h.furnish(name); err != nil {
		return "", fmt.Errorf("create the home of session %s: %w", session, err)
	}
	return filepath.Join(h.opts.Dir, name), nil
}

func (h *Homes) furnish(name string) error {
	if err := h.root.MkdirAll(name, 0o700); err != nil {
		return err
	}
	if err := h.root.Chmod(name, 0o700); err != nil { // Chmod fails if name is a link that leads out of the root
		return err
	}
	home, err := h.root.OpenRoot(name)
	if err != nil {
		return err
	}
	defer home.Close()
	had, err := h.seedStates(name)
	if err != nil {
		return err
	}
	now, err := syncSeeds(home, h.opts.Seeds, had)
	if err != nil {
		return err
	}
	if err := h.note(name, had, now); err != nil {
		return err
	}
	t := h.opts.Now()
	return h.root.Chtimes(name, t, t)
}

// HomeInfo describes an existing home.
type HomeInfo struct {
	Name  string    // name of the directory; Forget accepts it
	Used  time.Time // when a turn last used the home, or its top level changed
	Bytes int64     // total size of its files; links do not count
}

// List lists all homes, the least recently used first. It reads all directories in the homes to compute the sizes.
func (h *Homes) List(ctx context.Context) ([]HomeInfo, error) {
	entries, err := fs.ReadDir(h.root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("list homes: %w", err)
	}
	var all []HomeInfo
	for _, e := range entries {
		if !e.IsDir() || e.Name() == notesDir {
			continue
		}
		info, err := h.look(ctx, e)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the home was removed meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("list homes: %w", err)
		}
		all = append(all, info)
	}
	slices.SortFunc(all, func(a, b HomeInfo) int { return a.Used.Compare(b.Used) })
	return all, nil
}

func (h *Homes) look(ctx context.Context, home fs.DirEntry) (HomeInfo, error) {
	info, err := home.Info()
	if err != nil {
		return HomeInfo{}, err
	}
	found := HomeInfo{Name: home.Name(), Used: info.ModTime()}
	err = fs.WalkDir(h.root.FS(), home.Name(), func(_ string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || !d.Type().IsRegular() {
			return ignoreGone(err)
		}
		info, err := d.Info()
		if err == nil {
			found.Bytes += info.Size()
		}
		return ignoreGone(err)
	})
	return found, err
}

// Forget removes the home of a session, with everything that agents have stored there. It does not remove the targets
// of links. session is the name of a session, or the name of a home from List. If there is no such home, Forget returns
// nil. No process may be running in the home.
func (h *Homes) Forget(_ context.Context, session string) error {
	name := HomeName(session)
	if name == "" {
		return errors.New("delete a home: it has no name")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	err := errors.Join(h.root.RemoveAll(name), ignoreGone(h.root.Remove(notesFile(name))))
	if err != nil {
		return fmt.Errorf("forget the home of session %s: %w", session, err)
	}
	return nil
}

// seedStates returns the state of each seed in a home: the hash of the copied content, or "link". The key is the seed's
// path.
func (h *Homes) seedStates(name string) (map[string]string, error) {
	had := map[string]string{}
	raw, err := h.root.ReadFile(notesFile(name))
	if errors.Is(err, fs.ErrNotExist) {
		return had, nil
	}
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(raw, &had) != nil { // if the file is damaged, all seeds are copied again
		return map[string]string{}, nil
	}
	return had, nil
}

func (h *Homes) note(name string, had, now map[string]string) error {
	if maps.Equal(had, now) {
		return nil
	}
	raw, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return replaceFile(h.root, notesFile(name), raw)
}

func notesFile(name string) string { return notesDir + "/" + name + ".json" }

// HomeName returns the name of a session's home directory. The name is the same in every environment. It is the
// session's name if that is a valid directory name, and otherwise a hash. A hash is a valid directory name, too, so
// HomeName(HomeName(session)) equals HomeName(session).
func HomeName(session string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
	}
	if len(session) <= 64 && !strings.ContainsFunc(session, func(r rune) bool { return !plain(r) }) {
		return session
	}
	sum := sha256.Sum256([]byte(session))
	return hex.EncodeToString(sum[:16])
}
