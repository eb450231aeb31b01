package claude

import (
	"fmt"

	"ductor/cli"
)

// permissionFlag is a mode as --permission-mode takes it. Claude accepts names it does not know with
// success, so the check is ours.
func permissionFlag(mode cli.PermissionMode) (string, error) {
	switch mode {
	case "", cli.Ask:
		return "default", nil
	case cli.AcceptEdits:
		return "acceptEdits", nil
	case cli.Plan:
		return "plan", nil
	case cli.Auto:
		return "auto", nil
	case cli.Bypass:
		return "bypassPermissions", nil
	}
	return "", fmt.Errorf("permission mode %q is not known", mode)
}

// The tools that ask the person something rather than act.
const (
	toolQuestion = "AskUserQuestion"
	toolExitPlan = "ExitPlanMode"
)

// denial is what Claude is told when it asks for permission, and what the person is told of it.
func denial(tool string) (message, reason string) {
	switch tool {
	case toolQuestion:
		return "Nobody can answer this dialog here. Put the question, with its options, into your answer " +
				"as plain text and end your turn; the person will reply with the next message.",
			"questions are asked in the answer"
	case toolExitPlan:
		return "Nobody can approve the plan in this dialog. Put the whole plan into your answer as plain text " +
				"and end your turn; the person will say with the next message whether to go on.",
			"plans are shown in the answer"
	}
	return fmt.Sprintf("%s was not allowed: the permission mode of this conversation does not let it through, "+
			"and nobody can approve it now. Do what you can without it, and say what you could not do.", tool),
		"the permission mode does not let it through"
}
