package codex

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"ductor/cli"
)

// turnParams returns the parameters of turn/start. terms is the result of termsOf, or nil if Codex already has these
// settings.
func (s *thread) turnParams(req cli.Request, terms map[string]any) map[string]any {
	params := map[string]any{"threadId": s.id, "input": inputOf(req)}
	maps.Copy(params, terms)
	if context := instructionsOf(req); context != nil {
		params["additionalContext"] = context
	}
	return params
}

// termsOf returns the permissions, directory and model of a turn. Codex also uses them for later turns of the thread.
func (s *thread) termsOf(req cli.Request, defaults settings) map[string]any {
	m := permissionsFor(req, req.Attended, s.opts().Sandbox)
	terms := map[string]any{"approvalPolicy": m.approval, "sandboxPolicy": policyOf(m.sandbox, req.AddDirs, defaults)}
	if req.Dir != "" {
		terms["cwd"] = req.Dir
	}
	if model := cmp.Or(string(req.Model), s.model); model != "" {
		terms["model"] = model
	}
	if effort := cmp.Or(string(req.Effort), defaults.Effort); effort != "" {
		terms["effort"] = effort
	}
	return terms
}

// sentTerms contains the settings from termsOf that ductor last sent to a thread.
type sentTerms struct {
	prompt string // ID of the turn/start request that contained the settings
	terms  string
	known  bool // whether Codex has accepted the request
}

// needsTerms reports whether the next turn/start request must contain the settings in terms. It returns false if Codex
// already uses these settings for the thread; omitting them saves some milliseconds. prompt is the ID of that request.
func (h *server) needsTerms(thread cli.AgentSessionID, prompt string, terms map[string]any) (needed bool) {
	now := sentTerms{prompt: prompt, terms: string(jsonOf(terms))}
	h.mu.Lock()
	defer h.mu.Unlock()
	if last := h.sentTerms[thread]; last.known && last.terms == now.terms {
		return false
	}
	h.sentTerms[thread] = now
	return true
}

// accepted records that Codex accepted the settings in a request. It does nothing if a later request contained other
// settings.
func (h *server) accepted(thread cli.AgentSessionID, prompt string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if last := h.sentTerms[thread]; last.prompt == prompt {
		last.known = true
		h.sentTerms[thread] = last
	}
}

// forgetTerms makes the thread's next request contain all settings, because Codex may have lost them.
func (h *server) forgetTerms(thread cli.AgentSessionID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sentTerms, thread)
}

// inputOf returns the prompt of req in Codex's format. Codex does not treat the prompt as a command.
func inputOf(req cli.Request) []map[string]any {
	input := []map[string]any{{"type": "text", "text": req.Prompt}}
	for _, image := range req.Images {
		input = append(input, map[string]any{"type": "localImage", "path": image.Path})
	}
	return input
}

// instructionsOf returns the system prompts of req in Codex's format. It splits long texts into numbered parts, because
// Codex truncates a long part. Codex sorts the parts by name, and sends them to the model only if they have changed.
func instructionsOf(req cli.Request) map[string]any {
	context := map[string]any{}
	for _, text := range []string{req.SystemPrompt, req.AppendPrompt} {
		for len(text) > 0 {
			piece := text[:cutAt(text, instructionPiece)]
			text = text[len(piece):]
			context[fmt.Sprintf("instructions_%03d", len(context)+1)] = map[string]string{"value": piece, "kind": "application"}
		}
	}
	if len(context) == 0 {
		return nil
	}
	return context
}

const instructionPiece = 3000

// cutAt returns the position at which to split text, after at most limit bytes. It prefers the end of a line, then of a
// word, then of a character.
func cutAt(text string, limit int) int {
	if len(text) <= limit {
		return len(text)
	}
	for _, separator := range []string{"\n", " "} {
		if i := strings.LastIndex(text[:limit], separator); i > limit/2 {
			return i + 1
		}
	}
	for limit > 1 && text[limit]&0xC0 == 0x80 {
		limit--
	}
	return limit
}

// policyOf returns the sandbox in the format of turn/start.
func policyOf(sandbox string, dirs []string, defaults settings) map[string]any {
	switch sandbox {
	case fullAccess:
		return map[string]any{"type": "dangerFullAccess"}
	case workspaceWrite:
		d := defaults.Sandbox
		roots := append(append([]string{}, d.Roots...), dirs...)
		return map[string]any{
			"type": "workspaceWrite", "writableRoots": roots, "networkAccess": d.Network,
			"excludeTmpdirEnvVar": d.WithoutTemp, "excludeSlashTmp": d.WithoutTmp,
		}
	}
	return map[string]any{"type": "readOnly", "networkAccess": false}
}
