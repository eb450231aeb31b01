package turn

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ductor/cli"
)

// installDirs lists the directories into which agents are usually installed. A relative path is below the home
// directory. The short PATH of a system service often lacks these directories.
func installDirs() []string {
	return []string{
		".local/bin", "bin", ".claude/local", ".bun/bin", ".npm-global/bin", ".npm-packages/bin",
		".nvm/versions/node/*/bin",
		".local/share/fnm/node-versions/*/installation/bin", ".volta/bin", ".local/share/pnpm", ".deno/bin",
		".cargo/bin", ".asdf/shims",
		".local/share/mise/shims", "go/bin", "/usr/local/bin", "/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin",
		"/snap/bin",
	}
}

// Missing returns advice for an agent whose program was not found. If the program is in a directory outside of PATH,
// the advice names its path. Otherwise, it explains how to install the agent.
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

// elsewhere searches the directories of installers for a program. It returns the path of the newest version, or "" if
// there is none.
func elsewhere(home, name string) string {
	if home == "" || name == "" {
		return ""
	}
	for _, place := range installDirs() {
		if !filepath.IsAbs(place) {
			place = filepath.Join(home, place)
		}
		found, err := filepath.Glob(filepath.Join(place, name))
		if err != nil {
			continue // invalid pattern: the home directory's path contains a special character
		}
		for _, path := range slices.Backward(found) {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return path
			}
		}
	}
	return ""
}
