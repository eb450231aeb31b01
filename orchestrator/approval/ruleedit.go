package approval

import (
	"slices"

	"ductor/cli"
	"ductor/orchestrator"
)

// editsBelow says whether all that an approval does is to write files below its directory that are not hidden. Rules and the
// permission mode go by it alike.
func editsBelow(a orchestrator.ApprovalRequest) bool {
	p := a.Request
	return p != nil && p.OnlyEdits() && !slices.ContainsFunc(p.Changes, func(c cli.FileChanged) bool {
		return c.Kind != cli.FileAdded && c.Kind != cli.FileUpdated || !cli.VisibleBelow(a.Dir, c.Path)
	})
}
