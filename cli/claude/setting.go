package claude

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ductor/cli"
)

// setting is what a process was started with: a request with another needs another process. It is kept beside
// the process as a line of JSON and tells no secret.
type setting struct {
	// Digest is of arguments, system prompts, environment and directory, without the settings of the turn.
	Digest string `json:"d"`
	// Begin is a digest of the session that was asked for.
	Begin  string       `json:"b"`
	Turn   turnSettings `json:"m"`
	Budget float64      `json:"usd,omitempty"` // Claude counts it from the start of the process
	Format format       `json:"f"`
	Files  string       `json:"files,omitempty"` // the directory with the system prompts, without its path
}

// settingOf is the setting of a process for req.
func (p *Provider) settingOf(f format, req cli.Request) setting {
	s := setting{Turn: turnSettingsOf(f, req), Budget: req.MaxBudgetUSD, Format: f}
	s.Begin = digest(string(req.Resume), string(req.NewSessionID))
	bare := req
	bare.Resume, bare.NewSessionID, bare.MaxBudgetUSD = "", "", 0
	if changeable(req.ExtraArgs) {
		bare.Model, bare.Effort, bare.Permission = "", "", cli.Ask
	}
	args, err := p.arguments(f, bare, promptFiles{})
	if err != nil {
		args = []string{err.Error()} // a mode that is not known fits nothing
	}
	replace, add := ownPrompts(req)
	env := p.environment(bare)
	slices.Sort(env)
	s.Digest = digest(strings.Join(args, "\x00"), replace, add, strings.Join(env, "\x00"), req.Dir)
	return s
}

// digest is a short name for what must not be kept in clear.
func digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func (s setting) String() string {
	return strings.TrimSuffix(string(jsonLine(s)), "\n")
}

// readSetting reads what String wrote. What cannot be read fits no request.
func readSetting(text string) setting {
	var s setting
	if json.Unmarshal([]byte(text), &s) != nil {
		return setting{}
	}
	return s
}

// fits says whether a process with this setting, which works with the turn settings now, can take a request that wants
// another setting.
func (s setting) fits(now turnSettings, want setting) bool {
	return s.Digest != "" && s.Digest == want.Digest && s.Budget == want.Budget && now.canBecome(want.Turn)
}
