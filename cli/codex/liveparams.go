package codex

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"ductor/cli"
)

// turnParams is the question that starts a turn. The same request gives the same one, but for the terms, which are left out
// where the thread has them.
func (s *live) turnParams(req cli.Request, terms map[string]any) map[string]any {
	params := map[string]any{"threadId": s.thread, "input": inputOf(req)}
	maps.Copy(params, terms)
	if context := instructionsOf(req); context != nil {
		params["additionalContext"] = context
	}
	return params
}

// termsOf are what a turn may do, where, and which model answers. Codex keeps them for the turns that follow.
func (s *live) termsOf(req cli.Request, defaults settings) map[string]any {
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

// agreed are the terms that a thread was given last.
type agreed struct {
	prompt string // the request that gave them
	terms  string // as JSON
	known  bool   // Codex accepted it
}

// agree says whether a request must give the terms to its thread. Codex spends milliseconds on terms, also on those that it has.
func (h *server) agree(thread cli.AgentSessionID, prompt string, terms map[string]any) (needed bool) {
	now := agreed{prompt: prompt, terms: string(jsonOf(terms))}
	h.mu.Lock()
	defer h.mu.Unlock()
	if last := h.agreed[thread]; last.known && last.terms == now.terms {
		return false
	}
	h.agreed[thread] = now
	return true
}

// accepted notes that Codex began the turn of a request. Terms that another request gave since are not known by it.
func (h *server) accepted(thread cli.AgentSessionID, prompt string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if last := h.agreed[thread]; last.prompt == prompt {
		last.known = true
		h.agreed[thread] = last
	}
}

// forgetTerms forgets what a thread was given: Codex may forget it too.
func (h *server) forgetTerms(thread cli.AgentSessionID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.agreed, thread)
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
