package cli

import "strings"

// Limited is a Provider whose agent does not do all that a permission mode promises.
type Limited interface {
	// Cannot says in one sentence what of p the agent does not do when it is run in mode; empty if nothing, or if
	// that shows only once a session was opened. It does not wait. Safe for concurrent use.
	Cannot(mode Mode, p PermissionMode) string
}

// ToolRestricter is a Provider whose agent has no other tools than Request.Tools, where that says any. A Service has
// no other run a request with Tools.
type ToolRestricter interface {
	RestrictsTools()
}

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
