package cli

import (
	"os"
	"strings"
)

// toolless says why a request with Tools cannot be run by an agent; nil if it can.
func (e *agentEntry) toolless(req Request) *Failure {
	if _, ok := e.provider.(ToolRestricter); ok || len(req.Tools) == 0 {
		return nil
	}
	agent := e.provider.Agent()
	return Failf(Refused, agent, "this may use only the tools %s, and %s cannot be told which tools to use", strings.Join(req.Tools, ", "), agent)
}

// Cannot says what of a permission mode an agent does not do in a place, in the mode it is run in; see Limited.
func (s *Service) Cannot(in Sandbox, agent Agent, p PermissionMode) (why string) {
	entry, failure := s.at(in, agent)
	if failure != nil {
		return ""
	}
	if limited, ok := entry.provider.(Limited); ok {
		// What a provider that panics cannot do is not known.
		_ = guard(agent, func() error { why = limited.Cannot(s.modeSoFar(entry), p); return nil })
	}
	return why
}

// ProjectFields says what the project in a directory sets for an agent; see ReadProject. Nothing for an agent that reads no settings there.
func (s *Service) ProjectFields(in Sandbox, agent Agent, dir string) (fields []Field, missing string) {
	entry, failure := s.at(in, agent)
	if failure != nil {
		return nil, "" // which the turn will say
	}
	reader, ok := entry.provider.(ProjectReader)
	if !ok {
		return nil, ""
	}
	home, _ := os.UserHomeDir() // without one, nothing ends at it
	return ReadProject(dir, home, reader.ProjectFiles())
}
