package approval

import (
	"ductor/cli"
	"ductor/internal/secrets"
	"ductor/orchestrator"
)

// hiddenPart completes a sentence that says what an agent did not say.
const hiddenPart = "it without a text that ductor takes for a secret"

// hide is an approval as it is stored and shown, without secrets. A rule is made of what was shown, so one with a secret in it makes none; and
// what hides more than a word, such as a command, cannot be allowed.
func hide(set *secrets.Set, a orchestrator.Approval) orchestrator.Approval {
	a.Questions, _ = secrets.Clean(set, a.Questions)
	if a.Request == nil {
		return a
	}
	p, hidden := secrets.Clean(set, *a.Request)
	if hidden == secrets.HiddenNothing {
		return a
	}
	if hidden == secrets.HiddenMore && p.Missing == "" {
		p.Missing = hiddenPart
	}
	a.Request, a.SessionRule = &p, ""
	if p.Tool != cli.ProjectTool { // whose rule goes by a digest of all values
		a.Rule = ""
	}
	return a
}
