package secrets

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Bounds of the search for secrets of a project.
const (
	leastValue = 12 // bytes: what is shorter is rather a word than a secret
	mostValue  = 4 << 10
	mostFile   = 256 << 10
	mostAbove  = 8
	mostBelow  = 64
)

// files are where projects keep secrets.
func files() []string {
	return []string{".env", ".env.local", ".env.development", ".env.development.local", ".env.production",
		".env.production.local", ".env.staging", ".env.test", ".env.test.local", ".envrc"}
}

var secretName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL`) })

// isSecret says whether a variable holds a secret, by its name and what it looks like. Paths and addresses are none.
func isSecret(name, value string) bool {
	if !secretName().MatchString(name) || len(value) < leastValue || len(value) > mostValue {
		return false
	}
	address := strings.HasPrefix(value, "http://") || strings.HasPrefix(value, "https://")
	return !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "./") && !strings.HasPrefix(value, "~/") &&
		(!address || strings.Contains(value, "@"))
}

// OfEnvironment are the secrets among variables, which are "NAME=value".
func OfEnvironment(environ []string) (all []string) {
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok && isSecret(name, value) {
			all = append(all, value)
		}
	}
	return all
}

// OfProject are the secrets in the files of the project that a directory is in: there, above it as far as its
// repository goes, and one level below. What cannot be read has none.
func OfProject(dir string) (all []string) {
	for _, d := range append(upToRepository(dir), below(dir)...) {
		all = append(all, ofDir(d)...)
	}
	return all
}

// upToRepository is a directory and those above it to the top of its repository, if it is in one.
func upToRepository(dir string) []string {
	var path []string
	for d := dir; len(path) < mostAbove; d = filepath.Dir(d) {
		path = append(path, d)
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return path
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	return []string{dir}
}

// below are the first directories in one.
func below(dir string) (dirs []string) {
	entries, _ := os.ReadDir(dir) // none that can be read
	for _, e := range entries {
		if e.IsDir() && len(dirs) < mostBelow && !strings.HasPrefix(e.Name(), ".") && e.Name() != "node_modules" {
			dirs = append(dirs, filepath.Join(dir, e.Name()))
		}
	}
	return dirs
}

func ofDir(dir string) (all []string) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	for _, name := range files() {
		all = append(all, ofFile(root, name)...)
	}
	return all
}

// ofFile reads a file that an agent may have put there: a link out of the directory, a pipe or a device has no secrets.
func ofFile(root *os.Root, name string) []string {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(f, mostFile))
	if err != nil {
		return nil
	}
	return parse(string(text))
}

var assignment = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*(.*)$`)
})

// parse finds the secrets in the text of a file of variables.
func parse(text string) (all []string) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		m := assignment().FindStringSubmatch(strings.TrimRight(lines[i], "\r"))
		if m == nil {
			continue
		}
		name, value := m[1], strings.TrimSpace(m[2])
		if quote := strings.IndexAny(value[:min(len(value), 1)], `"'`); quote == 0 {
			var more int
			value, more = quoted(value, lines[i+1:])
			i += more
		} else if at := strings.Index(value, " #"); at >= 0 {
			value = strings.TrimSpace(value[:at])
		}
		all = append(all, forms(name, value)...)
	}
	return all
}

// quoted is what stands between a quote and the next of its kind, perhaps some lines later.
func quoted(value string, following []string) (text string, lines int) {
	end := value[:1]
	if at := strings.Index(value[1:], end); at >= 0 {
		return value[1 : 1+at], 0
	}
	for i, line := range following {
		if at := strings.Index(line, end); at >= 0 {
			return value[1:] + "\n" + strings.Join(slices.Concat(following[:i], []string{line[:at]}), "\n"), i + 1
		}
	}
	return value[1:], 0 // it never ends
}

// forms are how a value may be shown: as it is written, with its line breaks, and each of its lines.
func forms(name, value string) (all []string) {
	if !isSecret(name, value) {
		return nil
	}
	all = append(all, value)
	plain := strings.ReplaceAll(value, `\n`, "\n")
	if plain != value {
		all = append(all, plain)
	}
	if lines := strings.Split(plain, "\n"); len(lines) > 1 {
		for _, line := range lines {
			if len(line) >= leastValue && !strings.HasPrefix(line, "-----") {
				all = append(all, line)
			}
		}
	}
	return all
}
