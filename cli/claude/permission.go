package claude

import (
	"fmt"

	"ductor/cli"
)

// permissionFlag is the mode of a request as --permission-mode takes it. Claude accepts names it does not know with
// success, so the check is ours. In its own acceptEdits Claude edits every file below its directories that it does not take
// for sensitive, hidden ones and ductor's among them, and runs some commands. So it asks for edits as long as it can, and
// they are accepted above.
func permissionFlag(f format, req cli.Request) (string, error) {
	switch mode := req.Permission; mode {
	case "", cli.Ask:
		return "default", nil
	case cli.AcceptEdits:
		if f == formatLive && req.Attended {
			return "default", nil
		}
		return "acceptEdits", nil
	case cli.Plan:
		return "plan", nil
	case cli.Auto:
		return "auto", nil
	case cli.Bypass:
		return "bypassPermissions", nil
	}
	return "", fmt.Errorf("permission mode %q is not known", req.Permission)
}

// The tools that ask the person something rather than act.
const (
	toolQuestion = "AskUserQuestion"
	toolExitPlan = "ExitPlanMode"
)

// denial is what Claude is told when it asks for permission, and the reason that the user reads.
func denial(tool string) (message, reason string) {
	switch tool {
	case toolQuestion:
		return "This dialog cannot be answered here. Put the question, with its options, into your answer " +
				"as plain text and end your turn; the person will reply with the next message.",
			"questions are asked in the answer"
	case toolExitPlan:
		return "The plan cannot be approved in this dialog. Put the whole plan into your answer as plain text " +
				"and end your turn; the person will say with the next message whether to go on.",
			"plans are shown in the answer"
	}
	return fmt.Sprintf("%s was not allowed: the permission mode of this conversation does not let it through, "+
			"and it cannot be approved now. Do what you can without it, and say what you could not do.", tool),
		"the permission mode does not let it through"
}
