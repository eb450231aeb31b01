package claude

import (
	"encoding/json"
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
	Format format       `json:"f"`
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
	return s.Digest != "" && s.Digest == want.Digest && now.canBecome(want.Turn)
}

// turnSettings is how Claude works in a turn. It can be changed between two turns of a process.
type turnSettings struct {
	Model      cli.ModelID `json:"m,omitempty"` // as it was asked for; empty is Claude's own choice
	Permission string      `json:"p,omitempty"` // in Claude's words
	Effort     cli.Effort  `json:"e,omitempty"`
}

func turnSettingsOf(f format, req cli.Request) turnSettings {
	mode, err := permissionFlag(f, req)
	if err != nil {
		mode = string(req.Permission)
	}
	m := turnSettings{Model: req.Model, Permission: mode, Effort: req.Effort}
	if m.Model == defaultModel {
		m.Model = ""
	}
	return m
}

const bypassMode = "bypassPermissions"

// changeable says whether a process with these extra arguments can change its turn settings: what the owner
// set on the command line is not changed from here.
func changeable(extra []string) bool {
	return !slices.ContainsFunc([]string{"--model", "--effort", "--permission-mode"}, func(flag string) bool {
		return named(extra, flag)
	})
}

// canBecome says whether the protocol has a way from m to want. Claude takes no word of ours for being allowed
// everything, and cannot be told to go back to an effort of its own choice.
func (m turnSettings) canBecome(want turnSettings) bool {
	bypass := m.Permission == bypassMode || want.Permission == bypassMode
	return (m.Permission == want.Permission || !bypass) && (m.Effort == want.Effort || want.Effort != "")
}

// The ids of the requests that change the turn settings.
const (
	modelID  = "set-model"
	modeID   = "set-permission-mode"
	effortID = "set-effort"
)

// change is one request on the way from one set of turn settings to another.
type change struct {
	id   string
	line []byte
	kind cli.FailureKind // of a turn whose change Claude refuses
	what string
}

// changes are the requests that lead from m to want.
func (m turnSettings) changes(want turnSettings) []change {
	var all []change
	if m.Model != want.Model {
		model := want.Model
		if model == "" {
			model = defaultModel
		}
		all = append(all, change{modelID, controlLine(modelID, map[string]any{"subtype": "set_model", "model": string(model)}),
			cli.UnknownModel, "model " + string(model)})
	}
	if m.Permission != want.Permission {
		all = append(all, change{modeID, controlLine(modeID, map[string]any{"subtype": "set_permission_mode", "mode": want.Permission}),
			cli.Refused, "permission mode " + want.Permission})
	}
	if m.Effort != want.Effort {
		all = append(all, change{effortID, controlLine(effortID, map[string]any{
			"subtype": "apply_flag_settings", "settings": map[string]any{"effortLevel": string(want.Effort)},
		}), cli.Refused, "effort " + string(want.Effort)})
	}
	return all
}
