package claude

import (
	"encoding/json"
	"slices"
	"strings"

	"ductor/cli"
)

// setting describes how a process was started. A process can serve a request only if its setting fits; see the method
// fits. A setting is stored with the process as a line of JSON. It contains no secrets.
type setting struct {
	// Digest is a hash of the arguments, system prompts, environment and working directory. It does not cover the
	// settings in the field Turn.
	Digest string `json:"d"`
	// Begin is a hash of the ID of the session that the process was started to resume.
	Begin  string       `json:"b"`
	Turn   turnSettings `json:"m"`
	Format format       `json:"f"`
}

func (s setting) String() string {
	return strings.TrimSuffix(string(jsonLine(s)), "\n")
}

// readSetting parses the result of setting.String. If text is unreadable, it returns a setting that fits no request.
func readSetting(text string) setting {
	var s setting
	if json.Unmarshal([]byte(text), &s) != nil {
		return setting{}
	}
	return s
}

// fits reports whether a process can serve a request that needs the setting want. s is the setting with which the
// process was started. current contains the turn settings that the process uses now.
func (s setting) fits(current turnSettings, want setting) bool {
	return s.Digest != "" && s.Digest == want.Digest && current.canBecome(want.Turn)
}

// turnSettings are the settings that the protocol can change between two turns of a process.
type turnSettings struct {
	Model      cli.ModelID `json:"m,omitempty"` // requested model; empty means Claude's default
	Permission string      `json:"p,omitempty"` // Claude's name for the permission mode
	Effort     cli.Effort  `json:"e,omitempty"`
}

func turnSettingsOf(req cli.Request) turnSettings {
	mode, err := permissionFlag(req.Permission)
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

// changeable reports whether ductor may change the turn settings of a process with these extra arguments. It returns
// false if the arguments set the model, the effort or the permission mode.
func changeable(extra []string) bool {
	return !slices.ContainsFunc([]string{"--model", "--effort", "--permission-mode"}, func(flag string) bool {
		return named(extra, flag)
	})
}

// canBecome reports whether requests of the protocol can change m to want. Claude has no request to enter or leave
// bypassPermissions, and none to return to its default effort.
func (m turnSettings) canBecome(want turnSettings) bool {
	bypass := m.Permission == bypassMode || want.Permission == bypassMode
	return (m.Permission == want.Permission || !bypass) && (m.Effort == want.Effort || want.Effort != "")
}

// IDs of the requests that change the turn settings.
const (
	modelID  = "set-model"
	modeID   = "set-permission-mode"
	effortID = "set-effort"
)

// change is a request that changes one of the turn settings of a process.
type change struct {
	id   string
	line []byte          // the request
	kind cli.FailureKind // kind of the turn's failure if Claude rejects the request
	what string          // names the new setting in that failure
}

// changes returns the requests that change m to want.
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
