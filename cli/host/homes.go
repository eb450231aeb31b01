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

// notesDir is where it is kept what was put into each home. No home is called so.
const notesDir = ".notes"

// HomesOptions set up Homes. Dir is required.
type HomesOptions struct {
	// Dir is where the homes are, absolute; made if it is not there, and closed to other users.
	Dir string
	// Seeds are put into each home when it is made, and brought up to date before each turn.
	Seeds []cli.HomeSeed
	Now   func() time.Time // time.Now when nil
}

// Homes gives each session a home of its own on this machine: a directory that holds what Seeds say and what
// the session's agents put there. It keeps the owner's settings, MCP servers, hooks, skills and memory files from
// what runs in it. It is no wall: a program of the same user can still read the owner's home by its path. Safe for
// concurrent use.
type Homes struct {
	opts HomesOptions

	mu   sync.Mutex // held while homes are changed
	root *os.Root
}

// OpenHomes makes the directory of homes if it is not there. The caller must Close it.
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

// Close closes the directory. No other method is called afterwards.
func (h *Homes) Close() error {
	if err := h.root.Close(); err != nil {
		return fmt.Errorf("close homes: %w", err)
	}
	return nil
}

// Home gives the absolute path of a session's home. It makes and seeds it the first time; afterwards it puts in what
// has changed at the owner's since, links that are gone, and nothing else.
func (h *Homes) Home(ctx context.Context, session string) (dir string, err error) {
	name := HomeName(session)
	if name == "" {
		return "", errors.New("a home: the session has no name")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("a home of session %s: %w", session, context.Cause(ctx))
	}
	if err := h.furnish(name); err != nil {
		return "", fmt.Errorf("a home of session %s: %w", session, err)
	}
	return filepath.Join(h.opts.Dir, name), nil
}

// furnish makes a home and looks after what is in it. mu is held.
func (h *Homes) furnish(name string) error {
	if err := h.root.MkdirAll(name, 0o700); err != nil {
		return err
	}
	if err := h.root.Chmod(name, 0o700); err != nil { // also says that it is no link that leads out
		return err
	}
	home, err := h.root.OpenRoot(name)
	if err != nil {
		return err
	}
	defer home.Close()
	had, err := h.notes(name)
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

// HomeInfo is a home that is there.
type HomeInfo struct {
	Name  string    // of the directory; Forget takes it
	Used  time.Time // when a turn asked for it last, or its first level was changed
	Bytes int64     // of its files; links count as nothing
}

// List finds all homes, the longest unused first. It reads every directory in them.
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
			continue // forgotten in between
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

// Forget removes a session's home with all in it, agents' sessions included; what links lead to stays. session is
// named as Home took it, or as List names it. One that is not there is no error. Nothing may run in it.
func (h *Homes) Forget(_ context.Context, session string) error {
	name := HomeName(session)
	if name == "" {
		return errors.New("forget a home: it has no name")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	err := errors.Join(h.root.RemoveAll(name), ignoreGone(h.root.Remove(notesFile(name))))
	if err != nil {
		return fmt.Errorf("forget the home of session %s: %w", session, err)
	}
	return nil
}

// notes are digests of what was put into a home, by where.
func (h *Homes) notes(name string) (map[string]string, error) {
	had := map[string]string{}
	raw, err := h.root.ReadFile(notesFile(name))
	if errors.Is(err, fs.ErrNotExist) {
		return had, nil
	}
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(raw, &had) != nil { // then all is put in once more
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

// HomeName is what the directory of a session's home is called, in every place: the session's name where that is good
// for a directory, else a digest of it. It is a home's own name already when it is one.
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
