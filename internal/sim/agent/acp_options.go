package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// This file contains parts of the Agent Client Protocol that Gemini does not support. A test switches them on with the
// environment variable SIM_ACP, which contains words separated by spaces:
//
//	options      session options (model, effort, mode and a boolean) instead of modes and models
//	models=N     N models
//	bytes=N      descriptions with N bytes
//	list delete resume close   the session methods with these names
//	title        the agent gives its sessions titles
//	version=N    the agent answers with another version of the protocol
//	banner die garbage silent  misbehavior of the agent before its first answer, or instead of this answer
//
// With options, the mode is build or plan. Both allow everything, unless SIM_PERMISSION is ask.

// acpHas returns the value of a word in SIM_ACP: "yes" if the word has no value, and "" if the word is missing.
func (p *process) acpHas(word string) string {
	for _, w := range strings.Fields(p.env["SIM_ACP"]) {
		name, value, _ := strings.Cut(w, "=")
		if name == word {
			return or(value, "yes")
		}
	}
	return ""
}

// acpNumber returns the number after a word in SIM_ACP. If the word is missing, it returns fallback.
func (p *process) acpNumber(word string, fallback int) int {
	if n, err := strconv.Atoi(p.acpHas(word)); err == nil {
		return n
	}
	return fallback
}

// beforeHello simulates a misbehavior before the agent's first answer, if SIM_ACP requests one. It returns true if the
// agent must not answer.
func (s *acpServer) beforeHello() bool {
	switch {
	case s.acpHas("banner") != "":
		s.out.raw([]byte("Welcome to the agent!\nUpdate available: 1.0 -> 2.0\n"))
	case s.acpHas("garbage") != "":
		s.out.raw([]byte("Usage: agent [options]\n"))
		return true
	case s.acpHas("silent") != "":
		return true
	case s.acpHas("die") != "":
		s.fail(3, "it lacks a library")
		s.exits <- 3
		return true
	}
	return false
}

// abilities returns the session methods that the agent announces.
func (s *acpServer) abilities() json.RawMessage {
	var kv []any
	for _, word := range []string{"list", "delete", "resume", "close"} {
		if s.acpHas(word) != "" {
			kv = append(kv, word, obj())
		}
	}
	return obj(kv...)
}

// efforts returns the efforts that a model supports. The models differ, and model-3 supports no efforts.
func efforts(model string) []string {
	switch model {
	case "model-2":
		return []string{"low", "max"}
	case "model-3":
		return nil
	}
	return []string{"low", "medium", "high"}
}

func (s *acpServer) options(session *acpSession) json.RawMessage {
	n := s.acpNumber("models", 3)
	text := strings.Repeat("d", s.acpNumber("bytes", 0)/n)
	var models []json.RawMessage
	for i := range n {
		id := "model-" + strconv.Itoa(i+1)
		models = append(models, obj("value", id, "name", "Model "+strconv.Itoa(i+1), "description", text))
	}
	all := []json.RawMessage{obj("id", "model", "name", "Model", "category", "model", "type", "select",
		"currentValue", session.model, "options",
		[]json.RawMessage{obj("group", "all", "name", "All", "options", models)})}
	if levels := efforts(session.model); levels != nil {
		all = append(all, obj("id", "effort", "name", "Effort", "category", "thought_level", "type", "select",
			"currentValue", session.effort, "options", values(levels)))
	}
	raw, err := json.Marshal(append(all,
		obj("id", "mode", "name", "Mode", "category", "mode", "type", "select", "currentValue", session.mode,
			"options", values([]string{"build", "plan"})),
		obj("id", "brave", "name", "Brave", "type", "boolean", "currentValue", session.brave)))
	if err != nil {
		return nil
	}
	return raw
}

func values(ids []string) (all []json.RawMessage) {
	for _, id := range ids {
		all = append(all, obj("value", id, "name", id))
	}
	return all
}

// setOption handles session/set_config_option.
func (s *acpServer) setOption(in acpLine) {
	session := s.session(in)
	var p struct {
		ID    string `json:"configId"`
		Type  string `json:"type"`
		Value any    `json:"value"`
	}
	_ = json.Unmarshal(in.Params, &p)
	value, _ := p.Value.(string)
	on, isBool := p.Value.(bool)
	switch {
	case session == nil:
		return
	case p.ID == "model" && strings.HasPrefix(value, "model-"):
		session.model = value
		if levels := efforts(value); !slices.Contains(levels, session.effort) && levels != nil {
			session.effort = levels[0]
		}
	case p.ID == "effort" && slices.Contains(efforts(session.model), value):
		session.effort = value
	case p.ID == "mode" && slices.Contains([]string{"build", "plan"}, value):
		session.mode = value
	case p.ID == "brave" && p.Type == "boolean" && isBool:
		session.brave = on
	default:
		s.refuse(in, -32602, "Invalid value for "+p.ID, "")
		return
	}
	s.reply(in, obj("configOptions", s.options(session)))
}

// allowance returns the approval mode of Gemini that corresponds to the session's settings.
func (s *acpServer) allowance(session *acpSession) string {
	if s.acpHas("options") == "" {
		return or(map[string]string{"autoEdit": "auto_edit"}[session.mode], session.mode)
	}
	if s.env["SIM_PERMISSION"] == "ask" {
		return "default"
	}
	return "yolo"
}

// listSessions handles session/list. It returns two sessions at a time.
func (s *acpServer) listSessions(in acpLine) {
	var p struct {
		Dir    string `json:"cwd"`
		Cursor string `json:"cursor"`
	}
	_ = json.Unmarshal(in.Params, &p)
	files, _ := filepath.Glob(filepath.Join(s.store.root, geminiFolder(p.Dir), "*.jsonl"))
	from, _ := strconv.Atoi(p.Cursor)
	sessions := []json.RawMessage{}
	for _, file := range files[min(from, len(files)):min(from+2, len(files))] {
		id := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		info, err := os.Stat(file)
		if turns := s.store.read(geminiFolder(p.Dir), id); err == nil && len(turns) > 0 {
			sessions = append(sessions, obj("sessionId", id, "cwd", p.Dir, "title", sessionTitle(turns[0].Prompt),
				"updatedAt", info.ModTime().UTC().Format(time.RFC3339)))
		}
	}
	if from+2 < len(files) {
		s.reply(in, obj("sessions", sessions, "nextCursor", strconv.Itoa(from+2)))
		return
	}
	s.reply(in, obj("sessions", sessions))
}

func sessionTitle(prompt string) string {
	words := strings.Fields(strings.ReplaceAll(prompt, "[[start]]", ""))
	return "About " + strings.Join(words[:min(len(words), 2)], " ")
}

func (s *acpServer) deleteSession(in acpLine) {
	if session := s.session(in); session != nil {
		// Ignore the error: a session without turns has no file.
		_ = os.Remove(s.store.path(geminiFolder(session.dir), session.id))
		delete(s.sessions, session.id)
		s.reply(in, obj())
	}
}
