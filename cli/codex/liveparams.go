package codex

import (
	"cmp"
	"fmt"
	"strings"

	"ductor/cli"
)

// turnParams is the question that starts a turn. The same request gives the same one.
func (s *live) turnParams(req cli.Request, defaults settings) map[string]any {
	m := permissionsFor(req, req.Attended, s.opts().Sandbox)
	params := map[string]any{
		"threadId": s.thread, "input": inputOf(req), "approvalPolicy": m.approval,
		"sandboxPolicy": policyOf(m.sandbox, req.AddDirs, defaults),
	}
	if req.Dir != "" {
		params["cwd"] = req.Dir
	}
	if model := cmp.Or(string(req.Model), s.model); model != "" {
		params["model"] = model
	}
	if effort := cmp.Or(string(req.Effort), defaults.Effort); effort != "" {
		params["effort"] = effort
	}
	if context := instructionsOf(req); context != nil {
		params["additionalContext"] = context
	}
	return params
}

// inputOf is the prompt as Codex takes it: always text, whatever it begins with.
func inputOf(req cli.Request) []map[string]any {
	input := []map[string]any{{"type": "text", "text": req.Prompt}}
	for _, image := range req.Images {
		input = append(input, map[string]any{"type": "localImage", "path": image.Path})
	}
	return input
}

// instructionsOf gives the model the instructions as the application's own. Codex says them again only when they
// changed. It cuts off what is long, so they come in pieces, which it says in the order of their names.
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

// cutAt is where text is cut to at most limit bytes: behind a line or a word where there is one, else behind a
// character.
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

// policyOf is a sandbox in the words of turn/start.
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
