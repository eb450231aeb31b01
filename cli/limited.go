package cli

// Limited is a Provider whose agent does not do all that a permission mode promises.
type Limited interface {
	// Cannot says in one sentence what of p the agent does not do when it is run in mode; empty if nothing, or if
	// that shows only once a session was opened. It does not wait. Safe for concurrent use.
	Cannot(mode Mode, p PermissionMode) string
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
