package cli

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
