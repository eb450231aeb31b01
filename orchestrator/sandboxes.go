package orchestrator

import "ductor/cli"

// Sandboxes is the policy of where agents run. It makes no request and does not wait. Safe for concurrent use.
type Sandboxes interface {
	// Of is the sandbox of the project that dir is in, or the conversation's own part of it; empty for this host.
	Of(dir string, conv ConversationID) cli.Sandbox
	// Forced is the sandbox for work in dir that is to run in one although its project has none.
	Forced(dir string, conv ConversationID) (cli.Sandbox, error)
}

// The words of Wants.Sandbox. Empty is as the project of the directory has it.
const (
	SandboxDocker = "docker"
	SandboxOff    = "off"
)
