// Package roles collects the roles that a conversation can use. A role is a system prompt with settings for the agent.
// Roles come from ductor, from files in a folder, or from the configuration. If several of these sources have a role
// with the same name, the last of them has priority. Changes to the files take effect without a restart.
//
// The package does not decide which conversation uses which role.
package roles

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"ductor/cli/tools"
	"ductor/orchestrator"
)

//go:embed shipped/*.md
var shipped embed.FS

// Limits of a folder with roles. Files beyond the limits are ignored and reported as problems.
const (
	maxFiles = 200
	maxBytes = 64 << 10
)

// checkInterval is the minimum time between two checks whether the files of the folder have changed.
const checkInterval = time.Second

// Set contains all roles. Safe for concurrent use.
type Set struct {
	dir string
	log *slog.Logger
	now func() time.Time

	mu         sync.Mutex
	configured map[string]orchestrator.Role
	lastCheck  time.Time
	stamp      string
	all        map[string]orchestrator.Role
}

// Open returns the Set of ductor's roles, the roles in a folder, and the configured roles. The folder may be missing,
// and dir may be "".
func Open(dir string, configured map[string]orchestrator.Role, now func() time.Time, log *slog.Logger) *Set {
	return &Set{dir: dir, configured: configured, now: now, log: log}
}

// Configure replaces the configured roles.
func (s *Set) Configure(configured map[string]orchestrator.Role) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.configured, s.all = configured, nil
}

// Role implements conversation.Roles.
func (s *Set) Role(name string) (orchestrator.Role, bool) {
	r, ok := s.current()[name]
	return r, ok
}

// Names implements conversation.Roles.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.current())) }

// current returns all roles by name. It reads the folder again if it has changed.
func (s *Set) current() map[string]orchestrator.Role {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); s.all == nil || now.Sub(s.lastCheck) >= checkInterval || now.Before(s.lastCheck) {
		s.lastCheck = now
		if stamp := folderStamp(s.dir); s.all == nil || stamp != s.stamp {
			s.stamp = stamp
			s.all = s.read()
		}
	}
	return s.all
}

// folderStamp returns a text with the names, sizes and modification times of the files in a folder. If the folder
// changes, the text changes too.
func folderStamp(dir string) string {
	if dir == "" {
		return ""
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	var b strings.Builder
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			fmt.Fprintln(&b, e.Name(), info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String()
}

func (s *Set) read() map[string]orchestrator.Role {
	all := map[string]orchestrator.Role{}
	inside, err := fs.Sub(shipped, "shipped")
	if err == nil {
		readFolder(inside, all)
	}
	files, problems := Files(s.dir)
	for _, err := range problems {
		s.log.Warn("read the roles folder", "dir", s.dir, "err", err)
	}
	maps.Copy(all, files)
	maps.Copy(all, s.configured)
	return all
}

// Files returns the roles in a folder, which may be missing or "", and an error for each file that is not valid.
func Files(dir string) (all map[string]orchestrator.Role, problems []error) {
	all = map[string]orchestrator.Role{}
	if dir == "" {
		return all, nil
	}
	root, err := os.OpenRoot(dir) // symbolic links cannot lead out of the folder
	if err != nil {
		return all, nil
	}
	defer root.Close()
	return all, readFolder(root.FS(), all)
}

// readFolder adds the roles in the *.md files of a folder to the map. It skips files that are not valid, and returns an
// error for each of them.
func readFolder(folder fs.FS, to map[string]orchestrator.Role) (problems []error) {
	names, err := fs.Glob(folder, "*.md")
	if err == nil && len(names) > maxFiles {
		err = fmt.Errorf("there are %d files; only the first %d count", len(names), maxFiles)
		names = names[:maxFiles]
	}
	if err != nil {
		problems = append(problems, err)
	}
	for _, name := range names {
		r, err := readRole(folder, name)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s is no role: %w", name, err))
			continue
		}
		to[strings.TrimSuffix(name, ".md")] = r
	}
	return problems
}

// readRole reads a role from a file. The file begins with front matter, whose keys are those of [roles] in the
// configuration. The prompt follows.
func readRole(folder fs.FS, name string) (orchestrator.Role, error) {
	file, err := folder.Open(name)
	if err != nil {
		return orchestrator.Role{}, fmt.Errorf("open a role: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err != nil {
		return orchestrator.Role{}, fmt.Errorf("read a role: %w", err)
	}
	if len(text) > maxBytes {
		return orchestrator.Role{}, fmt.Errorf("it is longer than %d KB", maxBytes>>10)
	}
	front, prompt := cutFrontMatter(string(text))
	r := orchestrator.Role{Append: true}
	if err := yaml.Unmarshal([]byte(front), &r); err != nil {
		return orchestrator.Role{}, fmt.Errorf("read the front matter: %w", err)
	}
	r.Prompt = strings.TrimSpace(prompt)
	for _, name := range slices.Concat(r.Tools.Only, r.Tools.Denied, r.Bounds.AllowedTools) {
		if err := tools.Check(name); err != nil {
			return orchestrator.Role{}, fmt.Errorf("read the front matter: %w", err)
		}
	}
	if err := checkBounds(&r.Bounds); err != nil {
		return orchestrator.Role{}, fmt.Errorf("read the front matter: %w", err)
	}
	if r.Prompt == "" {
		return orchestrator.Role{}, fmt.Errorf("it has no prompt")
	}
	return r, nil
}

// checkBounds makes the directories in the settings of a role absolute. It returns an error if the settings are
// invalid.
func checkBounds(b *orchestrator.Bounds) error {
	if b.MaxTurns < 0 || b.MaxTurns > 1000 {
		return fmt.Errorf("max_turns: %d is out of bounds; it may be 0 to 1000", b.MaxTurns)
	}
	for i, dir := range b.AddDirs {
		if rest, ok := strings.CutPrefix(dir, "~/"); ok {
			home, err := os.UserHomeDir()
			if err != nil {
				return fmt.Errorf("add_dirs: %w", err)
			}
			dir = filepath.Join(home, rest)
		}
		if !filepath.IsAbs(dir) {
			return fmt.Errorf("add_dirs: %q must be absolute or begin with ~/", dir)
		}
		b.AddDirs[i] = filepath.Clean(dir)
	}
	return nil
}

// cutFrontMatter splits a text into its front matter and the rest. Front matter is at the beginning, between two lines
// that consist of three dashes.
func cutFrontMatter(text string) (front, rest string) {
	const line = "---\n"
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	if after, ok := strings.CutPrefix(text, line); ok {
		if front, rest, ok = strings.Cut("\n"+after, "\n"+line); ok {
			return front, rest
		}
	}
	return "", text
}
