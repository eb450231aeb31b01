package turn

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
)

// places lists directories below a home in which installers put agents. They may be missing in the short PATH of a
// system service.
func places() []string {
	return []string{
		".local/bin", "bin", ".claude/local", ".bun/bin", ".npm-global/bin", ".npm-packages/bin",
		".nvm/versions/node/*/bin",
		".local/share/fnm/node-versions/*/installation/bin", ".volta/bin", ".local/share/pnpm", ".deno/bin",
		".cargo/bin", ".asdf/shims",
		".local/share/mise/shims", "go/bin", "/usr/local/bin", "/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin",
		"/snap/bin",
	}
}

// Missing returns advice for a missing program of an agent: another path where the program exists, or how to install
// it.
func Missing(o cli.ProviderOptions, agent cli.Agent, install string) string {
	key := "agents." + string(agent) + ".path"
	if strings.ContainsRune(o.Path, filepath.Separator) {
		return fmt.Sprintf("Correct %s: %s is no program. Without that key PATH is searched", key, o.Path)
	}
	if path := elsewhere(o.OwnerHome, o.Path); path != "" {
		return fmt.Sprintf("Set %s to %s, where it is, or start ductor with %s in PATH", key, path, filepath.Dir(path))
	}
	return install
}

// elsewhere finds a program in an installer's directory. It returns the newest version, or "" if there is none.
func elsewhere(home, name string) string {
	if home == "" || name == "" {
		return ""
	}
	for _, place := range places() {
		if !filepath.IsAbs(place) {
			place = filepath.Join(home, place)
		}
		found, err := filepath.Glob(filepath.Join(place, name))
		if err != nil {
			continue // the home itself contains pattern characters
		}
		for _, path := range slices.Backward(found) {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return path
			}
		}
	}
	return ""
}
