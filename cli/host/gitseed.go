package host

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"ductor/cli"
)

// GitSeeds returns seeds that contain the Git name and mail address of the user who runs ductor, and no other settings
// of Git. ownerHome is that user's home directory, as an absolute path.
func GitSeeds(ownerHome string) []cli.HomeSeed {
	var seeds []cli.HomeSeed
	for _, file := range []string{".config/git/config", ".gitconfig"} {
		seeds = append(seeds, cli.HomeSeed{From: filepath.Join(ownerHome, filepath.FromSlash(file)), To: file,
			Pick: gitIdentity})
	}
	return seeds
}

// gitIdentity returns a Git configuration with only the keys name and email of the section user; see git-config(1),
// "Syntax". It copies values unchanged, but omits a value that continues on another line.
func gitIdentity(config []byte) ([]byte, error) {
	var out bytes.Buffer
	in := false
	for line := range strings.Lines(string(config)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section, rest, _ := strings.Cut(line[1:], "]")
			in, line = strings.EqualFold(strings.TrimSpace(section), "user"), strings.TrimSpace(rest)
		}
		key, value, ok := strings.Cut(line, "=")
		key = strings.ToLower(strings.TrimSpace(key))
		if !in || !ok || key != "name" && key != "email" || strings.HasSuffix(value, `\`) {
			continue
		}
		fmt.Fprintf(&out, "\t%s = %s\n", key, strings.TrimSpace(value))
	}
	if out.Len() == 0 {
		return nil, nil
	}
	return append([]byte("[user]\n"), out.Bytes()...), nil
}
