package cli

import "strings"

// Sandbox names a place agents run in that is not this host. Empty is this host. One that a conversation has for itself
// is called NAME/CONVERSATION.
type Sandbox string

// For gives the part of a sandbox that a conversation has for itself.
func (s Sandbox) For(c Conversation) Sandbox { return s + "/" + Sandbox(c) }

// Name is how users know the sandbox, whichever conversation has a part of it.
func (s Sandbox) Name() string {
	name, _, _ := strings.Cut(string(s), "/")
	return name
}

// Alone is the conversation that has the sandbox for itself; empty if all share it.
func (s Sandbox) Alone() Conversation {
	_, alone, _ := strings.Cut(string(s), "/")
	return Conversation(alone)
}
