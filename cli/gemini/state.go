package gemini

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"ductor/cli"
)

// userAuth is the way of log-in that the user chose; empty if none.
func (p *Provider) userAuth(env []string) string {
	var settings struct {
		Security struct {
			Auth struct {
				Selected string `json:"selectedType"`
			} `json:"auth"`
		} `json:"security"`
	}
	raw, err := p.opts.ReadFile(filepath.Join(home(env, cli.Variable(env, "HOME")), "settings.json"))
	if err != nil || json.Unmarshal(raw, &settings) != nil {
		return ""
	}
	return settings.Security.Auth.Selected
}

// home is where Gemini keeps what it knows, of a user whose own home is that of owner.
func home(env []string, owner string) string {
	return filepath.Join(cmp.Or(cli.Variable(env, "GEMINI_CLI_HOME"), owner), ".gemini")
}

func (p *Provider) stateDir() string {
	return cmp.Or(p.opts.StateDir, filepath.Join(os.TempDir(), fmt.Sprintf("ductor-gemini-%d", os.Getuid())))
}
