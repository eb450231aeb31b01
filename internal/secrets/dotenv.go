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

// Limits of the search for secrets in a project.
const (
	minValue   = 12 // minimum length of a value in bytes; a shorter value is probably a word and not a secret
	maxValue   = 4 << 10
	maxFile    = 256 << 10
	maxParents = 8
	maxSubdirs = 64
)

func fileNames() []string {
	return []string{".env", ".env.local", ".env.development", ".env.development.local", ".env.production",
		".env.production.local", ".env.staging", ".env.test", ".env.test.local", ".envrc"}
}

var secretName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL`)
})

// IsName reports whether variables with this name usually contain secrets.
func IsName(name string) bool { return secretName().MatchString(name) }

// isSecret reports whether a variable probably contains a secret, judging by its name and value. Paths, and URLs
// without credentials, are not secrets.
func isSecret(name, value string) bool {
	if !IsName(name) || len(value) < minValue || len(value) > maxValue {
		return false
	}
	address := strings.HasPrefix(value, "http://") || strings.HasPrefix(value, "https://")
	return !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "./") && !strings.HasPrefix(value, "~/") &&
		(!address || strings.Contains(value, "@"))
}

// OfEnvironment returns the values in an environment ("NAME=value") that probably are secrets.
func OfEnvironment(environ []string) (all []string) {
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok && isSecret(name, value) {
			all = append(all, value)
		}
	}
	return all
}

// OfProject returns the secrets in files of the project to which dir belongs. It searches files such as .env in dir, in
// its direct subdirectories, and in its parents up to the top of the Git repository. It ignores files that it cannot
// read.
func OfProject(dir string) (all []string) {
	entries, err := os.ReadDir(dir)
	dirs := projectDirs(dir)
	if err == nil && !slices.ContainsFunc(entries, isSecretFile) { // skip dir, because it has no file with secrets
		dirs = dirs[1:]
	}
	for _, d := range append(dirs, subdirs(dir, entries)...) {
		all = append(all, secretsInDir(d)...)
	}
	return all
}

func isSecretFile(e os.DirEntry) bool { return slices.Contains(fileNames(), e.Name()) }

// projectDirs returns dir and its parents up to the top of the Git repository. Outside of a repository it returns only
// dir.
func projectDirs(dir string) []string {
	var path []string
	for d := dir; len(path) < maxParents; d = filepath.Dir(d) {
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

// subdirs returns the subdirectories of dir that may contain files with secrets, at most maxSubdirs.
func subdirs(dir string, entries []os.DirEntry) (dirs []string) {
	for _, e := range entries {
		if e.IsDir() && len(dirs) < maxSubdirs && !strings.HasPrefix(e.Name(), ".") && e.Name() != "node_modules" {
			dirs = append(dirs, filepath.Join(dir, e.Name()))
		}
	}
	return dirs
}

func secretsInDir(dir string) (all []string) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	for _, name := range fileNames() {
		all = append(all, secretsInFile(root, name)...)
	}
	return all
}

// secretsInFile returns the secrets in a file. It ignores pipes, devices, and symbolic links that lead out of the
// directory, because an agent may have created the file.
func secretsInFile(root *os.Root, name string) []string {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil
	}
	return parseVariables(string(text))
}

var assignment = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*(.*)$`)
})

// parseVariables returns the secrets in a text with lines of the form NAME=value.
func parseVariables(text string) (all []string) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		m := assignment().FindStringSubmatch(strings.TrimRight(lines[i], "\r"))
		if m == nil {
			continue
		}
		name, value := m[1], strings.TrimSpace(m[2])
		if quote := strings.IndexAny(value[:min(len(value), 1)], `"'`); quote == 0 {
			var more int
			value, more = quotedText(value, lines[i+1:])
			i += more
		} else if at := strings.Index(value, " #"); at >= 0 {
			value = strings.TrimSpace(value[:at])
		}
		all = append(all, displayForms(name, value)...)
	}
	return all
}

// quotedText returns a quoted text, and how many of the following lines belong to it. The quotes open at the start of
// value, and may close in one of the following lines.
func quotedText(value string, following []string) (text string, lines int) {
	end := value[:1]
	if at := strings.Index(value[1:], end); at >= 0 {
		return value[1 : 1+at], 0
	}
	for i, line := range following {
		if at := strings.Index(line, end); at >= 0 {
			return value[1:] + "\n" + strings.Join(slices.Concat(following[:i], []string{line[:at]}), "\n"), i + 1
		}
	}
	return value[1:], 0 // the closing quote is missing
}

// displayForms returns the forms in which a program may print a secret: unchanged, with line breaks in place of "\n",
// and line by line. It returns nil if the value is not a secret.
func displayForms(name, value string) (all []string) {
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
			if len(line) >= minValue && !strings.HasPrefix(line, "-----") {
				all = append(all, line)
			}
		}
	}
	return all
}
